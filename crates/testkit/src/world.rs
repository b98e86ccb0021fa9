//! Time that stands still until the test moves it, and chance that repeats itself.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use deskmate_core::World;

/// A world in a test's hands.
pub struct TestWorld {
    now: AtomicI64,
    chance: AtomicU64,
}

impl TestWorld {
    /// A world that begins on 2026-01-01 with a seed.
    pub fn new(seed: u64) -> Self {
        Self { now: AtomicI64::new(1_767_225_600_000_000), chance: AtomicU64::new(seed) }
    }

    /// Lets time pass.
    pub fn pass(&self, time: std::time::Duration) {
        self.now.fetch_add(i64::try_from(time.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Sets the clock back, as another machine's clock may be behind.
    pub fn step_back(&self, time: std::time::Duration) {
        self.now.fetch_sub(i64::try_from(time.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }
}

impl World for TestWorld {
    fn now(&self) -> i64 {
        // One microsecond for each look keeps moments apart without making time pass.
        self.now.fetch_add(1, Ordering::SeqCst)
    }

    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            // SplitMix64: every seed gives its own sequence, and none repeats soon.
            let mut z = self.chance.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst).wrapping_add(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let word = (z ^ (z >> 31)).to_le_bytes();
            for (byte, random) in chunk.iter_mut().zip(word) {
                *byte = random;
            }
        }
    }
}
