//! Time and chance, which operations are given and never take.

use uuid::{Builder, Uuid};

/// What a context brings from outside. The binary reads the machine; tests count and seed.
pub trait World: Send + Sync {
    /// Microseconds since 1970 in UTC. Never goes back.
    fn now(&self) -> i64;
    /// Fills a buffer with unguessable bytes.
    fn fill(&self, bytes: &mut [u8]);
}

impl dyn World + '_ {
    /// A fresh id that sorts by time.
    pub fn new_id(&self) -> String {
        let mut random = [0_u8; 10];
        self.fill(&mut random);
        let millis = u64::try_from(self.now() / 1_000).unwrap_or(0);
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid().to_string()
    }

    /// 256 unguessable bits.
    pub fn secret(&self) -> [u8; 32] {
        let mut bytes = [0_u8; 32];
        self.fill(&mut bytes);
        bytes
    }

    /// A fresh id that tells nothing, not even its time.
    pub fn opaque_id(&self) -> String {
        let mut bytes = [0_u8; 16];
        self.fill(&mut bytes);
        let id: Uuid = Builder::from_random_bytes(bytes).into_uuid();
        id.to_string()
    }
}
