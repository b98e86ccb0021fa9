//! The section `coworker`: a door of its own for programs that were written for the file coworker.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use super::{ConfigError, Result};

/// The section as it is written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CoworkerSection {
    /// A further address of this machine at which the jobs API is served alone, for example `127.0.0.1:8765`; none if not given.
    #[schemars(with = "Option<String>")]
    listen: Option<Spanned<String>>,
}

/// The address, which must be one that only this machine reaches.
pub(super) fn settle(section: CoworkerSection, at: &impl Fn(Location) -> String) -> Result<Option<SocketAddr>> {
    let Some(listen) = section.listen else { return Ok(None) };
    let address = listen.value.parse::<SocketAddr>().ok().filter(|address| address.ip().is_loopback());
    let wrong =
        || ConfigError(format!("{}: {:?} is not an address of this machine alone: write for example 127.0.0.1:8765", at(listen.referenced), listen.value));
    address.map(Some).ok_or_else(wrong)
}
