//! Deriving the whole record again from its stored rows, and naming the first thing that does not fit.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_db::{Engine, Row, Tx, args};
use schemars::JsonSchema;
use serde::Serialize;
use tlog_tiles::{Hash, record_hash, stored_hash_count};

use super::entry::{Body, commitment};
use super::erase::ERASED;
use super::key::Keyring;
use super::tree::{Frontier, signed};
use crate::{Result, hex};

/// How many events one step reads.
pub(crate) const STEP: u64 = 2_000;

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The event it concerns, if it is one event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What is wrong.
    pub what: String,
}

/// What verification found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// Whether everything fits.
    pub sound: bool,
    /// How many events were checked.
    pub events: u64,
    /// The root of the tree over them, hexadecimal.
    pub root: String,
    /// The newest checkpoint of the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// What does not fit, first things first.
    pub findings: Vec<Finding>,
}

/// Rows that carry authority, rebuilt from the record's facts and compared with what is stored.
pub trait Projection: Send {
    /// Takes in one event.
    fn apply(&mut self, seq: u64, body: &Body);
    /// Compares with the stored rows and tells the differences.
    fn compare(&self, tx: &mut Tx<'_>) -> Result<Vec<Finding>>;
}

/// Compares rows as the record tells of them with rows as they are stored. `name` says which one a finding is about.
pub(crate) fn differences<K: Ord, T: PartialEq>(told: &BTreeMap<K, T>, stored: &BTreeMap<K, T>, name: impl Fn(&K) -> String, findings: &mut Vec<Finding>) {
    let mut find = |key: &K, why: &str| findings.push(Finding { seq: None, what: format!("{}: {why}", name(key)) });
    for (key, row) in stored {
        match told.get(key) {
            None => find(key, "the row is there, but the record does not tell of it"),
            Some(facts) if facts != row => find(key, "the row differs from what the record tells"),
            Some(_) => {}
        }
    }
    for key in told.keys().filter(|key| !stored.contains_key(*key)) {
        find(key, "the record tells of it, but the row is gone");
    }
}

/// A verification under way: call [`Verifier::step`] until it answers `false`, then [`Verifier::finish`].
pub struct Verifier {
    frontier: Frontier,
    size: u64,
    findings: Vec<Finding>,
    /// Events whose payload is gone, until the event that erased it is met.
    gone: BTreeSet<u64>,
    erased: BTreeSet<u64>,
    /// Trees that must be the beginning of this one: their roots by size.
    expected: BTreeMap<u64, Vec<Hash>>,
    projections: Vec<Box<dyn Projection>>,
}

/// More findings than this only repeat each other.
const FINDINGS_MAX: usize = 100;

impl Verifier {
    /// Starts over a store that now has `size` events, and compares every row that carries authority. `kept` are
    /// checkpoints that were kept elsewhere.
    pub fn of_store(size: u64, keys: &Keyring, kept: &[String]) -> Self {
        let projections: Vec<Box<dyn Projection>> = vec![
            Box::new(crate::cowork::CoworkProjection::default()),
            Box::new(crate::edit::EditProjection::default()),
            Box::new(crate::gateway::ToolProjection::default()),
            Box::new(crate::identity::IdentityProjection::default()),
            Box::new(crate::meter::PauseProjection::default()),
            Box::new(crate::notify::SubscriptionProjection::default()),
            Box::new(crate::policy::PolicyProjection::default()),
            Box::new(crate::request::RequestProjection::default()),
            Box::new(crate::secret::SecretProjection::default()),
            Box::new(crate::trust::TrustProjection::default()),
        ];
        Self::new(size, keys, kept, projections)
    }

    /// Starts over events that come from anywhere.
    pub fn new(size: u64, keys: &Keyring, kept: &[String], projections: Vec<Box<dyn Projection>>) -> Self {
        let mut verifier = Self {
            frontier: Frontier::default(),
            size,
            findings: Vec::new(),
            gone: BTreeSet::new(),
            erased: BTreeSet::new(),
            expected: BTreeMap::new(),
            projections,
        };
        for note in kept {
            verifier.expect(keys, note, "a checkpoint that was kept elsewhere");
        }
        verifier
    }

    fn expect(&mut self, keys: &Keyring, note: &str, whose: &str) {
        match keys.open(note) {
            Err(error) => self.find(None, format!("{whose} {error}")),
            Ok(checkpoint) if checkpoint.size() > self.size => self.find(
                Some(self.size),
                format!(
                    "{whose} vouches for {} events, but the store ends after {}: entries were cut off or an older copy was put back",
                    checkpoint.size(),
                    self.size
                ),
            ),
            Ok(checkpoint) => {
                if checkpoint.size() == 0 && *checkpoint.hash() != tlog_tiles::EMPTY_HASH {
                    self.find(None, format!("{whose} names another root for the empty record"));
                }
                self.expected.entry(checkpoint.size()).or_default().push(*checkpoint.hash());
            }
        }
    }

    /// How far it has come, in events.
    pub fn done(&self) -> u64 {
        self.frontier.size()
    }

    /// Checks the next few events. Answers whether more remain.
    pub fn step(&mut self, tx: &mut Tx<'_>) -> Result<bool> {
        let from = self.frontier.size();
        let until = self.size.min(from + STEP);
        let rows = tx.query(
            "select e.seq, e.id, e.at, e.actor_kind, e.actor, e.kind, e.subject, e.body, p.salt, p.payload \
             from event e left join event_payload p on p.seq = e.seq where e.seq >= $1 and e.seq < $2 order by e.seq",
            args![signed(from), signed(until)],
        )?;
        let nodes = tx.query(
            "select position, hash from record_hash where position >= $1 and position < $2 order by position",
            args![signed(stored_hash_count(from)), signed(stored_hash_count(until))],
        )?;
        let mut nodes = nodes.iter();
        for row in &rows {
            let seq = u64::try_from(row.get::<i64>(0)?).unwrap_or(0);
            if seq != self.frontier.size() {
                break;
            }
            self.check(seq, row, &mut nodes)?;
        }
        if self.frontier.size() < until {
            self.find(Some(self.frontier.size()), "the entry is missing");
            return Ok(false);
        }
        Ok(until < self.size)
    }

    fn check<'r>(&mut self, seq: u64, row: &Row, nodes: &mut impl Iterator<Item = &'r Row>) -> Result<()> {
        let text: String = row.get(7)?;
        let salt: Option<Vec<u8>> = row.get(8)?;
        let payload: Option<String> = row.get(9)?;
        let columns = [row.get::<String>(1)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?];
        self.leaf(seq, &text, salt.as_deref(), payload.as_deref(), Some((row.get(2)?, &columns)), &mut |expected| {
            let Some(node) = nodes.next() else { return Ok(false) };
            Ok(node.get::<Vec<u8>>(1)? == expected.0)
        })
    }

    /// Checks one event by its sealed text, its payload and, where there are any, its columns and stored nodes.
    pub(crate) fn leaf(
        &mut self,
        seq: u64,
        text: &str,
        salt: Option<&[u8]>,
        payload: Option<&str>,
        columns: Option<(i64, &[String; 5])>,
        node_fits: &mut dyn FnMut(Hash) -> Result<bool>,
    ) -> Result<()> {
        let mut misfit = None;
        let mut failed = None;
        self.frontier.append(record_hash(text.as_bytes()), |node| match node_fits(node) {
            Ok(true) => {}
            Ok(false) => misfit = Some("its content does not fit the tree: it was changed, moved or put in later"),
            Err(error) => failed = Some(error),
        });
        if let Some(error) = failed {
            return Err(error);
        }
        match serde_json::from_str::<Body>(text) {
            Err(_) => misfit = misfit.or(Some("its sealed text is unreadable")),
            Ok(body) => {
                let fits = columns.is_none_or(|(at, [id, actor_kind, actor, kind, subject])| {
                    at == body.at
                        && *id == body.id
                        && *actor_kind == body.actor.kind
                        && *actor == body.actor.id
                        && *kind == body.kind
                        && *subject == body.subject
                });
                if !fits {
                    misfit = misfit.or(Some("a column differs from the sealed text"));
                }
                misfit = misfit.or(self.payload(seq, &body, salt, payload));
                if body.kind == ERASED.name
                    && let Some(erased) = body.facts.get("seq").and_then(serde_json::Value::as_u64)
                {
                    self.erased.insert(erased);
                }
                for projection in &mut self.projections {
                    projection.apply(seq, &body);
                }
            }
        }
        if let Some(what) = misfit {
            self.find(Some(seq), what);
        }
        let size = self.frontier.size();
        // A root costs a hash for each level, so it is worked out only where a checkpoint names one.
        if self.expected.get(&size).is_some_and(|roots| roots.iter().any(|root| *root != self.frontier.root())) {
            self.find(Some(seq), format!("the first {size} entries differ from the ones that a signed checkpoint vouches for"));
        }
        Ok(())
    }

    fn payload(&mut self, seq: u64, body: &Body, salt: Option<&[u8]>, payload: Option<&str>) -> Option<&'static str> {
        match (&body.payload, salt, payload) {
            (None, None, None) => None,
            (Some(_), None, None) => {
                self.gone.insert(seq);
                None
            }
            (Some(sealed), Some(salt), Some(payload)) if *sealed == hex(&commitment(salt, payload)) => None,
            _ => Some("its payload does not fit the commitment"),
        }
    }

    pub(crate) fn missing(&mut self, found: u64, promised: u64) {
        self.find(Some(found.min(promised)), format!("{promised} entries were promised, {found} are there"));
    }

    fn find(&mut self, seq: Option<u64>, what: impl Into<String>) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding { seq, what: what.into() });
        }
    }

    /// Checks what concerns the whole: the newest checkpoint, erasures, leftovers, and the rows that carry authority.
    pub fn finish(mut self, tx: &mut Tx<'_>, keys: &Keyring) -> Result<Report> {
        if self.frontier.size() == self.size {
            // A desk that runs goes on writing: what came meanwhile is checked too, now over the one state that the
            // checkpoint, the erasures and the rows with authority are read from.
            self.size = self.size.max(super::size(tx)?);
            while self.frontier.size() < self.size && self.step(tx)? {}
        }
        let complete = self.findings.is_empty();
        let checkpoint = super::newest_checkpoint(tx)?;
        self.close(keys, checkpoint.as_deref());
        let extra = tx.optional("select position from record_hash where position >= $1 limit 1", args![signed(stored_hash_count(self.size))])?;
        let now = super::size(tx)?;
        if extra.is_some() && now == self.size {
            self.find(Some(self.size), "the tree has nodes of entries that are missing");
        }
        // A row that the record explains only wrongly would say nothing more, so authority is compared on a sound record.
        if complete && now == self.size {
            self.apply_staged(tx)?;
            for projection in std::mem::take(&mut self.projections) {
                for finding in projection.compare(tx)? {
                    self.find(finding.seq, finding.what);
                }
            }
        }
        Ok(self.report(checkpoint))
    }

    /// On PostgreSQL rows are changed up to 50 ms before their events get a place in the record: those that wait count.
    fn apply_staged(&mut self, tx: &mut Tx<'_>) -> Result<()> {
        if tx.engine() != Engine::Postgres {
            return Ok(());
        }
        for (seq, row) in (self.size..).zip(tx.query("select body from event_staged order by position", &[])?) {
            if let Ok(body) = serde_json::from_str::<Body>(&row.get::<String>(0)?) {
                self.projections.iter_mut().for_each(|projection| projection.apply(seq, &body));
            }
        }
        Ok(())
    }

    /// The part of finishing that needs no store.
    pub(crate) fn close(&mut self, keys: &Keyring, checkpoint: Option<&str>) {
        match checkpoint {
            None if self.size > 0 => self.find(None, "the store has no signed checkpoint"),
            None => {}
            Some(note) => match keys.open(note) {
                Err(error) => self.find(None, format!("the newest checkpoint {error}")),
                Ok(newest) if newest.size() > self.size => {
                    self.find(Some(self.size), format!("the newest checkpoint vouches for {} events: the newest were cut off", newest.size()));
                }
                // It is written in the same commit as the newest entry, so an older one was put back, with entries behind it.
                Ok(newest) if newest.size() < self.size => {
                    let what = format!("the newest checkpoint vouches for {} events only: nothing vouches for the entries from here on", newest.size());
                    self.find(Some(newest.size()), what);
                }
                Ok(newest) if newest.size() == self.frontier.size() && *newest.hash() != self.frontier.root() => {
                    self.find(None, "the newest checkpoint names another root");
                }
                Ok(_) => {}
            },
        }
        for seq in std::mem::take(&mut self.gone) {
            if !self.erased.contains(&seq) {
                self.find(Some(seq), "its payload is gone, and no event says that it was erased");
            }
        }
    }

    pub(crate) fn report(self, checkpoint: Option<String>) -> Report {
        Report { sound: self.findings.is_empty(), events: self.frontier.size(), root: hex(&self.frontier.root().0), checkpoint, findings: self.findings }
    }
}
