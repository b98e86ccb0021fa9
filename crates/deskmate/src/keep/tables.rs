//! Copying every row of a store into another, engine to engine, in batches.

use std::sync::Arc;

use deskmate_core::{Code, Error, Result, TABLES};
use deskmate_db::{Committed, Db, Engine, Options, Param, Row, Seal, Staged, ToParam, Tx, Value, args};
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};

/// How many rows are in memory at a time.
const BATCH: usize = 200;
/// The row of `desk` that says that a copy was not finished.
pub(super) const MARK: &str = "moving";

/// Opens a store for copying: its schema is brought up to date, and nothing is sealed.
pub(super) fn open(url: &str) -> Result<Db> {
    struct Nothing;
    impl Seal for Nothing {
        fn before_commit(&mut self, _: &mut Tx<'_>, _: Vec<Staged>) -> deskmate_db::Result<()> {
            Ok(())
        }
        fn after_commit(&mut self, _: Committed) {}
    }
    let mut options = Options::new(url, deskmate_core::MIGRATIONS);
    options.threads = 1;
    Ok(Db::open(&options, &mut |_| Ok(Box::new(Nothing)))?)
}

/// The statements for one table.
struct Plan {
    table: &'static str,
    columns: Vec<String>,
    /// Where the key's columns are among the columns.
    keys: Vec<usize>,
    first: String,
    next: String,
    insert: Arc<str>,
}

impl Plan {
    fn new(tx: &mut Tx<'_>, table: &'static str, key: &str) -> Result<Self> {
        let columns = match tx.engine() {
            Engine::Sqlite => tx.query("select name from pragma_table_info($1) order by cid", args![table])?,
            Engine::Postgres => tx.query(
                "select column_name::text from information_schema.columns where table_schema = current_schema() and table_name::text = $1 order by ordinal_position",
                args![table],
            )?,
        };
        let columns = columns.iter().map(|row| row.get::<String>(0)).collect::<deskmate_db::Result<Vec<_>>>()?;
        let keys = key.split(", ").map(|key| columns.iter().position(|column| column == key)).collect::<Option<Vec<_>>>();
        let keys = keys.ok_or_else(|| Error::new(Code::Internal, format!("the store has no table {table} with the key {key}")))?;
        let list = columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ");
        let order = key.split(", ").map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(", ");
        let numbers = |count: usize| (1..=count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
        Ok(Self {
            table,
            first: format!("select {list} from \"{table}\" order by {order} limit {BATCH}"),
            next: format!("select {list} from \"{table}\" where ({order}) > ({}) order by {order} limit {BATCH}", numbers(keys.len())),
            insert: format!("insert into \"{table}\" ({list}) values ({})", numbers(columns.len())).into(),
            columns,
            keys,
        })
    }

    /// Reads the table in the order of its key, a batch at a time.
    fn read(&self, tx: &mut Tx<'_>, digest: &mut Sha256, mut each: impl FnMut(Vec<Row>) -> Result<()>) -> Result<()> {
        digest.update(self.table);
        digest.update(self.columns.join(","));
        let mut rows = tx.query_text(&self.first, &[])?;
        while let Some(last) = rows.last().map(|row| row.values().to_vec()) {
            let full = rows.len() == BATCH;
            rows.retain(|row| !self.is_mark(row));
            for value in rows.iter().flat_map(Row::values) {
                add(digest, value);
            }
            each(rows)?;
            if !full {
                break;
            }
            let after: Vec<Param<'_>> = self.keys.iter().filter_map(|key| last.get(*key)).map(ToParam::to_param).collect();
            rows = tx.query_text(&self.next, &after)?;
        }
        Ok(())
    }

    fn is_mark(&self, row: &Row) -> bool {
        self.table == "desk" && row.values().first().is_some_and(|key| *key == Value::Text(MARK.to_owned()))
    }
}

/// Both engines give the same values for the same content, booleans included, so the same digest.
fn add(digest: &mut Sha256, value: &Value) {
    let (kind, bytes): (u8, &[u8]) = match value {
        Value::Null => (0, &[]),
        Value::Int(v) => (1, &v.to_le_bytes()),
        Value::Text(v) => (2, v.as_bytes()),
        Value::Bytes(v) => (3, v),
    };
    digest.update([kind]);
    digest.update((bytes.len() as u64).to_le_bytes());
    digest.update(bytes);
}

/// Copies one state of the source. `None`: events wait for their place in the source's record at this moment, and a
/// copy without them would contradict itself.
pub(super) fn copy(source: &Db, target: &Db, bar: &ProgressBar) -> Result<Option<[u8; 32]>> {
    let (target, bar) = (target.clone(), bar.clone());
    // It may run again from the beginning when the connection breaks, so it begins with an empty target.
    source.read_blocking(move |tx| {
        if waiting(tx)? {
            return Ok(None);
        }
        empty(&target)?;
        bar.set_position(0);
        bar.set_length(count(tx)?);
        let mut digest = Sha256::new();
        for (table, key) in TABLES {
            let plan = Plan::new(tx, table, key)?;
            plan.read(tx, &mut digest, |rows| {
                let copied = rows.len() as u64;
                let insert = Arc::clone(&plan.insert);
                target.write_blocking(move |tx| tx.execute_rows(&insert, &rows).map_err(Error::from))?;
                bar.inc(copied);
                Ok(())
            })?;
        }
        Ok(Some(digest.finalize().into()))
    })
}

/// The digest over every row of a store.
pub(super) fn digest(db: &Db) -> Result<[u8; 32]> {
    db.read_blocking(|tx| {
        let mut digest = Sha256::new();
        for (table, key) in TABLES {
            Plan::new(tx, table, key)?.read(tx, &mut digest, |_| Ok(()))?;
        }
        Ok(digest.finalize().into())
    })
}

/// How many rows there are, not counting the mark.
pub(super) fn count(tx: &mut Tx<'_>) -> Result<u64> {
    let mut total = 0;
    for (table, _) in TABLES {
        let filter = if *table == "desk" { format!(" where key <> '{MARK}'") } else { String::new() };
        let rows = tx.query_text(&format!("select count(*) from \"{table}\"{filter}"), &[])?;
        let rows: i64 = rows.first().map_or(Ok(0), |row| row.get(0))?;
        total += u64::try_from(rows).unwrap_or(0);
    }
    Ok(total)
}

/// Whether events wait for their place in the record (PostgreSQL).
pub(super) fn waiting(tx: &mut Tx<'_>) -> Result<bool> {
    Ok(tx.engine() == Engine::Postgres && tx.optional("select 1::bigint from event_staged limit 1", &[])?.is_some())
}

/// Removes every row but the mark.
pub(super) fn empty(db: &Db) -> Result<()> {
    let tables: Vec<&str> = TABLES.iter().map(|(table, _)| *table).filter(|table| *table != "desk").collect();
    let postgres = format!("truncate table \"{}\"; delete from desk where key <> '{MARK}'", tables.join("\", \""));
    let sqlite = format!("delete from \"{}\"; delete from desk where key <> '{MARK}'", tables.join("\"; delete from \""));
    db.write_blocking(move |tx| match tx.engine() {
        Engine::Sqlite => tx.batch(&sqlite).map_err(Error::from),
        Engine::Postgres => tx.batch(&postgres).map_err(Error::from),
    })
}
