//! What can go wrong with an upstream. Whoever passed a call on must be able to tell whether it can have been executed, so
//! "was never sent" and "nobody knows" are different things here.

use std::time::Duration;

use deskmate_core::Code;
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::json;

/// The outcome of asking an upstream for something.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why an upstream did not answer, or not with what was asked for.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It cannot be started or reached. The call was never sent.
    #[error("{name} cannot be reached: {why}")]
    NotStarted { name: String, why: String },
    /// It failed a short while ago, and is left alone for now. The call was never sent.
    #[error("{name} failed and is tried again in {} s: {why}", again.as_secs().max(1))]
    Backoff { name: String, why: String, again: Duration },
    /// It failed too often. The call was never sent.
    #[error("{name} was given up after {failures} failures: {why}")]
    GivenUp { name: String, why: String, failures: u32 },
    /// It was removed, disabled or replaced, or the desk is stopping. The call was never sent.
    #[error("{name} is not mounted any more")]
    Stopped { name: String },
    /// Too much is under way. The call was never sent.
    #[error("{name} has {most} calls under way already")]
    Busy { name: String, most: usize },
    /// The connection broke before the call was written to it.
    #[error("the call was not sent to {name}: {why}")]
    NotSent { name: String, why: String },
    /// The connection broke after the call was written to it: it may have been executed.
    #[error("{name} went away during the call, and whether it was carried out is not known: {why}")]
    Ambiguous { name: String, why: String },
    /// No answer came in time: the call may have been executed, or still be.
    #[error("{name} did not answer within {} s, and whether the call was carried out is not known", after.as_secs())]
    TimedOut { name: String, after: Duration },
    /// The caller no longer wants the answer. The upstream was told, if it had the call already.
    #[error("the call of {name} was cancelled")]
    Cancelled { name: String, sent: bool },
    /// The call was carried out, but its answer is larger than may be.
    #[error("the answer of {name} is larger than {most} bytes and was dropped; the call itself was carried out")]
    TooLarge { name: String, most: usize },
    /// The answer cannot be read. The call was carried out.
    #[error("the answer of {name} cannot be read: {why}")]
    Unreadable { name: String, why: String },
    /// The upstream answered with an error of its own.
    #[error("{}", .0.message)]
    Refused(ErrorData),
}

impl Error {
    /// Whether the call may have been carried out without anybody knowing how it ended.
    pub(crate) fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Ambiguous { .. } | Self::TimedOut { .. } | Self::Cancelled { sent: true, .. })
    }

    /// Whether the call certainly did nothing, so that it may be made again.
    pub(crate) fn was_never_sent(&self) -> bool {
        use Error::{Backoff, Busy, Cancelled, GivenUp, NotSent, NotStarted, Stopped};
        matches!(self, NotStarted { .. } | Backoff { .. } | GivenUp { .. } | Stopped { .. } | Busy { .. } | NotSent { .. } | Cancelled { sent: false, .. })
    }

    /// The same where it happened before a call was sent: then nothing of the call was done, whatever else is not known.
    pub(super) fn before_a_call(self) -> Self {
        match self {
            Self::Ambiguous { name, why } | Self::Unreadable { name, why } => Self::NotSent { name, why },
            Self::TimedOut { name, after } => Self::NotSent { name, why: format!("it did not say within {} s what it offers", after.as_secs()) },
            Self::TooLarge { name, most } => Self::NotSent { name, why: format!("what it offers is larger than {most} bytes") },
            Self::Cancelled { name, .. } => Self::Cancelled { name, sent: false },
            never_sent => never_sent,
        }
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::GivenUp { name, .. } => format!("`deskmate gateway test {name}` tries again and shows its log"),
            Self::Backoff { again, .. } => format!("ask again in {} s", again.as_secs().max(1)),
            Self::NotSent { .. } | Self::Busy { .. } => "ask again: nothing was done".to_owned(),
            Self::Ambiguous { .. } | Self::TimedOut { .. } => "look whether it was done before doing it again".to_owned(),
            Self::TooLarge { .. } => "ask for less at a time".to_owned(),
            _ => return None,
        })
    }

    /// The desk's own kind of error.
    pub(crate) fn to_core(&self) -> deskmate_core::Error {
        let code = match self {
            Self::Busy { .. } => Code::Limited,
            Self::Stopped { .. } => Code::NotFound,
            Self::TooLarge { .. } | Self::Unreadable { .. } | Self::Refused(_) => Code::Conflict,
            _ => Code::Unavailable,
        };
        let error = deskmate_core::Error::new(code, self.to_string());
        match self.hint() {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// As an answer to an MCP client. What the upstream itself answered is passed on as it is.
    pub(crate) fn to_mcp(&self) -> ErrorData {
        if let Self::Refused(error) = self {
            return error.clone();
        }
        let data = json!({ "ambiguous": self.is_ambiguous(), "never_sent": self.was_never_sent(), "hint": self.hint() });
        ErrorData::new(ErrorCode::INTERNAL_ERROR, self.to_string(), Some(data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_sent_is_not_ambiguous() {
        let name = || "x".to_owned();
        let errors = [
            (Error::NotSent { name: name(), why: name() }, true, false),
            (Error::Cancelled { name: name(), sent: false }, true, false),
            (Error::Cancelled { name: name(), sent: true }, false, true),
            (Error::Ambiguous { name: name(), why: name() }, false, true),
            (Error::TimedOut { name: name(), after: Duration::from_secs(1) }, false, true),
            (Error::TooLarge { name: name(), most: 1 }, false, false),
            (Error::Unreadable { name: name(), why: name() }, false, false),
            (Error::Refused(ErrorData::invalid_params("no", None)), false, false),
        ];
        for (error, never, ambiguous) in errors {
            assert_eq!((error.was_never_sent(), error.is_ambiguous()), (never, ambiguous), "{error}");
            assert!(!error.to_core().message.is_empty());
            let before = error.before_a_call();
            assert!(before.was_never_sent() || matches!(before, Error::Refused(_)), "{before}");
        }
        assert_eq!(Error::Refused(ErrorData::invalid_params("no", None)).to_mcp().code, ErrorCode::INVALID_PARAMS);
    }
}
