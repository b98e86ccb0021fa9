//! A cowork server's SQLite file, read without touching it.

use std::path::Path;

use data_encoding::HEXLOWER;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value, json};

/// The tables, in the order in which they are brought in, and the order of their rows.
const TABLES: [(&str, &str); 6] = [
    ("trust_scores", "select * from trust_scores order by agent_id, domain"),
    ("actions", "select * from actions order by created_at, id"),
    (
        "proposals",
        "select p.*, a.agent_id, a.domain, a.description, a.reasoning, a.confidence from proposals p left join actions a on a.id = p.action_id \
         order by p.created_at, p.id",
    ),
    ("overrides", "select * from overrides order by created_at, id"),
    ("handoffs", "select * from handoffs order by created_at, id"),
    ("timeline", "select * from timeline order by created_at, id"),
];

/// Hands every row to `take`, as the desk's operation expects it. A file without these tables is refused.
pub(crate) fn read(path: &Path, mut take: impl FnMut(Value) -> Result<(), String>) -> Result<(), String> {
    let at = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    if !path.is_file() {
        return Err(at(&"there is no such file"));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags).map_err(|error| at(&error))?;
    let missing: Vec<&str> = TABLES.iter().map(|(table, _)| *table).filter(|table| !has_table(&database, table)).collect();
    if !missing.is_empty() {
        return Err(at(&format!("this is not a cowork database: it has no table {}", missing.join(", "))));
    }
    for (table, sql) in TABLES {
        let mut statement = database.prepare(sql).map_err(|error| at(&error))?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([]).map_err(|error| at(&error))?;
        while let Some(row) = rows.next().map_err(|error| at(&error))? {
            let mut fields = Map::new();
            for (number, name) in names.iter().enumerate() {
                let value = row.get_ref(number).map_err(|error| at(&error))?;
                fields.insert(name.clone(), value_of(value));
            }
            fields.retain(|_, value| !value.is_null());
            take(json!({ "table": table, "row": fields }))?;
        }
    }
    Ok(())
}

fn has_table(database: &Connection, table: &str) -> bool {
    database.query_row("select 1 from sqlite_master where type = 'table' and name = ?1", [table], |_| Ok(())).is_ok()
}

fn value_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(bytes) => Value::String(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Value::String(HEXLOWER.encode(bytes)),
    }
}
