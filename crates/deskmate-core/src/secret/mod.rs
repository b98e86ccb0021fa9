//! The secret store: values that the server needs to reach other programs, encrypted at rest and named by `secret:NAME`
//! wherever settings need one.
//!
//! A value goes in through an operation and comes out through [`resolve`] alone, which only the server itself can call. It is
//! in no answer, event, error or kept call. The key lies outside the store and comes in through the desk's [`Safe`].
//!
//! Table: `secret`; the row `secret_key_check` of `desk` tells whether a server has the key of these rows.

mod key;
mod operations;
mod projection;
mod resolve;
mod rows;
mod safe;
mod seal;
mod wrap;

use crate::call::{Access, Op, Role, Toolset};
use crate::record::Kind;

pub use key::Key;
pub use projection::SecretProjection;
pub use resolve::{named, reference, resolve};
pub use rows::{check_name, is_kept, key_fits};
pub use safe::Safe;
pub(crate) use wrap::{Wrapped, unwrap, wrap};

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[operations::SET, operations::ROTATED, operations::REMOVED];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let owner = Access::Present(Role::Owner);
    vec![
        Op::write(Toolset::Desk, "secret_set", operations::set).access(owner).takes_secrets(&["value"]),
        Op::read(Toolset::Desk, "secret_list", operations::list).access(Access::Person(Role::Owner)),
        Op::write(Toolset::Desk, "secret_rotate", operations::rotate).access(owner).takes_secrets(&["value"]).destructive(),
        Op::write(Toolset::Desk, "secret_remove", operations::remove).access(owner).destructive(),
    ]
}
