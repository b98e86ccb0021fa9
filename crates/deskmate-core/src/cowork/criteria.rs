//! What a proposal is based on, as it comes in. Whether it is enough is for [`crate::policy`] to say.

use super::words::check_said;
use crate::limits::{NAME_CHARS_MAX, PACKET_ITEMS_MAX, REASONING_BYTES_MAX};
use crate::policy::Criterion;
use crate::{Error, Result, check_text, parse_time};

/// Checks the criteria of an input.
pub(super) fn check(criteria: &[Criterion]) -> Result<()> {
    if criteria.len() > PACKET_ITEMS_MAX {
        return Err(Error::invalid("criteria", format!("at most {PACKET_ITEMS_MAX}")));
    }
    for criterion in criteria {
        check_said("criteria.name", &criterion.name, NAME_CHARS_MAX)?;
        check_text("criteria.source", &criterion.source, REASONING_BYTES_MAX)?;
        check_text("criteria.value", &criterion.value.to_string(), REASONING_BYTES_MAX)?;
        if let Some(at) = &criterion.at {
            parse_time("criteria.at", at)?;
        }
    }
    Ok(())
}
