//! What an operation needs from outside in the middle of its work: the first step says what is wanted, somebody with
//! hands gets it while no transaction is open, and the last step makes an answer of it.

use std::future::Future;
use std::pin::Pin;

use serde_json::Value;

use crate::gateway::Mount;
use crate::notify::Tell;
use crate::workspace::Look;
use crate::{Code, Error, Result};

/// What is wanted.
#[derive(Clone, Debug)]
pub enum Errand {
    /// A look at files beneath a root.
    Look(Box<Look>),
    /// A look whether programs can be confined here.
    Sandbox,
    /// A look at what a mounted server offers.
    Mount(Box<Mount>),
    /// How the connections to mounted servers stand.
    Connections,
    /// A page of the web.
    Page {
        /// Its address.
        url: String,
    },
    /// A document in the form of PDF, of a text in Markdown.
    Pdf {
        /// The text.
        text: String,
    },
    /// A message to a person, now.
    Tell(Box<Tell>),
}

/// What came of it, on its way.
pub type Fetched<'h> = Pin<Box<dyn Future<Output = Result<Value>> + Send + 'h>>;

/// The same, or `None` if it would take longer than a call should.
pub type Tried<'h> = Pin<Box<dyn Future<Output = Result<Option<Value>>> + Send + 'h>>;

/// Whoever can reach outside. What it brings is bounded in size and time, and an error of it is the operation's.
pub trait Hands: Send + Sync {
    /// Does one errand.
    fn run(&self, errand: Errand) -> Fetched<'_>;

    /// Does one errand if it is quick, for an operation that can put it into the queue otherwise.
    fn quickly(&self, errand: Errand) -> Tried<'_> {
        Box::pin(async move { self.run(errand).await.map(Some) })
    }
}

/// A desk that reaches nothing outside.
pub struct NoHands;

impl Hands for NoHands {
    fn run(&self, _: Errand) -> Fetched<'_> {
        Box::pin(async { Err(Error::new(Code::Unavailable, "this desk reaches nothing outside").hint("ask the server, `deskmate up`")) })
    }
}
