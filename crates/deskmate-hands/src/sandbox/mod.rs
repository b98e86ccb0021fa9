//! Runs a program for an agent with no more than it was given: the files, the network, the time, the memory and the
//! environment that a [`Spec`] names, and nothing else of the desk or of its machine.
//!
//! How it holds, on Linux:
//!
//! ```text
//! the desk ──pipe──▶ outer ───────▶ supervise ──────▶ program
//!                    makes the      reads output,      restricts itself and
//!                    namespaces     counts memory,     becomes the program
//!                    (where there   watches the clock,
//!                    are any)       ends everything
//! ```
//!
//! All three are the desk's own binary, started again with a hidden sub-command ([`enter`]), because a process that
//! restricts itself needs no privilege and no unsafe code. The pipe is also the lifeline: when the desk dies or gives up,
//! it closes, and the supervisor ends everything that it started.
//!
//! Every bound is kept twice where the machine allows it: files by Landlock and by a view of the file system that holds
//! only what was granted, the network by seccomp and by an empty network of its own, other processes by Landlock and by a
//! process namespace. What a machine cannot keep is told by [`Runner::capabilities`], and [`Runner::run`] refuses rather
//! than run with less.

mod outcome;
mod python;
mod report;
mod runner;
mod scratch;
mod spec;
mod stop;
mod wire;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod linux;

pub use outcome::{Captured, Ended, Error, Outcome, Stream};
pub use python::python_spec;
pub use report::Report;
pub use runner::{Namespaces, Runner, Said};
pub use scratch::remove;
pub use spec::{Argument, GivenFile, Limits, Meant, Network, Spec};
pub use stop::Stop;

use std::ffi::OsString;
use std::process::ExitCode;

/// The hidden sub-command by which the binary is started again inside the sandbox.
pub const SUB_COMMAND: &str = "sandbox-child";

/// Whether this kind of machine is known here at all: its system calls are listed by name.
const SUPPORTED: bool = cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")));

/// To be called first in `main`, before any thread is started, with the program's own arguments. Answers `None` for an
/// ordinary start; otherwise this process was a part of a sandbox and `main` returns what is answered.
pub fn enter(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.into_iter().skip(1);
    if args.next()? != SUB_COMMAND {
        return None;
    }
    let words: Vec<String> = args.map(|word| word.to_string_lossy().into_owned()).collect();
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    return Some(linux::stage(&words));
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    return Some(if words.is_empty() { ExitCode::FAILURE } else { ExitCode::from(2) });
}
