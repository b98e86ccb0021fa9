//! Programs that want too much.

use crate::bench::{Bench, alive, text, ways};
use deskmate_hands::sandbox::Ended;
use std::time::{Duration, Instant};

#[test]
fn too_much_memory_ends_it() {
    let bench = Bench::new();
    for way in ways() {
        for code in [
            "a = []\nwhile True: a.append(bytearray(b'x') * (1 << 20))",
            // Shared memory, which is not a process's own.
            "import mmap\na = []\nwhile True:\n  m = mmap.mmap(-1, 1 << 20); m.write(b'x' * (1 << 20)); a.append(m)",
            // By many that are each within the bound.
            "import os, time\nfor _ in range(8):\n  if os.fork() == 0:\n    x = bytearray(b'x') * (20 << 20); time.sleep(20); os._exit(0)\ntime.sleep(20)",
        ] {
            let mut spec = bench.python(code);
            spec.limits.memory = 100 << 20;
            let outcome = bench.run(&spec, way);
            assert_eq!(outcome.ended, Ended::Memory, "{way:?} {}\n{code}", text(&outcome.stderr.bytes));
            assert!(outcome.peak_memory > 100 << 20);
        }
        let mut spec = bench.python("try: bytearray(8 << 30)\nexcept MemoryError: print('refused')");
        spec.limits.address_space = 1 << 30;
        assert_eq!(bench.prints(&spec, way), "refused\n");
    }
}

#[test]
fn too_much_processor_time_ends_it() {
    let bench = Bench::new();
    for way in ways() {
        for code in ["while True: pass", "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"] {
            let mut spec = bench.python(code);
            spec.limits.cpu_seconds = 1;
            let outcome = bench.run(&spec, way);
            assert_eq!(outcome.ended, Ended::CpuTime, "{way:?} {code}");
            assert!(outcome.cpu_ms >= 500, "{}", outcome.cpu_ms);
        }
    }
}

#[test]
fn too_long_ends_it_with_what_it_said() {
    let bench = Bench::new();
    for way in ways() {
        let mut spec = bench.python("import time, signal\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\nprint('begun'); time.sleep(60)");
        spec.limits.wall_ms = 700;
        let begun = Instant::now();
        let outcome = bench.run(&spec, way);
        assert_eq!(outcome.ended, Ended::TimedOut);
        assert_eq!(text(&outcome.stdout.bytes), "begun\n");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn output_without_end_ends_in_time() {
    let bench = Bench::new();
    for way in ways() {
        let mut spec = bench.python("import os\nb = b'x' * 65536\nwhile True: os.write(1, b); os.write(2, b)");
        spec.limits.wall_ms = 1000;
        let outcome = bench.run(&spec, way);
        assert_eq!(outcome.ended, Ended::TimedOut);
        assert!(outcome.stdout.truncated && outcome.stdout.total > 10 << 20 && outcome.stdout.bytes.len() == 256 << 10, "{}", outcome.stdout.total);
    }
}

#[test]
fn a_fork_bomb_is_bounded_and_gone() {
    let bench = Bench::new();
    for way in ways() {
        let mut spec = bench.python("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass");
        spec.limits.wall_ms = 1500;
        spec.args.push(format!("bomb-{:?}-{}", way, std::process::id()).into());
        let outcome = bench.run(&spec, way);
        assert!(matches!(outcome.ended, Ended::TimedOut | Ended::Memory), "{:?}", outcome.ended);
        assert_eq!(alive(&format!("bomb-{:?}-{}", way, std::process::id())), Vec::<String>::new());

        let mut spec = bench.python("import os, time\nn = 0\ntry:\n  while n < 500:\n    if os.fork() == 0: time.sleep(30); os._exit(0)\n    n += 1\nexcept BlockingIOError: pass\nprint(n)");
        spec.limits.processes = 20;
        let count: u32 = bench.prints(&spec, way).trim().parse().unwrap();
        assert!((5..60).contains(&count), "{way:?} {count}");
    }
}

#[test]
fn one_that_always_flees_into_a_child_is_caught() {
    let bench = Bench::new();
    for way in ways() {
        // The parent is gone before anybody could end it; the child does the same.
        let mut spec = bench.python("import os\nif os.fork(): os._exit(0)\nwhile True:\n  try:\n    if os.fork(): os._exit(0)\n  except OSError: pass");
        let word = format!("flee-{:?}-{}", way, std::process::id());
        spec.args.push(word.clone().into());
        let outcome = bench.run(&spec, way);
        assert_eq!(outcome.ended, Ended::Exited { code: 0 });
        assert_eq!(alive(&word), Vec::<String>::new(), "{way:?}");
    }
}

#[test]
fn too_large_a_file_is_refused() {
    let bench = Bench::new();
    for way in ways() {
        let mut spec =
            bench.python("f = open('x', 'wb')\ntry:\n  for _ in range(64): f.write(b'x' * (1 << 20)); f.flush()\nexcept OSError as e: print(e.strerror)");
        spec.limits.file_size = 8 << 20;
        assert_eq!(bench.prints(&spec, way), "File too large\n");
    }
}

#[test]
fn writing_more_than_allowed_ends_it_and_so_do_too_many_files() {
    let bench = Bench::new();
    let much = "import time\nfor n in range(10000):\n  open(f'f{n}', 'wb').write(b'x' * 100000); time.sleep(0.002)";
    let many = "import time\nfor n in range(100000):\n  open(f'f{n}', 'wb').close()\n  if n % 100 == 0: time.sleep(0.01)";
    for way in ways() {
        for (code, disk, files) in [(much, 5 << 20, u64::MAX), (many, u64::MAX, 2_000)] {
            let mut spec = bench.python(code);
            (spec.limits.disk, spec.limits.files) = (disk, files);
            assert_eq!(bench.run(&spec, way).ended, Ended::Disk, "{way:?}");
        }
        let mut spec = bench.python("open('f', 'wb').write(b'x' * 100000); print('done')");
        spec.limits.disk = 5 << 20;
        assert_eq!(bench.prints(&spec, way), "done\n");
    }
}

#[test]
fn who_takes_too_long_is_asked_to_end_before_it_is_ended() {
    let bench = Bench::new();
    let polite = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), sys.exit(0)))\ntime.sleep(60)";
    let stubborn = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('stays', flush=True)\nwhile True: time.sleep(1)";
    for way in ways() {
        for (code, says) in [(polite, "bye\n"), (stubborn, "stays\n")] {
            let mut spec = bench.python(code);
            (spec.limits.wall_ms, spec.limits.grace_ms) = (1_500, 700);
            let outcome = bench.run(&spec, way);
            assert_eq!((outcome.ended, text(&outcome.stdout.bytes).as_str()), (Ended::TimedOut, says), "{way:?}");
            assert!(outcome.wall_ms < 20_000, "{}", outcome.wall_ms);
        }
    }
}

#[test]
fn what_it_writes_is_executed_only_where_that_is_said() {
    let bench = Bench::new();
    let code = "import os, shutil, subprocess, sys\nplace = sys.argv[1] + '/own'\nshutil.copyfile('/usr/bin/true', place)\nos.chmod(place, 0o700) if os.stat(place).st_mode & 0o100 == 0 else None\nsubprocess.run([place], check=True)\nprint('done')";
    let way = deskmate_hands::sandbox::Namespaces::Required;
    if ways().all(|known| known != way) {
        return;
    }
    for execute in [false, true] {
        let mut spec = bench.python(code);
        let folder = bench.path("open");
        spec.read_write.push(folder.clone());
        spec.read_only.push("/usr/bin/true".into());
        spec.args.push(folder.to_string_lossy().into_owned().into());
        spec.execute = execute;
        let outcome = bench.run(&spec, way);
        assert_eq!(text(&outcome.stdout.bytes) == "done\n", execute, "{}", text(&outcome.stderr.bytes));
    }
}
