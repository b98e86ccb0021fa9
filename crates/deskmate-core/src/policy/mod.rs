//! What an agent may do alone: named, versioned policies, the mapping agent × domain × policy, settings, and the one
//! function that answers every intended act.
//!
//! - [`document`]: the text that people write, read strictly, with line and column in every complaint.
//! - [`rulebook`]: everything in force, compiled once for each content and shared.
//! - [`decide`]: act, suggest, escalate or deny. Pure: no row, no clock, no chance. The most restrictive answer wins,
//!   and whatever cannot be evaluated is more restrictive, never less.
//!
//! Tables: `policy`, `mapping`, `setting`, and the key `rulebook` of `desk`.

mod act;
mod ask;
mod attached;
mod cases;
mod change;
mod condition;
mod criteria;
mod decide;
mod document;
pub mod draft;
mod hidden;
mod index;
mod model;
mod opaque;
mod operations;
mod problem;
mod projection;
mod reasons;
mod rulebook;
mod rules;
pub mod settings;
mod store;
mod template;
mod yaml;

use crate::call::Op;
use crate::record::Kind;

pub use act::{Act, Counters, Decision, Effect, Hit, Mode, Needs, PolicyRef, Reason, Standing, StillIn};
pub(crate) use act::{COUNTERS, PATHS, PATHS_CUT};
pub(crate) use ask::doings_of;
pub use attached::Attached;
pub use cases::{CaseResult, run_case, run_cases};
pub(crate) use change::changed_paths;
pub use criteria::Criterion;
pub use decide::{HIGH_RISK_LIST, OpenRule, Outlook, decide, decide_under, mode_of_trust, outlook};
pub use document::Document;
pub use draft::accept;
pub use hidden::hidden_in;
pub(crate) use index::fits_pattern;
pub use model::{
    Case, Constraint, DEFAULT_POLICY, FieldRule, GLOBAL_POLICY, GeneralRule, Mapping, Match, Parts, Patch, Policy, PolicyMode, Rule, Section, Severity,
};
pub use operations::cases::Tested;
pub(crate) use operations::{Caught, Get, get, list, would_catch};
pub use problem::Problem;
pub use projection::PolicyProjection;
pub use rulebook::{Cache, Rulebook};
pub use rules::rule_id;
pub use settings::{Keep, Settings};
pub use store::{ACCEPTED, CHANGED, MAPPED, RETIRED, SETTING, Stored, UNMAPPED, current, store, stored_digest};
pub(crate) use template::literal;
pub use template::{Parameter, ParameterKind, Template};
pub(crate) use yaml::nearest;

/// What a condition can ask for: the name, and what it is.
pub fn variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    condition::VARIABLES.iter().map(|(name, _, what)| (*name, *what))
}

/// What is wrong with a policy, wherever it comes from.
pub fn problems(policy: &Policy) -> Vec<Problem> {
    rules::policy(&policy.id, policy, "policy")
}

/// What conditions can ask of a whole act: the function, the word that it takes, and what that is.
pub fn questions() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let does = ask::doings().map(|(name, what)| ("does", name, what));
    does.chain(ask::HELD.iter().map(|(name, what)| ("holds", *name, *what)))
}

/// The keys of `deskmate.yaml` that belong to others, so that a whole file can be given as a draft.
pub const FILE_KEYS: &[&str] =
    &["listen", "database_url", "log", "tls", "proxy", "hosts", "retention", "bridge", "checkpoints", "notifications", "telemetry", "coworker", "node"];

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[store::ACCEPTED, store::RETIRED, store::MAPPED, store::UNMAPPED, store::SETTING, store::CHANGED, draft::CHANGED];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    operations::all()
}
