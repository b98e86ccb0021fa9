//! The right edge of the Merkle tree, and its stored nodes. Hashing and numbering are the transparency-log crate's.

use deskmate_db::{Tx, args};
use tlog_tiles::{Hash, HashReader, node_hash, stored_hash_index};

use crate::Result;

/// The roots of the complete subtrees at the right edge: all that appending and the tree's root need.
#[derive(Clone, Debug, Default)]
pub struct Frontier {
    size: u64,
    /// By level; meaningful where the size has that bit set.
    edge: Vec<Hash>,
}

impl Frontier {
    /// Reads the edge of a stored tree.
    pub fn load(tx: &mut Tx<'_>, size: u64) -> Result<Self> {
        let mut edge = Vec::new();
        for level in 0..64_u8 {
            if size >> level == 0 {
                break;
            }
            let node = if (size >> level) & 1 == 1 { read_hash(tx, stored_hash_index(level, (size >> level) - 1))? } else { Hash::default() };
            edge.push(node);
        }
        Ok(Self { size, edge })
    }

    /// How many leaves there are.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf and calls `completed` for each node that this completes, in their stored order.
    pub fn append(&mut self, leaf: Hash, mut completed: impl FnMut(Hash)) {
        let mut node = leaf;
        let mut level = 0;
        completed(node);
        while (self.size >> level) & 1 == 1 {
            node = self.edge.get(level).map_or(node, |left| node_hash(*left, node));
            level += 1;
            completed(node);
        }
        match self.edge.get_mut(level) {
            Some(slot) => *slot = node,
            None => self.edge.push(node),
        }
        self.size += 1;
    }

    /// The tree's root.
    pub fn root(&self) -> Hash {
        let mut root: Option<Hash> = None;
        for (level, node) in self.edge.iter().enumerate() {
            if (self.size >> level) & 1 == 1 {
                root = Some(root.map_or(*node, |right| node_hash(*node, right)));
            }
        }
        root.unwrap_or(tlog_tiles::EMPTY_HASH)
    }
}

fn read_hash(tx: &mut Tx<'_>, position: u64) -> Result<Hash> {
    let row = tx.optional("select hash from record_hash where position = $1", args![signed(position)])?;
    let bytes: Vec<u8> = row.ok_or_else(|| broken(position))?.get(0)?;
    Ok(Hash(bytes.try_into().map_err(|_| broken(position))?))
}

fn broken(position: u64) -> crate::Error {
    crate::Error::new(crate::Code::Internal, format!("the record's tree has no sound node at {position}")).hint("run `deskmate audit verify`")
}

/// The crate's reader is shared, a transaction is not, so the nodes that a proof needs are collected first.
pub struct StoredHashes<'t, 'c> {
    tx: std::cell::RefCell<&'t mut Tx<'c>>,
}

impl<'t, 'c> StoredHashes<'t, 'c> {
    /// Reads nodes through a transaction.
    pub fn new(tx: &'t mut Tx<'c>) -> Self {
        Self { tx: std::cell::RefCell::new(tx) }
    }
}

impl HashReader for StoredHashes<'_, '_> {
    fn read_hashes(&self, positions: &[u64]) -> std::result::Result<Vec<Hash>, tlog_tiles::Error> {
        let mut tx = self.tx.borrow_mut();
        positions.iter().map(|position| read_hash(&mut tx, *position).map_err(|_| tlog_tiles::Error::IndexesNotInTree)).collect()
    }
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
