//! What an operation answers when it cannot do what was asked: a stable code, a message for people, and where it
//! helps what to do next.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// The outcome of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The stable name of a kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The input is wrong; `field` names where.
    Invalid,
    /// No credential, or one that is not known, expired or revoked.
    Unauthenticated,
    /// The credential does not allow it.
    Forbidden,
    /// It does not exist, or not for this caller.
    NotFound,
    /// It changed meanwhile, or the key was used for something else.
    Conflict,
    /// Too much; `retry_after_ms` says when to ask again.
    Limited,
    /// Something that the desk needs is away; asking again later is safe.
    Unavailable,
    /// A fault of the desk; `incident` is also in its log.
    Internal,
}

impl Code {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Conflict => "conflict",
            Self::Limited => "limited",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }
}

/// A refusal or a failure.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Error {
    /// The stable name of the kind.
    pub code: Code,
    /// What happened, for people.
    pub message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The input field that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// When asking again makes sense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether it helps that a person shows that they are there, with `desk_show_presence`, and calls again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_presence: bool,
    /// The id under which the desk's log tells more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incident: Option<Box<str>>,
    /// Whether the store was busy or away, so that it is not what was asked for that failed.
    #[serde(skip)]
    #[schemars(skip)]
    pub of_the_store: bool,
    /// Whether a budget of the run that asked is used up, so that the run is over.
    #[serde(skip)]
    #[schemars(skip)]
    pub used_up: bool,
    /// An act that was denied by it. A refusal undoes what was written before it, so this is told and counted after it.
    #[serde(skip)]
    #[schemars(skip)]
    pub denied: Option<Box<crate::request::DeniedAct>>,
}

impl Error {
    /// An error with a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
            field: None,
            retry_after_ms: None,
            needs_presence: false,
            incident: None,
            of_the_store: false,
            used_up: false,
            denied: None,
        }
    }

    /// A field of the input is wrong.
    pub fn invalid(field: &str, message: impl Into<String>) -> Self {
        Self { field: Some(field.to_owned()), ..Self::new(Code::Invalid, message) }
    }

    /// The credential does not allow it.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(Code::Forbidden, message)
    }

    /// A person has to show first that they are there.
    pub fn needs_presence(message: impl Into<String>) -> Self {
        Self { needs_presence: true, ..Self::forbidden(message) }
    }

    /// There is no such thing for this caller.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// It changed meanwhile, or does not fit its state.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Code::Conflict, message)
    }

    /// Too much at once.
    pub fn limited(message: impl Into<String>, retry_after_ms: u64) -> Self {
        Self { retry_after_ms: Some(retry_after_ms), ..Self::new(Code::Limited, message) }
    }

    /// A budget of the run that asks is used up.
    pub fn used_up(message: impl Into<String>) -> Self {
        Self { used_up: true, ..Self::forbidden(message) }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

impl From<deskmate_db::Error> for Error {
    fn from(error: deskmate_db::Error) -> Self {
        use deskmate_db::Kind;
        let text = error.to_string();
        match error.kind() {
            Kind::Unavailable | Kind::Closed => {
                Self { retry_after_ms: Some(1_000), of_the_store: true, ..Self::new(Code::Unavailable, format!("the store cannot be reached: {text}")) }
            }
            Kind::Unknown => Self { of_the_store: true, ..Self::new(Code::Unavailable, text) },
            Kind::Newer => Self::new(Code::Unavailable, text),
            Kind::Missing => Self::not_found(text),
            Kind::Full => {
                Self::new(Code::Unavailable, format!("the disk is full, nothing was written: {text}")).hint("free some space; the desk goes on by itself")
            }
            Kind::ReadOnly => Self::new(Code::Unavailable, format!("the store cannot be written: {text}"))
                .hint("check who owns the data directory and whether it is mounted read-only"),
            Kind::Busy => Self { of_the_store: true, ..Self::limited(format!("the store is busy: {text}"), 200) },
            Kind::Corrupt => {
                Self::new(Code::Internal, format!("the store is damaged: {text}")).hint("stop the desk, run `deskmate audit verify`, and restore a backup")
            }
            Kind::Constraint | Kind::Panicked | Kind::Other => Self::new(Code::Internal, text),
        }
    }
}
