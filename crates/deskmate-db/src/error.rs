//! One error for both engines: a kind to act on and a text to read. It is `Clone`, because every write of a failed
//! batch is told the same.

use std::fmt;

/// What went wrong, as far as a caller can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The database cannot be reached now; trying again later is safe.
    Unavailable,
    /// The connection broke while the commit was under way, so nobody knows whether it took place.
    Unknown,
    /// The disk or the file-size limit is full; nothing of the batch was written.
    Full,
    /// The file or directory cannot be written.
    ReadOnly,
    /// The stored bytes are not a sound database.
    Corrupt,
    /// Other writers kept getting in the way.
    Busy,
    /// A rule of the schema was violated.
    Constraint,
    /// The store was written by a newer version of the program.
    Newer,
    /// There is no store where there must be one.
    Missing,
    /// The closure panicked; its own work was rolled back.
    Panicked,
    /// The database was closed while the work waited.
    Closed,
    /// Anything else: a bug in a statement or a type.
    Other,
}

/// A failure of the store.
#[derive(Clone, Debug)]
pub struct Error {
    kind: Kind,
    message: String,
}

impl Error {
    /// Builds an error of a kind, with a text for people.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// What a caller can act on.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let kind = match error.sqlite_error_code() {
            Some(Code::DiskFull | Code::TooBig) => Kind::Full,
            Some(Code::SystemIoFailure | Code::CannotOpen) => Kind::Unavailable,
            Some(Code::ReadOnly | Code::PermissionDenied) => Kind::ReadOnly,
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Kind::Corrupt,
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Kind::Busy,
            Some(Code::ConstraintViolation) => Kind::Constraint,
            _ => Kind::Other,
        };
        Self::new(kind, format!("SQLite: {error}"))
    }
}

impl From<postgres::Error> for Error {
    fn from(error: postgres::Error) -> Self {
        let kind = match error.code().map(postgres::error::SqlState::code) {
            // Without a state the server never answered: the connection is gone.
            None => Kind::Unavailable,
            Some("40001" | "40P01" | "55P03") => Kind::Busy,
            Some("53100") => Kind::Full,
            Some("25006") => Kind::ReadOnly,
            Some("XX001" | "XX002") => Kind::Corrupt,
            Some(code) if code.starts_with("23") => Kind::Constraint,
            Some(code) if code.starts_with("57") || code.starts_with("08") || code.starts_with("53") => Kind::Unavailable,
            Some(_) => Kind::Other,
        };
        let detail = error.as_db_error().map_or_else(|| error.to_string(), |db| db.message().to_owned());
        Self::new(kind, format!("PostgreSQL: {detail}"))
    }
}
