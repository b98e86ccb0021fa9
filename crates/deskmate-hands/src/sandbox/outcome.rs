//! What became of a program.

use serde::{Deserialize, Serialize};

/// What became of a program that ran.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// What it wrote to its standard output.
    pub stdout: Captured,
    /// What it wrote to its standard error.
    pub stderr: Captured,
    /// Milliseconds from start to end.
    pub wall_ms: u64,
    /// Milliseconds of processor time, of all its processes that were seen to end.
    pub cpu_ms: u64,
    /// The most memory that all its processes were seen to hold, in bytes.
    pub peak_memory: u64,
    /// Whether it ran in namespaces of its own, besides the restrictions that every run has.
    pub namespaces: bool,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ended {
    /// By itself, with this code. 126 with a line on standard error also says that it could not be started.
    Exited {
        /// The code.
        code: i32,
    },
    /// By a signal that the sandbox did not send; 31 (`SIGSYS`) is a system call of a foreign kind.
    Signalled {
        /// The signal.
        signal: i32,
    },
    /// It took too long and was ended.
    TimedOut,
    /// It used more processor time than allowed and was ended.
    CpuTime,
    /// It held more memory than allowed and was ended. A single allocation beyond the address space fails inside the
    /// program instead, which then ends as it likes.
    Memory,
    /// It wrote more than allowed and was ended.
    Disk,
    /// It was stopped from the desk.
    Stopped,
}

/// One of the two things that a program writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
}

/// What was kept of an output.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Captured {
    /// The first bytes.
    pub bytes: Vec<u8>,
    /// How many bytes were written in all.
    pub total: u64,
    /// Whether some were dropped.
    pub truncated: bool,
}

/// Why a program did not run, or why nobody knows what became of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine cannot keep the bounds; nothing was run.
    #[error("this machine cannot confine a program, so nothing was run: {}", missing.join("; "))]
    Refused {
        /// What is missing, in words.
        missing: Vec<String>,
    },
    /// The spec asks for what cannot be; nothing was run.
    #[error("{what}")]
    Invalid {
        /// What is wrong, in words.
        what: String,
    },
    /// The sandbox could not be set up; the program was not run.
    #[error("the sandbox could not be set up, so the program was not run: {why}")]
    Setup {
        /// What failed, in words.
        why: String,
    },
    /// The sandbox ended without an answer: the program may have run, and all of it was ended.
    #[error("the sandbox ended without an answer: {why}")]
    Lost {
        /// What is known of it.
        why: String,
    },
    /// The desk could not start the sandbox.
    #[error("the sandbox could not be started: {0}")]
    Io(#[from] std::io::Error),
}
