//! Numbered, forward-only changes of the schema, run at start under a lock.
//!
//! A migration is one text for both engines. Two words stand for what they spell differently, `KEY` (an ascending
//! integer primary key) and `BYTES`, and lines that end in `-- sqlite` or `-- postgres` go to that engine only.

use std::path::Path;

use rusqlite::OpenFlags;

use crate::{Engine, Error, Kind, Result, Tx, args, sqlite};

/// One step of the schema's history. Its text never changes once it was released.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its number, counted from 1.
    pub version: i64,
    /// What it brings.
    pub name: &'static str,
    /// The statements.
    pub sql: &'static str,
}

/// One lock for each schema, so that several desks can live in one database.
const LOCK: &str = "select pg_advisory_xact_lock(7374, hashtext(current_schema()::text))";

/// Refuses a file of a newer version, or one that has no store where there must be one, without writing a byte to it.
pub(crate) fn check_file(path: &Path, migrations: &[Migration], existing: bool) -> Result<()> {
    if !path.exists() {
        return if existing { Err(missing()) } else { Ok(()) };
    }
    let connection = sqlite::open_connection(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    check_store(&mut Tx::new(crate::tx::Connection::Sqlite(&connection)), migrations, existing)
}

/// Refuses a store of a newer version, and none at all where there must be one.
pub(crate) fn check_store(tx: &mut Tx<'_>, migrations: &[Migration], existing: bool) -> Result<()> {
    match applied(tx)? {
        0 if existing => Err(missing()),
        found => refuse_newer(found, migrations),
    }
}

fn missing() -> Error {
    Error::new(Kind::Missing, "there is no store (nothing was changed)")
}

/// Brings the schema up to date.
pub(crate) fn run(tx: &mut Tx<'_>, migrations: &[Migration], existing: bool) -> Result<()> {
    check_store(tx, migrations, existing)?;
    tx.batch(if tx.engine() == Engine::Sqlite { "begin immediate" } else { "begin" })?;
    let outcome = run_locked(tx, migrations);
    tx.batch(if outcome.is_ok() { "commit" } else { "rollback" })?;
    outcome
}

fn run_locked(tx: &mut Tx<'_>, migrations: &[Migration]) -> Result<()> {
    if tx.engine() == Engine::Postgres {
        tx.batch(LOCK)?;
    }
    tx.batch("create table if not exists schema_version (version bigint primary key, name text not null, sql text not null)")?;
    let known = tx.query("select version, sql from schema_version order by version", &[])?;
    for row in &known {
        let (version, sql): (i64, String) = (row.get(0)?, row.get(1)?);
        let same = migrations.iter().any(|m| m.version == version && m.sql == sql);
        if !same {
            return Err(Error::new(
                Kind::Newer,
                format!(
                    "the store's schema step {version} is not the one this binary knows: another build made this store, or it is damaged \
                     (start the build that made it, or restore a backup; nothing was changed)"
                ),
            ));
        }
    }
    for migration in migrations.iter().skip(known.len()) {
        let text = for_engine(migration.sql, tx.engine());
        tx.batch(&text)?;
        tx.execute("insert into schema_version (version, name, sql) values ($1, $2, $3)", args![migration.version, migration.name, migration.sql])?;
    }
    Ok(())
}

fn applied(tx: &mut Tx<'_>) -> Result<i64> {
    let exists = match tx.engine() {
        Engine::Sqlite => tx.query("select 1 from sqlite_master where name = 'schema_version'", &[])?,
        Engine::Postgres => tx.query("select 1 where to_regclass('schema_version') is not null", &[])?,
    };
    if exists.is_empty() {
        return Ok(0);
    }
    tx.one("select coalesce(max(version), 0) from schema_version", &[])?.get(0)
}

fn refuse_newer(found: i64, migrations: &[Migration]) -> Result<()> {
    let known = migrations.last().map_or(0, |m| m.version);
    if found > known {
        return Err(Error::new(
            Kind::Newer,
            format!("this store is at schema {found}, and this binary knows schema {known}: start a newer deskmate (nothing was changed)"),
        ));
    }
    Ok(())
}

/// The text that one engine runs.
fn for_engine(sql: &str, engine: Engine) -> String {
    let (ours, theirs) = match engine {
        Engine::Sqlite => ("-- sqlite", "-- postgres"),
        Engine::Postgres => ("-- postgres", "-- sqlite"),
    };
    let lines = sql.lines().filter(|line| !line.trim_end().ends_with(theirs)).map(|line| line.trim_end().trim_end_matches(ours));
    let text = lines.collect::<Vec<_>>().join("\n");
    match engine {
        Engine::Sqlite => text.replace(" KEY", " integer primary key").replace(" BYTES", " blob"),
        Engine::Postgres => text.replace(" KEY", " bigint primary key").replace(" BYTES", " bytea").replace(" text", " text collate \"C\""),
    }
}
