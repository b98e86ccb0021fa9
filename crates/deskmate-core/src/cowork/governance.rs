//! What does not fit: things that were done without, before or beyond an approval, decisions that were slow or made in
//! seconds, outcomes that nobody knows. Thresholds are settings; an agent sees its own only.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_db::Param;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk;
use super::execution::{self, ExecutionRow};
use super::quality::{self, Quality};
use super::scan::{Fate, Found, Wanted, scan};
use super::words::{agent_asked_for, check_domain, sees_all};
use crate::call::{Cx, PageIn};
use crate::limits::{NAME_CHARS_MAX, PAGE_MAX};
use crate::policy::{self, Rulebook};
use crate::request;
use crate::{Error, Result, check_text, format_time, parse_time};

const SECOND: i64 = 1_000_000;
/// How far a report looks back if nobody says: thirty days.
const LOOK_BACK: i64 = 30 * 24 * 3_600 * SECOND;

/// See what does not fit: acts without, before or beyond an approval, slow decisions, rubber-stamping, outcomes left
/// open; with figures on how good proposals are. An agent sees its own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GovernanceReport {
    /// Only what concerns this agent.
    agent_id_filter: Option<String>,
    /// Only what concerns this domain.
    domain_filter: Option<String>,
    /// Only from this time on, such as `2026-11-15T09:30:00Z`; 30 days back if not given.
    start_time: Option<String>,
    /// Only up to this time.
    end_time: Option<String>,
    /// Only issues of this type.
    type_filter: Option<IssueType>,
    /// How many issues; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// What does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum IssueType {
    /// An agent did something for a proposal that does not exist, or for none at all.
    OrphanedExecution,
    /// Something was done that nobody approved.
    ExecutionWithoutApproval,
    /// Something else was done than was approved.
    ExecutionBeyondApproval,
    /// Something that was approved was done, and no report says what exactly, so nobody can compare it.
    ExecutionNotTold,
    /// Something was done while people were still deciding.
    ExecutionBeforeApproval,
    /// Something passed without the people whom policy asks for.
    MissingApproval,
    /// Nobody knows, or nobody said, what came of it.
    AmbiguousOpen,
    /// A person decided alone what needs several people.
    BreakGlass,
    /// A person approved many things in seconds.
    RubberStamping,
    /// People took longer to decide than they should.
    SlowDecision,
    /// Nobody ever decided.
    ProposalNeverApproved,
    /// Something was done, and nobody said why.
    MissingIntent,
}

/// How bad an issue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum IssueSeverity {
    /// Look at it now.
    High,
    /// Look at it.
    Medium,
    /// Good to know.
    Low,
}

/// Something that does not fit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Issue {
    /// What kind it is.
    #[serde(rename = "type")]
    kind: IssueType,
    /// How bad it is.
    severity: IssueSeverity,
    /// The agent that it concerns.
    agent_id: String,
    /// The proposal that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal_id: Option<String>,
    /// The report that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    action_id: Option<String>,
    /// The person that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    person_id: Option<String>,
    /// The domain that it concerns.
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    /// When it arose.
    at: String,
    /// What to do.
    recommendation: String,
}

/// Counts over a stretch of time.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct AuditReport {
    /// Proposals, and acts without one.
    total: usize,
    /// Proposals.
    proposed: usize,
    /// Proposals that were approved, by people or by policy.
    approved: usize,
    /// Proposals that were done or tried.
    executed: usize,
    /// Reports that belong to no proposal.
    orphaned: usize,
    /// Proposals whose chain is whole: approved, granted, done as approved, and reported where nothing else tells it. cowork_audit_trail proves one.
    verified_chains: usize,
}

/// What does not fit, and how good proposals are.
#[derive(Serialize, JsonSchema)]
pub(super) struct Governance {
    /// Counts.
    audit_report: AuditReport,
    /// What does not fit, the worst first, then the newest.
    governance_issues: Vec<Issue>,
    /// How many issues there are in all.
    issue_count: usize,
    /// How many there are of each type.
    issues_by_type: BTreeMap<IssueType, usize>,
    /// How good proposals are, by agent and domain.
    quality: Vec<Quality>,
    /// From when on it looked.
    start_time: String,
    /// Up to when it looked.
    end_time: String,
    /// True when there was more than one call looks at: ask again from `end_time` on.
    cut: bool,
    /// True when more from before `start_time` waits, is open or was settled since than one call looks at: ask for one agent or one domain.
    older_cut: bool,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn report(cx: &mut Cx<'_, '_>, input: GovernanceReport) -> Result<Governance> {
    let now = cx.now();
    let page = PageIn::new(input.limit, None)?;
    let skip =
        input.cursor.as_deref().map(|cursor| cursor.parse::<usize>().map_err(|_| Error::invalid("cursor", "is not a cursor that this operation gave out")));
    let skip = skip.transpose()?.unwrap_or(0);
    if let Some(domain) = &input.domain_filter {
        check_text("domain_filter", domain, NAME_CHARS_MAX)?;
        check_domain("domain_filter", domain)?;
    }
    let end = input.end_time.as_deref().map(|time| parse_time("end_time", time)).transpose()?.unwrap_or(now);
    let start = input.start_time.as_deref().map(|time| parse_time("start_time", time)).transpose()?.unwrap_or(end.saturating_sub(LOOK_BACK));
    if start > end {
        return Err(Error::invalid("start_time", "is after end_time"));
    }
    let wanted = Wanted { agent: agent_asked_for(cx, "agent_id_filter", input.agent_id_filter)?, domain: input.domain_filter, start, end };
    let mut found = scan(cx, &wanted)?;
    let rulebook = policy::current(cx)?;
    let mut issues = of_executions(&found);
    issues.extend(of_open(&found, &rulebook, now));
    let broken = request::broken_between(cx, start, end)?;
    found.learn(cx, broken.iter().map(|(id, ..)| id.clone()).collect())?;
    let votes = votes(cx, &found)?;
    issues.extend(of_requests(&found, &rulebook, now, &votes, &broken));
    issues.extend(of_broken(&found, &wanted, broken));
    if sees_all(cx) {
        let seen = seen_batches(cx, &found)?;
        issues.extend(rubber_stamping(&found, &rulebook, &votes, &seen, start));
    }
    issues.retain(|(_, issue)| input.type_filter.is_none_or(|kind| kind == issue.kind));
    issues.sort_by(|(at, a), (bt, b)| (a.severity, bt, a.kind, &a.proposal_id, &a.action_id).cmp(&(b.severity, at, b.kind, &b.proposal_id, &b.action_id)));
    let mut issues_by_type = BTreeMap::new();
    for (_, issue) in &issues {
        *issues_by_type.entry(issue.kind).or_default() += 1;
    }
    let issue_count = issues.len();
    let limit = page.limit.min(PAGE_MAX) as usize;
    let shown: Vec<Issue> = issues.into_iter().map(|(_, issue)| issue).skip(skip).take(limit).collect();
    let next_cursor = (skip + shown.len() < issue_count && !shown.is_empty()).then(|| (skip + shown.len()).to_string());
    Ok(Governance {
        audit_report: counts(&found),
        governance_issues: shown,
        issue_count,
        issues_by_type,
        quality: quality::figures(&found),
        start_time: format_time(start),
        end_time: format_time(found.cut_at.unwrap_or(end)),
        cut: found.cut_at.is_some(),
        older_cut: found.older_cut,
        next_cursor,
    })
}

type Dated = (i64, Issue);

fn issue(kind: IssueType, severity: IssueSeverity, agent: &str, at: i64, recommendation: impl Into<String>) -> Issue {
    Issue {
        kind,
        severity,
        agent_id: agent.to_owned(),
        proposal_id: None,
        action_id: None,
        person_id: None,
        domain: None,
        at: format_time(at),
        recommendation: recommendation.into(),
    }
}

/// What was done and should not have been.
fn of_executions(found: &Found) -> Vec<Dated> {
    use IssueSeverity::{High, Low};
    use IssueType::{ExecutionBeforeApproval, ExecutionBeyondApproval, ExecutionNotTold, ExecutionWithoutApproval, MissingIntent, OrphanedExecution};
    let mut issues = Vec::new();
    let told: BTreeSet<&str> = found.executions.iter().filter(|row| row.matches != "not_told").filter_map(|row| row.request.as_deref()).collect();
    // What a person did, they did by their own authority.
    for row in found.executions.iter().filter(|row| row.derived != "human") {
        let mut find = |kind, severity, advice: &str| {
            let found = issue(kind, severity, &row.agent, row.created_at, advice);
            let found = Issue { proposal_id: row.request.clone(), action_id: Some(row.id.clone()), domain: Some(row.domain.clone()), ..found };
            issues.push((row.created_at, found));
        };
        let request = found.request_of(row);
        match (&row.request, &row.grant) {
            (None, _) if row.unknown => find(OrphanedExecution, High, "ask the agent what it did and for which proposal; there is none of that id"),
            (None, _) => {
                find(OrphanedExecution, High, "the agent did this without a proposal: look at what it changed, and have it propose first");
                if row.silent {
                    find(MissingIntent, Low, "ask for a reason with every report");
                }
            }
            (Some(_), Some(_)) if row.matches == "differs" => {
                find(ExecutionBeyondApproval, High, "compare the change that was done with the one that was approved, and override the agent if it matters");
            }
            (Some(id), Some(_)) => {
                if row.outcome == "done" && !told.contains(id.as_str()) && request.is_some_and(Fate::needs_report) {
                    find(
                        ExecutionNotTold,
                        Low,
                        "ask the agent for executed_change with its reports: without it nobody sees whether that was what was approved",
                    );
                }
            }
            (Some(_), None) => {
                let undecided = |request: &Fate| request.state == "pending" || request.decided_at.is_some_and(|decided| decided > row.created_at);
                if request.is_some_and(undecided) {
                    find(ExecutionBeforeApproval, High, "the agent did this while people were still deciding: look at what it changed");
                } else {
                    find(ExecutionWithoutApproval, High, "the agent did this without a grant: look at what it changed, and pause it if it goes on");
                }
            }
        }
    }
    issues
}

/// Requests that went wrong, or nowhere, also those from before that still wait or that were decided since.
fn of_requests(found: &Found, rulebook: &Rulebook, now: i64, votes: &Votes, broken: &[(String, String, i64)]) -> Vec<Dated> {
    use IssueSeverity::{High, Medium};
    use IssueType::{MissingApproval, ProposalNeverApproved, SlowDecision};
    let mut issues = Vec::new();
    for fate in found.asked() {
        let settings = &rulebook.settings(&fate.domain).governance;
        let mut find = |kind, severity, at, advice: String| {
            let found = issue(kind, severity, &fate.agent, at, advice);
            let person_id = fate.person().map(str::to_owned);
            issues.push((at, Issue { proposal_id: Some(fate.id.clone()), domain: Some(fate.domain.clone()), person_id, ..found }));
        };
        let slow = i64::from(settings.slow_decision_seconds).saturating_mul(SECOND);
        let expired = fate.state == "expired" || (fate.state == "pending" && fate.expires_at <= now);
        if expired && fate.is_act() {
            find(ProposalNeverApproved, Medium, fate.expires_at, "nobody decided before it expired: check who is asked in this domain".to_owned());
        } else if fate.state == "pending" && now - fate.created_at > slow {
            find(SlowDecision, Medium, fate.created_at, format!("it waits since {}: decide it, or give it to somebody", format_time(fate.created_at)));
        } else if let (Some(decided), Some(_)) = (fate.decided_at, fate.person())
            && decided - fate.created_at > slow
        {
            find(SlowDecision, Medium, decided, format!("it took {} hours to decide", (decided - fate.created_at) / (3_600 * SECOND)));
        }
        let is_broken = broken.iter().any(|(id, ..)| *id == fate.id);
        if fate.was_approved() && !is_covered(votes, fate) && !is_broken {
            find(
                MissingApproval,
                High,
                fate.decided_at.unwrap_or(fate.created_at),
                "the approvals that policy asks for are not there: run `deskmate audit verify`".to_owned(),
            );
        }
    }
    issues
}

/// What was begun and whose outcome is still open, also from before the stretch of time that is looked at.
fn of_open(found: &Found, rulebook: &Rulebook, now: i64) -> Vec<Dated> {
    let mut issues = Vec::new();
    for fate in found.requests.values().chain(&found.open) {
        let open = i64::from(rulebook.settings(&fate.domain).governance.open_outcome_seconds).saturating_mul(SECOND);
        let advice = match fate.state.as_str() {
            "ambiguous" => "nobody knows what came of it: look, and report it with cowork_log, its proposal_id and the outcome",
            "executing" => "it was begun and never reported: ask the agent, or report it with cowork_log, its proposal_id and the outcome",
            _ => continue,
        };
        if now - fate.updated_at > open {
            let one = issue(IssueType::AmbiguousOpen, IssueSeverity::High, &fate.agent, fate.updated_at, advice);
            let person_id = fate.person().map(str::to_owned);
            issues.push((fate.updated_at, Issue { proposal_id: Some(fate.id.clone()), domain: Some(fate.domain.clone()), person_id, ..one }));
        }
    }
    issues
}

/// What somebody decided alone, however long before that it was asked.
fn of_broken(found: &Found, wanted: &Wanted, broken: Vec<(String, String, i64)>) -> Vec<Dated> {
    let seen = broken.into_iter().filter_map(|(id, person, at)| Some((found.request(&id).filter(|fate| wanted.fits(&fate.agent, &fate.domain))?, person, at)));
    let issues = seen.map(|(fate, person, at)| {
        let advice = "somebody decided alone what needs several people: read the reason, ask those who were passed over, and look at what was done";
        let one = issue(IssueType::BreakGlass, IssueSeverity::High, &fate.agent, at, advice);
        (at, Issue { proposal_id: Some(fate.id.clone()), domain: Some(fate.domain.clone()), person_id: Some(person), ..one })
    });
    issues.collect()
}

/// Who approved and when, by request and round.
type Votes = BTreeMap<(String, i64), Vec<(String, i64)>>;

/// How many requests' votes are read at once.
const VOTES_OF: usize = 20;
const VOTES: &str = "select request, round, person, at from vote where vote = 'approve' and request in \
     ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) order by request, round, person";

/// The votes for what was found; those of others are not read.
fn votes(cx: &mut Cx<'_, '_>, found: &Found) -> Result<Votes> {
    let ids: Vec<&str> = found.asked().filter(|fate| !passed(fate)).map(|fate| fate.id.as_str()).collect();
    let mut votes = Votes::new();
    for ids in ids.chunks(VOTES_OF) {
        let mut params: Vec<Param<'_>> = ids.iter().map(|id| Param::Text(id)).collect();
        params.resize(VOTES_OF, Param::Null);
        for row in &cx.tx.query(VOTES, &params)? {
            votes.entry((row.get(0)?, row.get(1)?)).or_default().push((row.get(2)?, row.get(3)?));
        }
    }
    Ok(votes)
}

/// Whether policy let it pass, without people.
fn passed(fate: &Fate) -> bool {
    fate.mode == "act" && fate.person().is_none()
}

/// Whether what was approved has the approvals that it needs: policy's own word, or enough people.
fn is_covered(votes: &Votes, fate: &Fate) -> bool {
    if passed(fate) {
        return true;
    }
    votes.get(&(fate.id.clone(), fate.round)).is_some_and(|votes| i64::try_from(votes.len()).unwrap_or(i64::MAX) >= fate.quorum)
}

/// The batches whose list was seen by who decided them.
fn seen_batches<'a>(cx: &mut Cx<'_, '_>, found: &'a Found) -> Result<BTreeSet<&'a str>> {
    let mut seen = BTreeSet::new();
    let batches: BTreeSet<&str> = found.asked().filter_map(|fate| fate.batch.as_deref()).collect();
    for batch in batches {
        if bulk::was_seen(cx, batch)? {
            seen.insert(batch);
        }
    }
    Ok(seen)
}

/// People who approved many things in seconds, whoever's approval settled them. What was approved together as a batch whose list was
/// seen counts once.
fn rubber_stamping(found: &Found, rulebook: &Rulebook, votes: &Votes, seen: &BTreeSet<&str>, start: i64) -> Vec<Dated> {
    let asked: BTreeMap<&str, &Fate> = found.asked().map(|fate| (fate.id.as_str(), fate)).collect();
    let mut decisions: BTreeMap<&str, BTreeMap<&str, (i64, &Fate)>> = BTreeMap::new();
    for ((id, _), approvals) in votes {
        let Some(fate) = asked.get(id.as_str()).copied() else { continue };
        let one = fate.batch.as_deref().filter(|batch| seen.contains(batch)).unwrap_or(&fate.id);
        for (person, at) in approvals.iter().filter(|(_, at)| *at >= start) {
            decisions.entry(person).or_default().entry(one).or_insert((*at, fate));
        }
    }
    let mut issues = Vec::new();
    for (person, of_person) in decisions {
        let mut times: Vec<(i64, &Fate)> = of_person.into_values().collect();
        times.sort_by(|a, b| (a.0, &a.1.id).cmp(&(b.0, &b.1.id)));
        let mut from = 0;
        while let Some((first, fate)) = times.get(from) {
            let settings = &rulebook.settings(&fate.domain).governance;
            let within = i64::from(settings.rubber_stamp_seconds).saturating_mul(SECOND);
            let count = times.iter().skip(from).take_while(|(at, _)| at - first <= within).count();
            if count >= settings.rubber_stamp_count.max(2) as usize {
                let advice = format!("{count} approvals within {} seconds: were they read?", settings.rubber_stamp_seconds);
                let found = issue(IssueType::RubberStamping, IssueSeverity::Medium, &fate.agent, *first, advice);
                issues.push((*first, Issue { person_id: Some(person.to_owned()), proposal_id: Some(fate.id.clone()), ..found }));
                from += count;
            } else {
                from += 1;
            }
        }
    }
    issues
}

fn counts(found: &Found) -> AuditReport {
    let acts = || found.requests.values().filter(|fate| fate.is_act());
    let orphaned = found.executions.iter().filter(|row| row.request.is_none()).count();
    let proposed = acts().count();
    let mut reports: BTreeMap<&str, Vec<&ExecutionRow>> = BTreeMap::new();
    for row in &found.executions {
        reports.entry(row.request.as_deref().unwrap_or_default()).or_default().push(row);
    }
    let is_whole = |fate: &&Fate| {
        let own = reports.get(fate.id.as_str()).into_iter().flatten().copied();
        fate.state == "done" && execution::wanting(own, fate.needs_report()).is_empty()
    };
    AuditReport {
        total: proposed + orphaned,
        proposed,
        approved: acts().filter(|fate| fate.was_approved()).count(),
        executed: acts().filter(|fate| matches!(fate.state.as_str(), "executing" | "done" | "failed" | "ambiguous")).count(),
        orphaned,
        verified_chains: acts().filter(is_whole).count(),
    }
}
