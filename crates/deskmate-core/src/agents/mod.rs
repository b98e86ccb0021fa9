//! Agents that the desk runs: what they are for, what they do, when they run, and what holds them.
//!
//! - [`attach`]: policies that hold for one agent; [`gate`]: what they say to the calls of its runs; [`policies`]: policies of sentences.
//! - [`compose`]: steps of a sketch. [`test`]: what an agent would do, without doing it.
//! - [`conflict`]: rules that contradict each other, or do nothing.
//! - [`create`]: making them; [`define`]: changing and looking at them; [`deploy`]: letting them run, which is an act that is decided.
//! - [`run`]: their runs; [`work`]: what the worker tells of one while it does the steps. A run acts as its agent, and changes no agents.
//! - [`runner`]: runners that are programs, and what they are given; [`project`]: a small project to begin with.
//! - [`node`]: the servers that do runs; [`place`]: on which of them an agent's are done.
//! - [`imported`]: agents and approvals that another system kept.
//! - [`step`]: what runs are made of; [`items`]: those that work on lists; [`words`]: the same for people; [`value`]: what passes between steps.
//! - [`schedule`]: cron in a time zone.
//! - [`audit`]: what the record tells of one, [`export`] as a file and with proofs; [`approval`]: asking named people by name.
//! - [`sentence`]: from a sentence to a sketch of an agent; [`suggest`]: what a client's model makes of it.
//! - [`template`]: what agents and policies are often made of; [`gallery`]: a list of them.
//!
//! Tables: `agent_definition`, `agent_run`, `agent_log`, `agent_hold`, `agent_test`, `node`, and `lease` for subjects `node:NAME`.

mod approval;
mod attach;
mod audit;
mod compose;
pub mod conflict;
mod create;
mod define;
mod deploy;
mod edits;
mod export;
mod gallery;
mod gate;
mod guard;
mod imported;
mod items;
mod model;
pub mod node;
mod place;
mod policies;
mod project;
mod prune;
mod rows;
mod run;
mod runner;
pub mod schedule;
pub mod sentence;
pub mod step;
mod subject;
mod suggest;
pub mod template;
mod test;
pub mod value;
mod words;
mod work;

use crate::call::{Access, Op, Role, Toolset};
use crate::record::Kind;

pub(crate) use attach::attached;
pub use audit::Counted;
pub(crate) use define::UPDATE;
pub use define::{AgentOut, Metrics};
pub(crate) use deploy::KIND as DEPLOY;
pub(crate) use deploy::approved;
pub use deploy::{next_due, start_due};
pub(crate) use edits::accept_definition_edit;
pub(crate) use gate::{Passage, pass, passed};
pub(crate) use imported::{ForeignAgent, ForeignApproval, bring_in, bring_in_approval};
pub use model::{Attachment, Budget, Definition, Need, RunState, Runner, Source, Status};
pub use node::Server;
pub use place::Environment;
pub use prune::prune;
pub(crate) use rows::{is_made, is_taken};
pub use runner::{Cli, Given, IfInterrupted, Language, Reach};
pub(crate) use subject::{Subject, subject};
pub use suggest::{Question, READING, question};
pub use work::{Begun, INTERRUPTED, begin, credential, end, said, told};
pub(crate) use work::{actor, job_ended, spend};

/// The job that does a run.
pub const RUN_JOB: &str = "agent.run";

const MADE: Kind = Kind { name: "agent.made", says: "An agent was made that the desk can run; it is a draft." };
const CHANGED: Kind = Kind { name: "agent.changed", says: "What an agent is was changed." };
const WAITS: Kind = Kind { name: "agent.waits", says: "The deployment of an agent waits for people." };
const DEPLOYED: Kind = Kind { name: "agent.deployed", says: "An agent was deployed: it runs when it is due, and when somebody starts it." };
const PAUSED: Kind = Kind { name: "agent.held", says: "A deployed agent begins no runs until a person lets it go on." };
const RESUMED: Kind = Kind { name: "agent.let_go_on", says: "A person let an agent go on that had begun no runs." };
const STOPPED: Kind = Kind { name: "agent.stopped", says: "An agent is not deployed any more, and its runs were stopped." };
const DELETED: Kind = Kind { name: "agent.deleted", says: "An agent that was not deployed was deleted." };
const ATTACHED: Kind = Kind { name: "agent.policy_attached", says: "A policy holds for an agent from now on; it only takes away." };
const DETACHED: Kind = Kind { name: "agent.policy_detached", says: "A person took a policy away from an agent that was not deployed." };
const TESTED: Kind = Kind { name: "agent.tested", says: "An agent was tested without effects, and what came of it was kept." };
const QUEUED: Kind = Kind { name: "run.queued", says: "A run of an agent was made." };
const BEGUN: Kind = Kind { name: "run.begun", says: "A run of an agent has begun." };
const ENDED: Kind = Kind { name: "run.ended", says: "A run of an agent has ended." };
const TAKEN_UP: Kind =
    Kind { name: "run.taken_up", says: "A run was left in the middle, and was taken up again: it goes on, begins anew, or is told as interrupted." };
const NODE_HERE: Kind = Kind { name: "node.here", says: "A server offers itself for runs of agents." };
const NODE_GONE: Kind = Kind { name: "node.gone", says: "A server that offered itself for runs ended, or gave no sign of life." };
const PRUNED: Kind = Kind { name: "run.pruned", says: "Runs that ended long ago were deleted with what they said, and old tests of agents." };
const SKIPPED: Kind =
    Kind { name: "run.skipped", says: "A run was due and was left out: the one before was still under way, the desk was away, or its agent is paused." };

/// What this capability tells the record.
pub const EVENTS: &[Kind] = &[
    MADE, CHANGED, WAITS, DEPLOYED, PAUSED, RESUMED, STOPPED, DELETED, ATTACHED, DETACHED, TESTED, QUEUED, BEGUN, TAKEN_UP, ENDED, SKIPPED, PRUNED, NODE_HERE,
    NODE_GONE,
];

/// The statements whose cost must not grow with what the tables hold, each with the index that it has to go through: a test reads
/// their plans on both engines.
#[doc(hidden)]
pub const INDEXED: &[(&str, &str)] = &[
    (create::COUNT, "agent_definition_by_age"),
    (rows::DUE, "agent_definition_due"),
    (rows::NEXT_DUE, "agent_definition_due"),
    (rows::PAGE, "agent_definition_by_age"),
    (rows::RUNS, "agent_run_by_definition"),
    (rows::OPEN_RUNS, "agent_run_open"),
    (prune::RUNS, "agent_run_by_age"),
    (audit::OWN, "event_by_actor"),
    (audit::ABOUT, "event_by_subject"),
    (audit::DENIALS, "event_by_subject"),
];

/// What can be done.
pub(crate) fn operations() -> Vec<Op> {
    let set = Toolset::Agents;
    vec![
        Op::read(set, "sketch_agent", create::sketch),
        Op::write(set, "create_agent", create::create),
        Op::write(set, "update_agent", define::update),
        Op::read(set, "list_agents", define::list),
        Op::read(set, "get_agent_status", define::status),
        Op::write(set, "delete_agent", define::delete).destructive(),
        Op::read(set, "list_templates", gallery::templates),
        Op::write(set, "deploy_agent", deploy::deploy).open_world(),
        Op::write(set, "pause_agent", deploy::pause),
        Op::write(set, "resume_agent", deploy::resume),
        Op::write(set, "stop_agent", deploy::stop).destructive(),
        Op::write(set, "run_agent", run::start).open_world(),
        Op::read(set, "list_nodes", node::list),
        Op::read(set, "list_runs", run::list),
        Op::read(set, "get_run", run::get),
        Op::wait(set, "wait_for_run", run::wait),
        Op::read(set, "run_log", run::log),
        Op::write(set, "stop_run", run::stop).destructive(),
        Op::read(set, "audit_log", audit::log),
        Op::read(set, "export_audit", export::export),
        Op::read(set, "verify_audit", export::verify),
        Op::write(set, "request_approval", approval::ask),
        Op::read(set, "list_approvals", approval::list),
        Op::read(set, "get_approval", approval::get),
        Op::write(set, "cancel_approval", approval::cancel).destructive(),
        Op::write(set, "attach_policy", attach::attach).idempotent(),
        Op::write(set, "detach_policy", attach::detach).access(Access::Present(Role::Owner)).destructive(),
        Op::write(set, "test_agent", test::test),
        Op::write(set, "create_policy", policies::create).untold_when(policies::is_untold),
        Op::write(set, "delete_policy", policies::delete).destructive(),
        Op::read(set, "list_policies", crate::policy::list),
        Op::read(set, "get_policy", crate::policy::get).access(Access::Person(Role::Viewer)),
        Op::read(set, "policy_versions", policies::versions).access(Access::Person(Role::Viewer)),
    ]
}
