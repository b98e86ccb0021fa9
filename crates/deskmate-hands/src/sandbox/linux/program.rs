//! The last stage: restricts itself, step by step, and becomes the program. Its standard error is the program's, so it
//! begins with one byte that says whether the program follows or a reason why not.

use super::{Done, Input, files, limits, seccomp, told, view};
use crate::sandbox::Argument;
use crate::sandbox::wire::{self, Job};
use rustix::process::{Signal, nice, set_parent_process_death_signal, setsid, umask};
use rustix::thread::{CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs};
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The first byte of standard error: the program follows.
pub(super) const READY: u8 = b'+';
/// The first byte of standard error: a reason follows.
pub(super) const FAILED: u8 = b'-';
/// The code of a program that could not be started, as shells have it.
const NOT_STARTED: i32 = 126;

/// Becomes the program, or says why not.
pub(super) fn become_program() -> Done {
    let ready = prepare();
    let mut error = io::stderr();
    match ready {
        Ok(mut command) => {
            error.write_all(&[READY]).map_err(told("answer"))?;
            let why = command.exec();
            drop(writeln!(error, "the program could not be started: {why}"));
            leave(NOT_STARTED)
        }
        Err(why) => {
            drop(error.write_all(&[FAILED]));
            Err(why)
        }
    }
}

#[expect(clippy::exit, reason = "this process is nobody's but its own, and its code is the answer")]
fn leave(code: i32) -> Done {
    std::process::exit(code)
}

fn prepare() -> Done<Command> {
    let job: Job = wire::receive(&mut Input).map_err(told("reading the job"))?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(told("binding to the supervisor"))?;
    setsid().map_err(told("starting a session"))?;
    // When memory runs out, the program goes first; when there is a lot to do, it goes last.
    fs::write("/proc/self/oom_score_adj", "1000").map_err(told("offering itself when memory runs out"))?;
    nice(5).map_err(told("stepping back"))?;
    umask(rustix::fs::Mode::from_raw_mode(0o077));
    keep_nothing_open()?;
    if let Some(root) = &job.view {
        view::move_in(&job, root).map_err(|error| format!("building the view: {error}"))?;
    }
    let mut command = Command::new(&job.spec.program);
    for argument in &job.spec.args {
        match argument {
            Argument::Word(word) => command.arg(word),
            Argument::Given(name) => command.arg(job.private.join(name)),
        };
    }
    command.env_clear();
    command.env("HOME", &job.private).env("TMPDIR", &job.private).envs(&job.spec.environment);
    std::env::set_current_dir(job.spec.directory.as_ref().unwrap_or(&job.private)).map_err(told("entering the directory"))?;
    let rules = files::rules(&job)?;
    let filters = seccomp::filters(&job)?;

    // From here on only less is possible.
    drop_capabilities()?;
    set_no_new_privs(true).map_err(told("giving up new privileges"))?;
    limits::set(&job)?;
    files::enter(rules)?;
    seccomp::enter(&filters)?;
    Ok(command)
}

/// Whatever is open besides the three standard streams closes when the program begins, and that is checked.
fn keep_nothing_open() -> Done {
    const CLOSES: u32 = 0o2_000_000;
    close_fds::set_fds_cloexec(3, &[]);
    for entry in fs::read_dir("/proc/self/fdinfo").map_err(told("listing open files"))? {
        let entry = entry.map_err(told("listing open files"))?;
        let number = entry.file_name();
        if number.to_string_lossy().parse::<u32>().is_ok_and(|number| number < 3) {
            continue;
        }
        let info = fs::read_to_string(entry.path()).map_err(told("reading an open file's flags"))?;
        let flags = info.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
        if flags.is_none_or(|flags| flags & CLOSES == 0) {
            return Err(format!("open file {} would be passed on", number.to_string_lossy()));
        }
    }
    Ok(())
}

fn drop_capabilities() -> Done {
    let none = CapabilitySet::empty();
    clear_ambient_capability_set().map_err(told("giving up capabilities"))?;
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none }).map_err(told("giving up capabilities"))
}
