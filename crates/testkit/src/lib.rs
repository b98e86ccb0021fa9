//! A desk for tests, on either engine, with a clock and chance that the test controls.
//!
//! [`both!`] writes a test once and runs it as `sqlite::name` and `postgres::name`. PostgreSQL is the server whose URL
//! is in `DESKMATE_TEST_PG`; without it those tests fail loudly, unless it says `skip`.

mod desk;
mod hostile;
mod pg;
mod schema;
mod skip;
mod world;

pub use desk::{Backend, Caller, TestDesk, assert_code, plan, wait};
pub use hostile::HOSTILE;
pub use pg::PgSchema;
pub use schema::undescribed;
pub use skip::skipped;
pub use world::TestWorld;

/// Runs each function on both engines: `both! { fn name(desk: &TestDesk) { … } }`.
#[macro_export]
macro_rules! both {
    ($($(#[$meta:meta])* fn $name:ident($desk:ident: &TestDesk) $body:block)+) => {
        $($(#[$meta])* fn $name($desk: &$crate::TestDesk) $body)+
        mod sqlite {
            $(#[test] fn $name() { super::$name(&$crate::TestDesk::new($crate::Backend::Sqlite)); })+
        }
        mod postgres {
            $(#[test] fn $name() {
                if let Some(backend) = $crate::Backend::postgres() { super::$name(&$crate::TestDesk::new(backend)); }
            })+
        }
    };
}
