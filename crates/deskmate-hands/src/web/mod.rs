//! Reads a page of the web as text. An address comes from an agent, which has it from anywhere: it must not lead into the
//! machine's own network. So names are resolved here, every address that a name has is checked, and the connection goes to
//! the address that was checked and to no other, at every redirect anew.
//!
//! What comes back is bounded in time and size, and is text without interpretation: nothing in it is run or loaded.

mod address;
mod body;
mod client;
mod error;
mod html;
mod page;
mod resolve;
mod skip;
mod target;
mod writer;

pub use address::is_public;
pub use client::Client;
pub use error::FetchError;
pub use page::{Limits, Page};

/// Reads a page with a client of its own. Who reads many keeps a [`Client`].
pub async fn fetch(url: &str, limits: &Limits) -> Result<Page, FetchError> {
    Client::new().fetch(url, limits).await
}

#[cfg(test)]
mod tests;
