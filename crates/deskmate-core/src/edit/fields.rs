//! Who set which field last.

use deskmate_db::{Tx, args};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::call::{ActorKind, Cx};
use crate::{Result, format_time};

/// One field of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The field.
    pub field: String,
    /// The value that it has now.
    pub from: Value,
    /// The value that it would have.
    pub to: Value,
}

impl Change {
    /// A change of a field.
    pub fn new(field: impl Into<String>, from: impl Into<Value>, to: impl Into<Value>) -> Self {
        Self { field: field.into(), from: from.into(), to: to.into() }
    }
}

/// A write, parted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Split {
    /// What may be written now.
    pub free: Vec<Change>,
    /// What a person set, and the caller must not overwrite.
    pub held: Vec<Change>,
}

impl Split {
    /// The fields that may be written now.
    pub fn free_fields(&self) -> Vec<&str> {
        self.free.iter().map(|change| change.field.as_str()).collect()
    }
}

/// More fields than any record has.
const FIELDS_MAX: i64 = 100;

/// Parts a write into what its writer may do now and what is held because a person set it. Writing the value that is
/// there already is held from nobody, and for an agent it changes nothing.
pub fn split(cx: &mut Cx<'_, '_>, subject: &str, changes: Vec<Change>) -> Result<Split> {
    if !cx.actor.is_agent() {
        return Ok(Split { free: changes, held: Vec::new() });
    }
    let by_people = set_by_people(cx.tx, subject)?;
    let changes = changes.into_iter().filter(|change| change.from != change.to);
    let (held, free) = changes.partition(|change| by_people.contains(&change.field));
    Ok(Split { free, held })
}

/// Remembers that the caller set these fields. The event that tells of it names them in the fact `edited`.
pub fn mark(cx: &mut Cx<'_, '_>, subject: &str, fields: &[&str]) -> Result<()> {
    let (now, kind, by) = (cx.now(), cx.actor.kind.name(), cx.actor.id.clone());
    for field in fields {
        cx.tx.execute(
            "insert into field_edit (subject, field, set_by_kind, set_by, set_at) values ($1, $2, $3, $4, $5) \
             on conflict (subject, field) do update set set_by_kind = excluded.set_by_kind, set_by = excluded.set_by, set_at = excluded.set_at",
            args![subject, *field, kind, by, now],
        )?;
    }
    Ok(())
}

/// The fields of a record that a person set last.
pub fn set_by_people(tx: &mut Tx<'_>, subject: &str) -> Result<Vec<String>> {
    let rows = tx.query("select field from field_edit where subject = $1 and set_by_kind = 'person' order by field limit $2", args![subject, FIELDS_MAX])?;
    Ok(rows.iter().map(|row| row.get(0)).collect::<deskmate_db::Result<_>>()?)
}

/// Who set a field last.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FieldOut {
    /// The field.
    pub field: String,
    /// Who set it last: `person`, `agent` or `system`.
    pub set_by_kind: ActorKind,
    /// Their id.
    pub set_by: String,
    /// When.
    pub set_at: String,
}

/// Who set which field of a record last; what people set comes first. Fields that nobody set since the record was made
/// are not named.
pub fn fields(tx: &mut Tx<'_>, subject: &str) -> Result<Vec<FieldOut>> {
    let rows = tx.query("select field, set_by_kind, set_by, set_at from field_edit where subject = $1 order by field limit $2", args![subject, FIELDS_MAX])?;
    let mut all = Vec::with_capacity(rows.len());
    for row in &rows {
        let set_by_kind = ActorKind::from_name(&row.get::<String>(1)?);
        all.push(FieldOut { field: row.get(0)?, set_by_kind, set_by: row.get(2)?, set_at: format_time(row.get(3)?) });
    }
    all.sort_by_key(|field| field.set_by_kind != ActorKind::Person);
    Ok(all)
}

/// Forgets who set what of a record that is gone.
pub fn forget(tx: &mut Tx<'_>, subject: &str) -> Result<()> {
    tx.execute("delete from field_edit where subject = $1", args![subject])?;
    Ok(())
}
