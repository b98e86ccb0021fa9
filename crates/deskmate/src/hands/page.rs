//! Pages of the web, read by a client that reaches the public internet only.

use deskmate_core::workspace::FoundPage;
use deskmate_core::{Code, Error, Result};
use deskmate_hands::web::{Client, FetchError, Limits};
use serde_json::Value;

use super::look::value;

pub(super) async fn read(client: &Client, url: &str) -> Result<Value> {
    // Policy is asked about one host, and that one is on the record.
    let limits = Limits { elsewhere: false, ..Limits::default() };
    let page = client.fetch(url, &limits).await.map_err(|error| fault(&error))?;
    value(&FoundPage {
        url: page.url,
        status: page.status,
        content_type: page.content_type,
        title: page.title,
        text: page.text,
        truncated: page.truncated,
        fetched_bytes: page.fetched_bytes as u64,
    })
}

/// Why a page cannot be read, as callers of the desk know faults.
fn fault(error: &FetchError) -> Error {
    use FetchError as F;
    let says = error.to_string();
    match error {
        F::Address(_) | F::Scheme(_) | F::Credentials | F::Port(_) | F::Type(_) => Error::invalid("url", says),
        F::NotPublic(_) | F::Downgrade => Error::forbidden(says),
        F::NotFound(_) => Error::not_found(says),
        F::Elsewhere(_, address) => Error::conflict(says).hint(format!("if you want to read that, ask for it: {address}")),
        F::Unreachable(..) | F::Tls(..) | F::Http(..) | F::TimedOut(_) | F::Redirects(_) | F::RedirectAddress | F::Packing(_) | F::Unpack => {
            Error::new(Code::Unavailable, says)
        }
    }
}
