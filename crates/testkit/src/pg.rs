//! A schema of its own for each test, on a PostgreSQL server that the test command started.

use std::sync::atomic::{AtomicU32, Ordering};

use postgres::{Client, NoTls};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A schema that is dropped with this value.
pub struct PgSchema {
    server: String,
    name: String,
}

impl PgSchema {
    /// Makes an empty schema.
    ///
    /// # Panics
    /// If the server cannot be reached.
    pub fn new(server: &str) -> Self {
        let name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        let mut client = Client::connect(server, NoTls).expect("the PostgreSQL server of DESKMATE_TEST_PG answers");
        client.batch_execute(&format!("drop schema if exists {name} cascade; create schema {name}")).expect("a schema can be made");
        Self { server: server.to_owned(), name }
    }

    /// The URL of a desk that lives in this schema.
    pub fn url(&self) -> String {
        let join = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{join}options=-csearch_path%3D{}", self.server, self.name)
    }
}

impl Drop for PgSchema {
    fn drop(&mut self) {
        if let Ok(mut client) = Client::connect(&self.server, NoTls) {
            drop(client.batch_execute(&format!("set lock_timeout = '2s'; drop schema if exists {} cascade", self.name)));
        }
    }
}
