//! System calls by seccomp. Two filters, of which the stricter answer counts:
//!
//! - the first lets through what ordinary programs need and answers everything else as a kernel would that does not know
//!   it, so that what is unknown today, and the 32-bit kind of numbers on x86-64, is closed too; a call of a foreign
//!   architecture ends the program;
//! - the second says "not permitted" where a program should be told so, and looks at arguments.

use super::syscalls::{ALLOWED, FCHMODAT2, FORBIDDEN, METADATA, NETWORKING, SESSIONS};
use super::{Done, told};
use crate::sandbox::Network;
use crate::sandbox::wire::Job;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Test = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

/// The bits of a mode by which a file runs as its owner or its group, for whoever executes it.
const SET_ID: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];
/// The kinds of namespaces that `clone` makes.
const NAMESPACES: [libc::c_int; 7] =
    [libc::CLONE_NEWNS, libc::CLONE_NEWCGROUP, libc::CLONE_NEWUTS, libc::CLONE_NEWIPC, libc::CLONE_NEWUSER, libc::CLONE_NEWPID, libc::CLONE_NEWNET];
/// What may be asked of an open file besides reading and writing: whether it is a terminal and how wide, how much waits in
/// it, whether it blocks, whether it stays open. Everything else could change a file that may only be read, or type into
/// a terminal. In order: `TCGETS`, `TCGETS2`, `TIOCGWINSZ`, `TIOCGPGRP`, `FIONREAD`, `FIONBIO`, `FIONCLEX`, `FIOCLEX`.
const REQUESTS: [u64; 8] = [0x5401, 0x802c_542a, 0x5413, 0x540f, 0x541b, 0x5421, 0x5450, 0x5451];
/// The part of a socket's type that is not a flag.
const TYPE: u64 = 0xf;

/// The filters for a job.
pub(super) fn filters(job: &Job) -> Done<[BpfProgram; 2]> {
    let network = job.spec.network;
    Ok([first(network)?, second(network, job.view.is_some())?])
}

/// Enters the filters, for good.
pub(super) fn enter(filters: &[BpfProgram; 2]) -> Done {
    // Of two refusals the one that was entered last is told.
    filters.iter().try_for_each(|filter| seccompiler::apply_filter(filter).map_err(told("entering seccomp")))
}

/// Whether filters can be entered here; this process is restricted afterwards.
pub(super) fn probe() -> Done {
    enter(&[first(Network::Allowed)?, second(Network::Allowed, false)?])
}

fn first(network: Network) -> Done<BpfProgram> {
    let mut rules = Rules::new();
    for number in ALLOWED.iter().chain(METADATA).chain(SESSIONS) {
        rules.insert(*number, Vec::new());
    }
    // A stream between two ends of one's own leads nowhere else; a datagram socket can be pointed at any address.
    add(&mut rules, libc::SYS_socketpair, &[(0, Dword, Eq, word(libc::AF_UNIX)), (1, Dword, MaskedEq(TYPE), word(libc::SOCK_STREAM))])?;
    if network != Network::None {
        for number in NETWORKING {
            rules.insert(*number, Vec::new());
        }
        // Landlock keeps ports of TCP only. Another protocol over a stream has no port that it knows.
        let (kinds, protocols): (&[_], &[_]) = match network {
            Network::Allowed => (&[libc::SOCK_STREAM, libc::SOCK_DGRAM], &[]),
            _ => (&[libc::SOCK_STREAM], &[0, libc::IPPROTO_TCP]),
        };
        for family in [libc::AF_INET, libc::AF_INET6] {
            for kind in kinds {
                let socket = [(0, Dword, Eq, word(family)), (1, Dword, MaskedEq(TYPE), word(*kind))];
                if protocols.is_empty() {
                    add(&mut rules, libc::SYS_socket, &socket)?;
                }
                for protocol in protocols {
                    let [family, kind] = socket.clone();
                    add(&mut rules, libc::SYS_socket, &[family, kind, (2, Dword, Eq, word(*protocol))])?;
                }
            }
        }
    }
    build(rules, SeccompAction::Errno(libc::ENOSYS.unsigned_abs()), SeccompAction::Allow)
}

fn second(network: Network, view: bool) -> Done<BpfProgram> {
    let mut rules = Rules::new();
    for number in FORBIDDEN {
        rules.insert(*number, Vec::new());
    }
    if network == Network::None {
        for number in NETWORKING.iter().chain(&[libc::SYS_socket]) {
            rules.insert(*number, Vec::new());
        }
        add(&mut rules, libc::SYS_sendto, &[(4, Qword, Ne, 0)])?;
    } else {
        add(&mut rules, libc::SYS_socket, &[(0, Dword, Ne, word(libc::AF_INET)), (0, Dword, Ne, word(libc::AF_INET6))])?;
    }
    if let Network::Port(_) = network {
        // A first packet that carries data connects without being asked where to.
        for (number, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            add(&mut rules, number, &[(flags, Dword, MaskedEq(word(libc::MSG_FASTOPEN)), word(libc::MSG_FASTOPEN))])?;
        }
    }
    for kind in NAMESPACES {
        add(&mut rules, libc::SYS_clone, &[(0, Dword, MaskedEq(word(kind)), word(kind))])?;
    }
    add(&mut rules, libc::SYS_ioctl, &REQUESTS.map(|request| (1, Dword, Ne, request)))?;
    // The bounds, the priority and the processors of other processes of the same account, which Landlock does not know of.
    // Which process is the first argument, and nought is oneself.
    add(&mut rules, libc::SYS_prlimit64, &[(0, Dword, Ne, 0)])?;
    add(&mut rules, libc::SYS_sched_setaffinity, &[(0, Dword, Ne, 0)])?;
    add(&mut rules, libc::SYS_setpriority, &[(0, Dword, Ne, 0)])?;
    add(&mut rules, libc::SYS_setpriority, &[(1, Dword, Ne, 0)])?;
    set_id(&mut rules)?;
    if !view {
        // Landlock does not know of these: without a view of its own they would reach any file, and a session of its own
        // would be out of reach.
        for number in METADATA.iter().chain(SESSIONS) {
            rules.insert(*number, Vec::new());
        }
    }
    build(rules, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM.unsigned_abs()))
}

/// No file that runs as its owner is made: another account could execute it, outside of every sandbox.
fn set_id(rules: &mut Rules) -> Done {
    for bit in SET_ID {
        let is = |argument: u8| (argument, Dword, MaskedEq(u64::from(bit)), u64::from(bit));
        add(rules, libc::SYS_fchmod, &[is(1)])?;
        add(rules, libc::SYS_fchmodat, &[is(2)])?;
        add(rules, FCHMODAT2, &[is(2)])?;
        add(rules, libc::SYS_mknodat, &[is(2)])?;
        // The mode counts only when a file is made; otherwise it may be anything.
        for make in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
            let make = |argument: u8| (argument, Dword, MaskedEq(word(make)), word(make));
            add(rules, libc::SYS_openat, &[make(2), is(3)])?;
            #[cfg(target_arch = "x86_64")]
            add(rules, libc::SYS_open, &[make(1), is(2)])?;
        }
        #[cfg(target_arch = "x86_64")]
        for number in [libc::SYS_chmod, libc::SYS_creat, libc::SYS_mknod] {
            add(rules, number, &[is(1)])?;
        }
    }
    Ok(())
}

/// A constant of the C library, all of which are positive here.
fn word(value: libc::c_int) -> u64 {
    u64::from(value.unsigned_abs())
}

/// A call that meets all of these tests matches; a call has as many rules as are added.
fn add(rules: &mut Rules, number: i64, tests: &[Test]) -> Done {
    let conditions = tests.iter().map(|(argument, length, operator, value)| SeccompCondition::new(*argument, length.clone(), operator.clone(), *value));
    let conditions = conditions.collect::<Result<Vec<_>, _>>().map_err(told("preparing seccomp"))?;
    rules.entry(number).or_default().push(SeccompRule::new(conditions).map_err(told("preparing seccomp"))?);
    Ok(())
}

fn build(rules: Rules, otherwise: SeccompAction, matched: SeccompAction) -> Done<BpfProgram> {
    let processor: TargetArch = std::env::consts::ARCH.try_into().map_err(told("preparing seccomp"))?;
    if !matches!(processor, TargetArch::x86_64 | TargetArch::aarch64) {
        return Err("preparing seccomp: this processor's system calls are not known".into());
    }
    let filter = SeccompFilter::new(rules, otherwise, matched, processor).map_err(told("preparing seccomp"))?;
    filter.try_into().map_err(told("preparing seccomp"))
}
