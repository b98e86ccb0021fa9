//! Who somebody is: people with a presence factor, agents with tokens, sessions, invitations, personal tokens, and what is
//! paired with a person.
//!
//! Everything that proves an identity is kept as a hash in one table, so that there is one place to look it up, to
//! expire it and to revoke it. Each row that carries authority is told to the record with the facts that rebuild it.
//!
//! Tables: `person`, `agent`, `credential`, `session_key`.

mod agents;
mod authenticate;
mod erase;
mod factor;
mod imported;
mod known;
mod link;
mod pairing;
mod passkey;
mod people;
mod projection;
mod rows;
mod runs;
mod sessions;
mod token;

use crate::call::{Access, Op, Role, Toolset};
use crate::record::Kind;

pub(crate) use imported::bring_in;

pub(crate) use agents::accept_agent_edit;
pub use authenticate::{Claims, agent_count, authenticate, check_name, mode};
pub(crate) use erase::erase;
pub(crate) use link::{DecisionLink, LinkState, end_link, find_link, issue_link, note_refusal, open_link};
pub use projection::IdentityProjection;
pub use rows::prune_credentials;
pub(crate) use runs::{end_run, issue_run};
pub use sessions::{Link, check_link, has_key, is_claimed, issue_claim, no_owner, verify_signature};
pub use token::{Secret, SecretKind};

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[
    agents::REGISTERED,
    agents::REVOKED,
    agents::DESCRIBED,
    rows::ISSUED,
    rows::REVOKED,
    people::ADDED,
    people::CHANGED,
    sessions::CLAIMED,
    sessions::SIGN_IN_FAILED,
    sessions::LOCKED,
    sessions::PRESENT,
    sessions::PASSPHRASE_SET,
];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let owner = Access::Present(Role::Owner);
    vec![
        Op::write(Toolset::Desk, "agent_add", agents::add).access(owner).shows_once(&["token"]),
        Op::read(Toolset::Desk, "agent_list", agents::list),
        Op::write(Toolset::Desk, "agent_change", agents::change).access(Access::Anyone),
        Op::write(Toolset::Desk, "agent_rotate", agents::rotate).access(owner).shows_once(&["token"]),
        Op::write(Toolset::Desk, "agent_revoke", agents::revoke).access(owner).destructive(),
        Op::write(Toolset::Desk, "person_invite", people::invite).access(owner).shows_once(&["code"]),
        Op::read(Toolset::Desk, "person_list", people::list),
        Op::write(Toolset::Desk, "person_change", people::change).access(owner).destructive(),
        Op::write(Toolset::Desk, "token_create", people::create_token).access(Access::Present(Role::Viewer)).shows_once(&["token"]),
        Op::read(Toolset::Desk, "token_list", people::list_tokens),
        Op::write(Toolset::Desk, "token_revoke", people::revoke_token).access(Access::Person(Role::Viewer)).destructive(),
        Op::prepared(Toolset::Desk, "claim", sessions::hash_factor_of_claim, sessions::claim)
            .access(Access::Public)
            .shows_once(&["session"])
            .takes_secrets(&["code", "passphrase"]),
        Op::prepared(Toolset::Desk, "accept_invitation", sessions::hash_factor_of_invited, sessions::accept)
            .access(Access::Public)
            .shows_once(&["session"])
            .takes_secrets(&["code", "passphrase"]),
        Op::prepared(Toolset::Desk, "sign_in", sessions::check_factor, sessions::sign_in)
            .access(Access::Public)
            .shows_once(&["session"])
            .takes_secrets(&["passphrase"]),
        Op::prepared(Toolset::Desk, "pairing_start", pairing::make, pairing::start).access(Access::Present(Role::Viewer)).shows_once(&["code"]),
        Op::prepared(Toolset::Desk, "pair", pairing::look_up, pairing::pair).access(Access::Public).shows_once(&["session", "token"]).takes_secrets(&["code"]),
        Op::prepared(Toolset::Desk, "show_presence", sessions::check_own_factor, sessions::show_presence)
            .access(Access::Person(Role::Viewer))
            .takes_secrets(&["passphrase"]),
        Op::prepared(Toolset::Desk, "passphrase_set", sessions::hash_own_factor, sessions::set_passphrase)
            .access(Access::Present(Role::Viewer))
            .takes_secrets(&["passphrase"]),
        Op::write(Toolset::Desk, "passkey_add", passkey::add).access(Access::Present(Role::Viewer)),
        Op::read(Toolset::Desk, "passkey_list", passkey::list),
        Op::write(Toolset::Desk, "passkey_remove", passkey::remove).access(Access::Person(Role::Viewer)).destructive(),
        Op::write(Toolset::Desk, "sign_out", sessions::sign_out).access(Access::Person(Role::Viewer)),
        Op::read(Toolset::Desk, "session_list", sessions::list),
        Op::write(Toolset::Desk, "session_revoke", sessions::revoke).access(Access::Person(Role::Viewer)).destructive(),
        Op::read(Toolset::Desk, "whoami", sessions::whoami).access(Access::Anyone),
    ]
}
