//! Other processes, and the kernel.

use crate::bench::{Bench, ordinary, text, ways};
use deskmate_hands::sandbox::Ended;
use std::fs;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Stdio};

/// A process of the same account, with a secret in its environment.
struct Victim(Child);

impl Victim {
    fn start() -> Self {
        let mut command = ordinary("/usr/bin/python3");
        command.args(["-c", "print('up', flush=True); import sys; sys.stdin.read()"]).env("TOKEN", "dma_secret");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 2]).unwrap();
        Self(child)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn another_process_is_neither_read_nor_traced_nor_signalled() {
    let bench = Bench::new();
    let mut victim = Victim::start();
    let id = victim.0.id();
    bench.only_outside(&format!("text = open('/proc/{id}/environ').read(); assert 'dma_secret' in text; print('done')"));
    bench.only_outside(&format!("import os; os.listdir('/proc/{id}/fd'); print('done')"));
    bench.only_outside(&format!("import os; os.kill({id}, 0); print('done')"));
    bench.only_outside(&format!("import os, signal; signal.pidfd_send_signal(os.pidfd_open({id}), 0); print('done')"));
    let call =
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\ndef call(*a):\n  if libc.syscall(*a) < 0: raise OSError(ctypes.get_errno(), 'refused')\n";
    let (trace, read) = if cfg!(target_arch = "x86_64") { (101, 310) } else { (117, 270) };
    let seize = format!("{call}call({trace}, 0x4206, {id}, 0, 0); print('done')");
    // Some systems keep an account from tracing its own processes, sandbox or not.
    if fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").is_ok_and(|scope| scope.trim() != "0") {
        bench.never_inside(&seize);
    } else {
        bench.only_outside(&seize);
    }
    // What an account may do to its other processes, and no module of the kernel keeps it from.
    bench.only_outside(&format!("import resource; resource.prlimit({id}, resource.RLIMIT_NOFILE, (512, 512)); print('done')"));
    bench.only_outside(&format!("import os; os.setpriority(os.PRIO_PROCESS, {id}, 3); print('done')"));
    bench.never_inside("import os; os.setpriority(os.PRIO_USER, 0, 10); print('done')");
    bench.only_outside(&format!("import os; os.sched_setaffinity({id}, os.sched_getaffinity({id})); print('done')"));
    bench.never_inside(&format!("{call}call({read}, {id}, 0, 0, 0, 0, 0); print('done')"));
    bench.never_inside(&format!("import os, signal; os.kill({id}, signal.SIGKILL); print('done')"));
    bench.never_inside("import os, signal; os.kill(os.getppid() or 1, signal.SIGKILL); print('done')");
    assert!(victim.0.try_wait().unwrap().is_none(), "the victim lives");
}

#[test]
fn killing_all_it_can_reach_ends_only_itself() {
    let bench = Bench::new();
    let mut victim = Victim::start();
    for way in ways() {
        // Without namespaces it may not even signal its own group's outsiders; with them there is nobody else.
        let outcome = bench.run(&bench.python("import os, signal, time\ntry: os.kill(-1, signal.SIGKILL)\nexcept OSError: pass\nprint('alone')"), way);
        assert!(matches!(outcome.ended, Ended::Exited { code: 0 } | Ended::Signalled { signal: 9 }), "{way:?} {:?}", outcome.ended);
        assert!(victim.0.try_wait().unwrap().is_none(), "the victim lives");
    }
}

#[test]
fn the_supervisor_is_out_of_reach() {
    let bench = Bench::new();
    for way in ways() {
        for act in
            ["open('/proc/%d/environ' % os.getppid()).read()", "os.listdir('/proc/%d/fd' % os.getppid())", "os.kill(os.getppid(), 9)", "os.listdir('/proc')"]
        {
            let outcome = bench.run(&bench.python(&format!("import os; {act}; print('done')")), way);
            assert_eq!(outcome.ended, Ended::Exited { code: 1 }, "{way:?} {act}");
        }
    }
}

#[test]
fn files_that_the_desk_had_open_are_not_passed_on() {
    let bench = Bench::new();
    let secret = fs::File::open(bench.path("home/secret")).unwrap();
    // Kept open for every child, as a careless library would.
    rustix::io::fcntl_setfd(secret.as_fd(), rustix::io::FdFlags::empty()).unwrap();
    let number = secret.as_raw_fd();
    let code = format!("import os; print(os.pread({number}, 10, 0).decode())");
    assert_eq!(text(&bench.outside(&code).stdout), "the secret\n");
    bench.never_inside(&code);
    for way in ways() {
        let open = "import os\ndef is_open(n):\n  try: os.fstat(n); return True\n  except OSError: return False\nprint([n for n in range(256) if is_open(n)])";
        assert_eq!(bench.prints(&bench.python(open), way), "[0, 1, 2]\n", "{way:?}");
    }
}

#[test]
fn calls_that_lead_out_are_refused() {
    let bench = Bench::new();
    // By number: the names are not all in the C library.
    let (mount, unshare, setns, keyctl, add_key, bpf, perf, userfault, by_handle, module, clone, chroot) = if cfg!(target_arch = "x86_64") {
        (165, 272, 308, 250, 248, 321, 298, 323, 304, 175, 56, 161)
    } else {
        (40, 97, 268, 219, 217, 280, 241, 282, 265, 105, 220, 51)
    };
    let uring = 425;
    let new_mount_api = 428;
    for (number, args, errno) in [
        (mount, "0, 0, 0, 0, 0", "EPERM"),
        (unshare, "0x10000000", "EPERM"),
        (unshare, "0x00020000", "EPERM"),
        (setns, "0, 0", "EPERM"),
        (clone, "0x10000011, 0, 0, 0, 0", "EPERM"),
        (clone, "0x40000011, 0, 0, 0, 0", "EPERM"),
        (435, "0, 0", "ENOSYS"),
        (keyctl, "0, -3, 0", "EPERM"),
        (add_key, "b'user', b'x', b'x', 1, -3", "EPERM"),
        (bpf, "0, 0, 0", "EPERM"),
        (perf, "0, 0, -1, -1, 0", "EPERM"),
        (userfault, "0", "EPERM"),
        (by_handle, "0, 0, 0", "EPERM"),
        (module, "0, 0, 0", "EPERM"),
        (uring, "1, 0", "EPERM"),
        (new_mount_api, "0, 0, 0", "EPERM"),
        (chroot, "b'.'", "EPERM"),
        (437, "0, 0, 0, 0", "ENOSYS"),
        (9999, "0", "ENOSYS"),
    ] {
        let code = format!(
            "import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\nr = libc.syscall({number}, {args})\nprint(r, errno.errorcode.get(ctypes.get_errno()))"
        );
        for way in ways() {
            assert_eq!(bench.prints(&bench.python(&code), way), format!("-1 {errno}\n"), "{way:?}: call {number}({args})");
        }
    }
    // Without the sandbox this very call is possible, so the filter is what refuses it.
    let outside =
        bench.outside(&format!("import ctypes; print(ctypes.CDLL(None).syscall({keyctl}, 0, -3, 0) > -2, ctypes.CDLL(None).syscall({unshare}, 0x10000000))"));
    assert_eq!(text(&outside.stdout), "True 0\n");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_a_foreign_architecture_end_it() {
    let bench = Bench::new();
    // mov eax, 20; int 0x80; ret: the 32-bit `getpid`.
    let code = "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7); m.write(bytes.fromhex('b814000000cd80c3'))\nf = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nprint(f() > 0)";
    for way in ways() {
        let outcome = bench.run(&bench.python(code), way);
        assert!(matches!(outcome.ended, Ended::Signalled { signal: 31 | 11 }), "{way:?} {:?} {}", outcome.ended, text(&outcome.stderr.bytes));
    }
    // The x32 numbers of ordinary calls, which a list of forbidden numbers would forget.
    let x32 = "import ctypes, errno; l = ctypes.CDLL(None, use_errno=True); print(l.syscall(0x40000000 | 39), errno.errorcode[ctypes.get_errno()])";
    for way in ways() {
        assert_eq!(bench.prints(&bench.python(x32), way), "-1 ENOSYS\n");
    }
}
