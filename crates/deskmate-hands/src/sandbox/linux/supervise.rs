//! The stage that stays: starts the program's process, keeps what it writes up to its bound, watches time, memory and the
//! lifeline, and ends everything before it answers.

use super::program::{FAILED, READY};
use super::{Done, Input, told, tree};
use crate::sandbox::scratch;
use crate::sandbox::wire::{self, Answer, Job};
use crate::sandbox::{Ended, Limits, SUB_COMMAND, Stream};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, set_child_subreaper, waitid, waitpid};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often it looks, when nothing happens.
const TICK: Duration = Duration::from_millis(10);
/// How long it waits for the last output after the program has ended.
const DRAIN: Duration = Duration::from_secs(2);
/// How much is kept of the end of what a followed program writes.
const END: usize = 512 << 10;
/// How often it looks how much was written, where that is quickly found out.
const DISK: Duration = Duration::from_millis(100);

/// What can happen.
enum Event {
    Output(Vec<u8>),
    Errors(Vec<u8>),
    /// One of the two is at its end.
    Closed,
    /// It wrote more than it may.
    Full,
    /// The desk has died, or wants no more.
    Gone,
}

/// What failed, and when.
enum Failed {
    /// The program was not run.
    Before(String),
    /// It may have done anything that it was allowed.
    Meanwhile(String),
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self::Before(why)
    }
}

/// An output, up to its bound. Of a program that is followed the beginning is handed on, and the end is kept.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    total: u64,
}

impl Kept {
    fn add(&mut self, more: &[u8], bound: u64) {
        self.total = self.total.saturating_add(more.len() as u64);
        let room = usize::try_from(bound.saturating_sub(self.bytes.len() as u64)).unwrap_or(usize::MAX);
        self.bytes.extend(more.iter().take(room));
    }

    fn hand_on(&mut self, stream: Stream, more: &[u8], bound: u64) {
        let room = usize::try_from(bound.saturating_sub(self.total)).unwrap_or(usize::MAX);
        self.total = self.total.saturating_add(more.len() as u64);
        self.bytes.extend(more);
        if self.bytes.len() > 2 * END {
            self.bytes.drain(..self.bytes.len() - END);
        }
        let told = more.get(..room).unwrap_or(more);
        if told.is_empty() {
            return;
        }
        let mut desk = io::stdout().lock();
        let sent = wire::send(&mut desk, &Answer::Said { stream }).and_then(|()| wire::send_bytes(&mut desk, told)).and_then(|()| desk.flush());
        // Where the desk is gone the lifeline tells it too, and ends the program.
        drop(sent);
    }

    fn end(mut self) -> Vec<u8> {
        if self.bytes.len() > END {
            self.bytes.drain(..self.bytes.len() - END);
        }
        self.bytes
    }
}

/// Runs one job that comes over standard input, and answers over standard output.
pub(super) fn supervise(inside: bool) -> Done {
    close_fds::set_fds_cloexec(3, &[]);
    let job: Job = wire::receive(&mut Input).map_err(told("reading the job"))?;
    let input = wire::receive_bytes(&mut Input).map_err(told("reading the input"))?;
    // Whose parent ends becomes a child of this process, so nobody is lost sight of.
    set_child_subreaper(Some(getpid())).map_err(told("becoming the parent of orphans"))?;
    let (answer, stdout, stderr) = match run(&job, input) {
        Ok((answer, stdout, stderr)) if job.followed => (answer, stdout.end(), stderr.end()),
        Ok((answer, stdout, stderr)) => (answer, stdout.bytes, stderr.bytes),
        Err(Failed::Before(why)) => (Answer::NotRun { why }, Vec::new(), Vec::new()),
        Err(Failed::Meanwhile(why)) => return Err(why),
    };
    if let Answer::Ran { ended: Ended::Stopped, .. } = answer
        && let Some(directory) = job.private.parent()
    {
        // Perhaps the desk is no more, and nobody else would.
        scratch::remove(directory);
    }
    let mut desk = io::stdout().lock();
    wire::send(&mut desk, &answer)
        .and_then(|()| wire::send_bytes(&mut desk, &stdout))
        .and_then(|()| wire::send_bytes(&mut desk, &stderr))
        .and_then(|()| desk.flush())
        .map_err(told(if inside { "answering from inside" } else { "answering" }))
}

fn run(job: &Job, input: Vec<u8>) -> Result<(Answer, Kept, Kept), Failed> {
    let begun = Instant::now();
    let mut command = Command::new("/proc/self/exe");
    command.args([SUB_COMMAND, "program"]).env_clear();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(told("starting the program's process"))?;
    let leader = Pid::from_child(&child);
    let events = listen(&mut child, job, input)?;
    let mut watch = Watch { leader, limits: job.spec.limits, begun, scan: begun, peak: 0, status: None, verdict: None, asked: None, blind: None };
    let (mut stdout, mut stderr, mut open) = (Kept::default(), Kept::default(), 2);
    let mut first = None;
    let mut ended: Option<Instant> = None;
    loop {
        match events.recv_timeout(TICK) {
            Ok(Event::Output(more)) if job.followed => stdout.hand_on(Stream::Output, &more, watch.limits.output),
            Ok(Event::Output(more)) => stdout.add(&more, watch.limits.output),
            Ok(Event::Errors(more)) => {
                let said = if first.is_none() { more.get(1..).unwrap_or_default() } else { &more };
                first = first.or(more.first().copied());
                // Before the program follows, what is said is why it does not.
                if job.followed && first == Some(READY) {
                    stderr.hand_on(Stream::Errors, said, watch.limits.output);
                } else {
                    stderr.add(said, watch.limits.output.max(4096));
                }
            }
            Ok(Event::Closed) => open -= 1,
            Ok(Event::Gone) => watch.decide(Ended::Stopped),
            Ok(Event::Full) => watch.decide(Ended::Disk),
            Err(_) => {}
        }
        watch.look();
        if watch.verdict.is_some() {
            let since = *ended.get_or_insert_with(Instant::now);
            if watch.may_leave() {
                continue;
            }
            let over = watch.end();
            if (over && open == 0) || since.elapsed() > DRAIN.saturating_add(Duration::from_millis(watch.limits.grace_ms)) {
                break;
            }
        }
    }
    watch.look();
    if let Some(why) = watch.blind {
        return Err(Failed::Meanwhile(format!("the program could not be watched and was ended: {why}")));
    }
    if first != Some(READY) {
        let why = String::from_utf8_lossy(&stderr.bytes).trim().to_owned();
        // Stopped or timed out before it began is an end like any other.
        match (first, watch.verdict) {
            (None, Some(Ended::Stopped | Ended::TimedOut)) => {}
            (Some(FAILED), _) => return Err(why.into()),
            _ => return Err(format!("the program's process ended before the program began: {:?}; {why}", watch.status).into()),
        }
    }
    if !job.followed {
        stderr.bytes.truncate(usize::try_from(watch.limits.output).unwrap_or(usize::MAX));
    }
    let answer = Answer::Ran {
        ended: watch.verdict(),
        wall_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        cpu_ms: tree::cpu_ms(),
        peak_memory: watch.peak,
        stdout_total: stdout.total,
        stderr_total: stderr.total,
    };
    Ok((answer, stdout, stderr))
}

/// One thread for each stream, so that none of them can block another.
fn listen(child: &mut Child, job: &Job, input: Vec<u8>) -> Done<Receiver<Event>> {
    let missing = || "the program's process has no pipes".to_owned();
    // Short, so that a program that writes without end waits for its reader instead of filling the memory.
    let (send, events) = sync_channel(8);
    let (mut stdin, stdout, stderr) =
        (child.stdin.take().ok_or_else(missing)?, child.stdout.take().ok_or_else(missing)?, child.stderr.take().ok_or_else(missing)?);
    if job.spec.limits.disk < u64::MAX || job.spec.limits.files < u64::MAX {
        let (full, folders, limits) = (send.clone(), job.spec.read_write.iter().chain([&job.private]).cloned().collect::<Vec<_>>(), job.spec.limits);
        thread::spawn(move || watch_disk(&folders, limits, &full));
    }
    let job = job.clone();
    thread::spawn(move || wire::send(&mut stdin, &job).and_then(|()| stdin.write_all(&input)));
    forward(stdout, send.clone(), Event::Output);
    forward(stderr, send.clone(), Event::Errors);
    thread::spawn(move || {
        // The desk sends nothing more: whatever comes is the end.
        let mut byte = [0];
        drop(Input.read(&mut byte));
        send.send(Event::Gone)
    });
    Ok(events)
}

/// Says when more was written than allowed.
fn watch_disk(folders: &[PathBuf], limits: Limits, full: &SyncSender<Event>) {
    loop {
        let begun = Instant::now();
        let (mut bytes, mut files) = (0_u64, 0_u64);
        for folder in folders {
            sum(folder, limits, &mut bytes, &mut files);
        }
        if bytes > limits.disk || files > limits.files {
            drop(full.send(Event::Full));
            return;
        }
        thread::sleep(DISK.max(begun.elapsed().saturating_mul(4)));
    }
}

/// Adds up what a folder holds, until it is too much. Symbolic links are not followed; what vanishes meanwhile does not count.
fn sum(folder: &Path, limits: Limits, bytes: &mut u64, files: &mut u64) {
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            *files = files.saturating_add(1);
            // What takes up room, not how long a file says that it is.
            *bytes = bytes.saturating_add(found.blocks().saturating_mul(512));
            if *bytes > limits.disk || *files > limits.files {
                return;
            }
            if found.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
}

fn forward(mut from: impl Read + Send + 'static, to: SyncSender<Event>, event: fn(Vec<u8>) -> Event) {
    thread::spawn(move || {
        let mut buffer = vec![0; 32 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.send(event(buffer.get(..count).unwrap_or_default().to_vec())).is_err() {
                return;
            }
        }
        drop(to.send(Event::Closed));
    });
}

/// What is watched while a program runs.
struct Watch {
    leader: Pid,
    limits: Limits,
    begun: Instant,
    /// When the memory is counted next.
    scan: Instant,
    peak: u64,
    status: Option<WaitStatus>,
    /// Why it ends; the first reason counts.
    verdict: Option<Ended>,
    /// When it was asked to end.
    asked: Option<Instant>,
    /// Why nobody knows what it holds: then it ends too.
    blind: Option<io::Error>,
}

impl Watch {
    fn decide(&mut self, ended: Ended) {
        self.verdict.get_or_insert(ended);
    }

    fn look(&mut self) {
        // While it has ended but nobody has taken leave of it, its number is nobody else's, and neither is its group's.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self.status.is_none() && matches!(waitid(WaitId::Pid(self.leader), ended), Ok(Some(_))) {
            tree::end_group(self.leader);
            if let Ok(Some((_, status))) = waitpid(Some(self.leader), WaitOptions::NOHANG) {
                self.status = Some(status);
                self.decide(how(status, self.limits.cpu_seconds));
            }
        }
        if self.begun.elapsed() >= Duration::from_millis(self.limits.wall_ms) {
            self.decide(Ended::TimedOut);
        }
        let now = Instant::now();
        if self.verdict.is_none() && now >= self.scan {
            tree::take_leave(self.leader);
            match tree::memory() {
                Ok(held) => self.peak = self.peak.max(held),
                Err(error) => self.blind = Some(error),
            }
            if self.peak > self.limits.memory || self.blind.is_some() {
                self.decide(Ended::Memory);
            }
            // On a machine with many processes counting takes longer, and is done less often.
            self.scan = Instant::now() + TICK.max(now.elapsed().saturating_mul(8));
        }
    }

    /// Asks a program to end that is stopped or takes too long; answers whether it still may take its time for it.
    fn may_leave(&mut self) -> bool {
        if self.limits.grace_ms == 0 || self.status.is_some() || !matches!(self.verdict, Some(Ended::Stopped | Ended::TimedOut)) {
            return false;
        }
        let asked = *self.asked.get_or_insert_with(|| {
            tree::ask_group(self.leader);
            Instant::now()
        });
        asked.elapsed() < Duration::from_millis(self.limits.grace_ms)
    }

    /// Ends everything; answers whether all has ended.
    fn end(&mut self) -> bool {
        if self.status.is_none() {
            tree::end_group(self.leader);
        }
        let none_left = tree::end_descendants();
        tree::take_leave(self.leader);
        none_left && self.status.is_some()
    }

    fn verdict(&self) -> Ended {
        self.verdict.unwrap_or(Ended::TimedOut)
    }
}

fn how(status: WaitStatus, cpu_seconds: u64) -> Ended {
    let Some(signal) = status.terminating_signal() else {
        return Ended::Exited { code: status.exit_status().unwrap_or(-1) };
    };
    // The kernel's bound goes by ticks and this sum by measured time, which can be a good deal less.
    let used = tree::cpu_ms() / 700 >= cpu_seconds;
    if signal == Signal::XCPU.as_raw() || (signal == Signal::KILL.as_raw() && used) { Ended::CpuTime } else { Ended::Signalled { signal } }
}
