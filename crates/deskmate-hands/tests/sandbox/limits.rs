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
