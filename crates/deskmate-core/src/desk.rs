//! Operations about the desk as a whole: reading the record, proving it, erasing from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use deskmate_db::Engine;

use crate::agents::node::{self, NodeOut};
use crate::call::{Access, Cx, Mode, Op, Role, Toolset};
use crate::limits::TITLE_CHARS_MAX;
use crate::policy::settings::HookMode;
use crate::record::{self, EventRow, Kind, Proof};
use crate::{Error, Result, backlog, check_text, format_time, identity, job};

/// What the desk itself tells the record.
pub(crate) const DESK_EVENTS: &[Kind] = &[record::ERASED, record::VERIFIED, STARTED, REFUSED];

/// A server of this desk started.
pub const STARTED: Kind = Kind { name: "desk.started", says: "A server of this desk started." };
/// Calls were refused.
pub const REFUSED: Kind = Kind { name: "call.refused", says: "Calls of an actor were refused; many in a short time are counted in one event." };

pub(crate) fn desk_operations() -> Vec<Op> {
    let record = vec![
        Op::read(Toolset::Desk, "status", status).access(Access::Public),
        Op::read(Toolset::Desk, "backlog", backlog::backlog).access(Access::Person(Role::Viewer)),
        Op::write(Toolset::Desk, "new_claim_link", new_claim_link).access(Access::Local).shows_once(&["code"]),
        Op::read(Toolset::Desk, "record_list", record::list).access(Access::Anyone),
        Op::read(Toolset::Desk, "record_get", get).access(Access::Anyone),
        Op::read(Toolset::Desk, "record_prove", prove).access(Access::Anyone),
        Op::read(Toolset::Desk, "record_checkpoint", checkpoint).access(Access::Anyone),
        Op::read(Toolset::Desk, "record_consistency", consistency).access(Access::Anyone),
        Op::write(Toolset::Desk, "record_verify", verify).access(Access::Person(Role::Viewer)).idempotent(),
        Op::write(Toolset::Desk, "record_erase", erase).access(Access::Present(Role::Owner)).destructive(),
    ];
    record.into_iter().chain(crate::identity::operations()).chain(crate::job::operations()).collect()
}

/// Show how the desk stands: mode, agents, whether it has an owner, and the size of its record.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetStatus {}

/// How the desk stands.
#[derive(Serialize, JsonSchema)]
struct Status {
    /// Whether agents may just name themselves (`open`) or need their tokens (`closed`).
    mode: Mode,
    /// How many agents are registered.
    agents: i64,
    /// Whether the desk has an owner.
    claimed: bool,
    /// `sqlite` or `postgres`.
    engine: String,
    /// Whether an agent and domain that no mapping names is held (`strict`) or gets the default policy (`permissive`).
    policy_mode: crate::policy::PolicyMode,
    /// Whether what is decided about agents' own tools holds (`enforce`), or is only told to the record (`observe`).
    hooks: HookMode,
    /// Said loudly where something that people count on is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
    /// How many events the record has.
    events: u64,
    /// The node that this server is, if it offers itself for runs of agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The nodes of this desk, there or gone; for people, and for the account of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<NodeOut>,
}

/// What a desk says that only observes.
const OBSERVES: &str = "HOOKS ONLY OBSERVE: what is decided about agents' own tools is recorded, and nothing is enforced";

fn status(cx: &mut Cx<'_, '_>, _: GetStatus) -> Result<Status> {
    let hooks = crate::policy::current(cx)?.settings("").hooks.mode;
    let tells_more = cx.actor.is_local() || cx.actor.is_person();
    Ok(Status {
        mode: identity::mode(cx.tx)?,
        agents: identity::agent_count(cx.tx)?,
        claimed: identity::is_claimed(cx.tx)?,
        engine: if cx.tx.engine() == Engine::Sqlite { "sqlite" } else { "postgres" }.to_owned(),
        policy_mode: crate::policy::current(cx)?.parts().mode,
        hooks,
        warning: (hooks == HookMode::Observe).then_some(OBSERVES),
        events: record::size(cx.tx)?,
        node: cx.server.name().filter(|_| tells_more).map(str::to_owned),
        nodes: if tells_more { node::listed(cx)? } else { Vec::new() },
    })
}

/// Make a new link for the first owner, while the desk has none. Only the account that the server runs under can ask for it, over the server's local socket.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewClaimLink {}

/// A link for the first owner.
#[derive(Serialize, JsonSchema)]
struct ClaimLink {
    /// Its code.
    code: String,
    /// Until when it works.
    expires_at: String,
}

fn new_claim_link(cx: &mut Cx<'_, '_>, _: NewClaimLink) -> Result<ClaimLink> {
    let link = identity::issue_claim(cx)?;
    Ok(ClaimLink { code: link.code, expires_at: format_time(link.expires_at) })
}

/// Read one event of the record.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Get {
    /// Its sequence number.
    seq: u64,
}

fn get(cx: &mut Cx<'_, '_>, input: Get) -> Result<EventRow> {
    let event = record::find_event(cx.tx, input.seq)?;
    event.filter(|event| event.visible_to(&cx.actor)).ok_or_else(|| Error::not_found(format!("the record has no event {} for you", input.seq)))
}

/// Prove that an event is in the record: the sealed text, the hashes up to the root, and the signed checkpoint.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Prove {
    /// The event's sequence number.
    seq: u64,
}

fn prove(cx: &mut Cx<'_, '_>, input: Prove) -> Result<Proof> {
    get(cx, Get { seq: input.seq })?;
    let keys = cx.keys.clone();
    record::prove(cx.tx, input.seq, &keys)
}

/// Read the newest signed checkpoint of the record. Keep it somewhere else: with it, later cuts and rollbacks show.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetCheckpoint {}

/// A signed checkpoint.
#[derive(Serialize, JsonSchema)]
struct CheckpointOut {
    /// How many events it covers.
    size: u64,
    /// The C2SP signed note.
    checkpoint: String,
    /// The public keys of this desk.
    keys: Vec<String>,
}

fn checkpoint(cx: &mut Cx<'_, '_>, _: GetCheckpoint) -> Result<CheckpointOut> {
    let note = record::newest_checkpoint(cx.tx)?.ok_or_else(|| Error::not_found("the record is empty"))?;
    let size = cx.keys.open(&note)?.size();
    Ok(CheckpointOut { size, checkpoint: note, keys: cx.keys.keys().to_vec() })
}

/// Prove that the record of an older size is the beginning of a newer one: that nothing was changed in between.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Consistency {
    /// The older size, at least 1.
    older: u64,
    /// The newer size.
    newer: u64,
}

/// A consistency proof.
#[derive(Serialize, JsonSchema)]
struct ConsistencyOut {
    /// The hashes, base64, in the order of RFC 6962.
    hashes: Vec<String>,
}

fn consistency(cx: &mut Cx<'_, '_>, input: Consistency) -> Result<ConsistencyOut> {
    Ok(ConsistencyOut { hashes: record::consistency(cx.tx, input.older, input.newer)? })
}

/// Verify the whole record in the background. The answer names the job; `desk_job_wait` waits for its report.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Verify {}

/// The job that verifies.
#[derive(Serialize, JsonSchema)]
struct VerifyJob {
    /// Its id.
    job: String,
    /// Whether it was started by this call; otherwise one was under way.
    created: bool,
}

fn verify(cx: &mut Cx<'_, '_>, _: Verify) -> Result<VerifyJob> {
    let new = job::NewJob { unique_key: Some("all".to_owned()), ..job::NewJob::new(record::VERIFY_JOB, serde_json::json!({})) };
    let enqueued = job::enqueue(cx, new)?;
    Ok(VerifyJob { job: enqueued.job, created: enqueued.created })
}

/// Erase what somebody wrote in one event, wherever the desk keeps it. The event and its proof stay. This cannot be undone.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Erase {
    /// The event's sequence number.
    seq: u64,
    /// Why, for the record.
    reason: String,
}

/// What was erased.
#[derive(Serialize, JsonSchema)]
struct Erased {
    /// The event's sequence number.
    seq: u64,
}

fn erase(cx: &mut Cx<'_, '_>, input: Erase) -> Result<Erased> {
    check_text("reason", &input.reason, TITLE_CHARS_MAX)?;
    if input.reason.trim().is_empty() {
        return Err(Error::invalid("reason", "must not be empty"));
    }
    let event = record::find_event(cx.tx, input.seq)?.ok_or_else(|| Error::not_found(format!("the record has no event {}", input.seq)))?;
    identity::erase(cx.tx, &event)?;
    let mut repeated = crate::bridge::erase(cx.tx, &event)?;
    repeated.extend(crate::workspace::plan::erase(cx.tx, &event)?);
    repeated.extend(crate::gateway::erase(cx.tx, &event)?);
    crate::request::erase(cx.tx, &event)?;
    crate::cowork::erase(cx.tx, &event)?;
    crate::notify::erase(cx.tx)?;
    cx.tx.erases();
    // Kept answers may repeat the text; they are only for retries, which now get a new answer.
    cx.tx.execute("delete from idempotency where actor = $1", deskmate_db::args![format!("{}:{}", event.actor_kind, event.actor)])?;
    record::erase(cx, input.seq, &input.reason)?;
    for seq in repeated {
        record::erase(cx, seq, &input.reason)?;
    }
    Ok(Erased { seq: input.seq })
}
