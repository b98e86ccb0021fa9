//! Looking who set what, and letting go of it.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fields::{FieldOut, fields};
use crate::call::Cx;
use crate::limits::{EDIT_FIELDS_MAX, NAME_CHARS_MAX};
use crate::record::{Event, Kind};
use crate::{Error, Result, check_text};

/// A person let go of fields.
pub(super) const RELEASED: Kind = Kind { name: "edit.released", says: "A person let go of fields that people had set: agents may write them again." };

/// Show who set which field of a shared record last. What a person set, agents do not overwrite.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// The record: `task:ID`, `group:NAME` or `agent:NAME`.
    subject: String,
}

/// Who set which field.
#[derive(Serialize, JsonSchema)]
pub(super) struct Fields {
    /// The record.
    subject: String,
    /// The fields; those that people set come first.
    fields: Vec<FieldOut>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Fields> {
    check_text("subject", &input.subject, 2 * NAME_CHARS_MAX)?;
    Ok(Fields { fields: fields(cx.tx, &input.subject)?, subject: input.subject })
}

/// Let go of fields that people set: agents may write them again without asking. The values stay as they are.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Release {
    /// The record: `task:ID`, `group:NAME` or `agent:NAME`.
    subject: String,
    /// The fields.
    fields: Vec<String>,
}

pub(super) fn release(cx: &mut Cx<'_, '_>, input: Release) -> Result<Fields> {
    check_text("subject", &input.subject, 2 * NAME_CHARS_MAX)?;
    if input.fields.is_empty() || input.fields.len() > EDIT_FIELDS_MAX {
        return Err(Error::invalid("fields", format!("must name 1 to {EDIT_FIELDS_MAX} fields")));
    }
    let mut released = Vec::with_capacity(input.fields.len());
    for field in &input.fields {
        check_text("fields", field, NAME_CHARS_MAX)?;
        let gone = cx.tx.execute("delete from field_edit where subject = $1 and field = $2 and set_by_kind = 'person'", args![input.subject, field])?;
        if gone == 0 {
            let unknown = Error::not_found(format!("no person set {field} of {}", input.subject)).hint("desk_edit_list shows what people set");
            return Err(Error { field: Some("fields".to_owned()), ..unknown });
        }
        released.push(field.as_str());
    }
    cx.emit(Event::new(RELEASED, input.subject.as_str()).fact("released", released))?;
    Ok(Fields { fields: fields(cx.tx, &input.subject)?, subject: input.subject })
}
