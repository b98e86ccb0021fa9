//! Questions to a database, and nothing but questions. SQLite is opened for reading only, and every step of a statement is looked at
//! before it is taken; PostgreSQL is asked in a transaction that cannot write. Both are bounded in time and rows.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::{Fault, Offer, no_tool, read};

/// How long a question may be.
const SQL_BYTES_MAX: usize = 20_000;
/// How much comes back, as JSON.
const BYTES_MAX: usize = 1024 * 1024;
/// How many steps of SQLite's machine lie between two looks at the clock.
const STEPS: i32 = 10_000;

/// Where a database is.
pub(crate) enum Source {
    Sqlite(PathBuf),
    /// The address, with its password.
    Postgres(Zeroizing<String>),
}

/// The connector.
pub(crate) struct Database {
    pub(crate) source: std::sync::Arc<Source>,
    pub(crate) rows: usize,
    pub(crate) time: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    sql: String,
}

/// What a question brings.
struct Found {
    columns: Vec<String>,
    items: Vec<Value>,
    truncated: bool,
}

impl Database {
    pub(super) fn offers() -> Vec<Offer> {
        vec![Offer {
            name: "query",
            about: "Ask the database with one SELECT. Nothing can be changed; rows beyond a number are cut off, and the answer says so",
            properties: json!({ "sql": { "type": "string", "description": "One SELECT" } }),
            needed: &["sql"],
            reads: true,
        }]
    }

    pub(super) async fn call(&self, tool: &str, given: Map<String, Value>) -> Result<Value, Fault> {
        if tool != "query" {
            return Err(no_tool(tool));
        }
        let query: Query = read(given)?;
        if query.sql.len() > SQL_BYTES_MAX {
            return Err(Fault::Failed(format!("sql is longer than {SQL_BYTES_MAX} bytes")));
        }
        let (source, rows, time) = (std::sync::Arc::clone(&self.source), self.rows, self.time);
        let asked = tokio::task::spawn_blocking(move || match &*source {
            Source::Sqlite(path) => sqlite(path, &query.sql, rows, time),
            Source::Postgres(url) => postgres(url, &query.sql, rows, time),
        });
        let found = asked.await.map_err(|_| Fault::Failed("the question ended unexpectedly".to_owned()))??;
        Ok(json!({ "count": found.items.len(), "columns": found.columns, "items": found.items, "truncated": found.truncated }))
    }
}

/// What a statement may do with SQLite.
fn judge(asked: AuthContext<'_>) -> Authorization {
    match asked.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name } if !function_name.eq_ignore_ascii_case("load_extension") => Authorization::Allow,
        _ => Authorization::Deny,
    }
}

fn sqlite(path: &Path, sql: &str, most: usize, time: Duration) -> Result<Found, String> {
    let told = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::OperationInterrupted) => format!("it took longer than {} s", time.as_secs()),
        Some(rusqlite::ErrorCode::AuthorizationForStatementDenied) => "only one SELECT is asked here; nothing can be changed".to_owned(),
        _ => error.to_string(),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut database = Connection::open_with_flags(path, flags).map_err(told)?;
    database.busy_timeout(Duration::from_secs(5)).map_err(told)?;
    database.pragma_update(None, "query_only", true).map_err(told)?;
    let started = Instant::now();
    database.progress_handler(STEPS, Some(move || started.elapsed() > time)).map_err(told)?;
    database.authorizer(Some(judge)).map_err(told)?;
    let mut statement = database.prepare(sql).map_err(told)?;
    if !statement.readonly() || statement.column_count() == 0 {
        return Err("only one SELECT is asked here; nothing can be changed".to_owned());
    }
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let (mut items, mut bytes, mut truncated) = (Vec::new(), 0, false);
    let mut rows = statement.query([]).map_err(told)?;
    while let Some(row) = rows.next().map_err(told)? {
        let mut fields = Map::new();
        for (number, name) in columns.iter().enumerate() {
            let value = match row.get_ref(number).map_err(told)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => json!(number),
                ValueRef::Real(number) => json!(number),
                ValueRef::Text(text) => Value::from(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => Value::from(HEXLOWER.encode(bytes)),
            };
            fields.insert(name.clone(), value);
        }
        let item = Value::Object(fields);
        bytes += item.to_string().len();
        if items.len() >= most || bytes > BYTES_MAX {
            truncated = true;
            break;
        }
        items.push(item);
    }
    Ok(Found { columns, items, truncated })
}

fn postgres(url: &str, sql: &str, most: usize, time: Duration) -> Result<Found, String> {
    let asked = deskmate_db::ask_postgres(url, sql, most, BYTES_MAX, time).map_err(|error| error.to_string())?;
    let items = asked.rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<Vec<Value>, _>>();
    let items = items.map_err(|error| format!("a row could not be read: {error}"))?;
    Ok(Found { columns: asked.columns, items, truncated: asked.truncated })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(path: &Path, sql: &str) -> Result<Found, String> {
        sqlite(path, sql, 3, Duration::from_millis(300))
    }

    #[test]
    fn a_file_is_asked_and_never_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let made = Connection::open(&path).unwrap();
        made.execute_batch("create table t (k text, n integer); insert into t values ('a', 1), ('b', 2), ('c', 3), ('d', 4)").unwrap();
        drop(made);
        let before = std::fs::read(&path).unwrap();
        let found = ask(&path, "select n, k from t order by n desc").unwrap();
        assert_eq!((found.columns, found.items[0].clone(), found.truncated), (vec!["n".to_owned(), "k".to_owned()], json!({ "k": "d", "n": 4 }), true));
        for bad in [
            "delete from t",
            "select 1; drop table t",
            "drop table t",
            "pragma query_only = off",
            "attach '/tmp/y.db' as y",
            "insert into t values ('e', 5) returning n",
            "begin",
            "vacuum into '/tmp/y.db'",
            "select load_extension('x')",
            "",
        ] {
            assert!(ask(&path, bad).is_err(), "{bad}");
        }
        let slow = ask(&path, "with recursive c(x) as (select 1 union all select x + 1 from c) select count(*) from c").err().unwrap();
        assert!(slow.contains("took longer"), "{slow}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert!(!folder.path().join("none.db").exists() && ask(&folder.path().join("none.db"), "select 1").is_err());
    }
}
