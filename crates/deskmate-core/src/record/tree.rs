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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex;
    use tlog_tiles::record_hash;

    /// The leaves and roots that Certificate Transparency implementations test with.
    const LEAVES: [&str; 8] = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    #[test]
    fn the_roots_are_those_of_rfc_6962() {
        let mut frontier = Frontier::default();
        assert_eq!(hex(&frontier.root().0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        for (leaf, root) in LEAVES.iter().zip(ROOTS) {
            let leaf = data_encoding::HEXLOWER.decode(leaf.as_bytes()).unwrap();
            frontier.append(record_hash(&leaf), |_| {});
            assert_eq!(hex(&frontier.root().0), root);
        }
    }

    #[test]
    fn the_frontier_agrees_with_the_stored_tree_at_every_size() {
        struct Stored(Vec<Hash>);
        impl HashReader for Stored {
            fn read_hashes(&self, positions: &[u64]) -> std::result::Result<Vec<Hash>, tlog_tiles::Error> {
                Ok(positions.iter().map(|position| self.0[usize::try_from(*position).unwrap()]).collect())
            }
        }
        let mut frontier = Frontier::default();
        let mut stored = Stored(Vec::new());
        for leaf in 0..300_u64 {
            frontier.append(record_hash(&leaf.to_be_bytes()), |node| stored.0.push(node));
            assert_eq!(stored.0.len() as u64, tlog_tiles::stored_hash_count(leaf + 1));
            assert_eq!(frontier.root(), tlog_tiles::tree_hash(leaf + 1, &stored).unwrap());
        }
    }
}
