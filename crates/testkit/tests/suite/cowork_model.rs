//! Random lives of proposals against a small model of the state machine, on both engines: proposals, answers, acts,
//! reports, pauses, restarts and clock steps. Whatever happens: no act without a grant that matches it, no grant used
//! twice, trust equal to its replay, caps never exceeded. `PROPTEST_CASES=5000` makes a longer run.
//!
//! The record is judged on its own by [`Auditor`], which knows no row. The guards that these tests fail without:
//! - `grant::consume` uses a grant only while it is unused and not revoked, `unused_only` only while it is good
//! - `Bound` and the digest of grant and request, renewed by an edit
//! - `State::may_become`, and that people's answers need a request that waits (`undecided`)
//! - `meter::take_from` in the transaction of the proposal
//! - `trust_verdict`, and that every number of a step is a fact

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use deskmate_core::call::{Actor, Call, Credential, Cx, Outcome as Answered, Role, Surface};
use deskmate_core::policy::{self, Document, Mode, Parts};
use deskmate_core::record::{self, EventRow};
use deskmate_core::request::{self, Correction, State};
use deskmate_core::trust::{self, Known, Of, Points, Severity};
use deskmate_core::{Code, Error, Result};
use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::{Backend, Caller, TestDesk, assert_code, both, wait};

const AGENTS: [&str; 2] = ["steady", "fresh"];
const DOMAINS: [&str; 2] = ["crm.deals", "support.tickets"];
/// Low enough that chance meets it.
const CAP: usize = 12;
const HOUR: i64 = 3_600_000_000;
const GRANT: i64 = 900_000_000;

/// Something that chance lets happen. Numbers of requests count from the newest.
#[derive(Clone, Debug)]
enum Do {
    Propose { agent: usize, domain: usize, count: usize },
    Approve { which: usize, edited: bool },
    Reject { which: usize, kind: usize, severity: usize },
    Undo(usize),
    Cancel { which: usize, by_other: bool },
    Begin { which: usize, by_other: bool },
    Report { which: usize, outcome: usize },
    AgentDecides(usize),
    Pause(usize, bool),
    Promotion(bool),
    Pass(i64),
    StepBack(i64),
    Restart,
    Sweep,
}

fn doings() -> impl Strategy<Value = Vec<Do>> {
    let which = || prop_oneof![4 => 0..4_usize, 1 => 0..40_usize];
    let time = prop_oneof![5 => 0..120_i64, 3 => 120..1_200_i64, 2 => 1_200..4_000_i64, 1 => 80_000..700_000_i64];
    let one = prop_oneof![
        8 => (0..2_usize, 0..2_usize, prop_oneof![6 => Just(1_usize), 1 => 2..15_usize]).prop_map(|(agent, domain, count)| Do::Propose { agent, domain, count }),
        7 => (which(), any::<bool>()).prop_map(|(which, edited)| Do::Approve { which, edited }),
        3 => (which(), 0..5_usize, 0..4_usize).prop_map(|(which, kind, severity)| Do::Reject { which, kind, severity }),
        3 => which().prop_map(Do::Undo),
        2 => (which(), prop::bool::weighted(0.3)).prop_map(|(which, by_other)| Do::Cancel { which, by_other }),
        6 => (which(), prop::bool::weighted(0.2)).prop_map(|(which, by_other)| Do::Begin { which, by_other }),
        6 => (which(), 0..3_usize).prop_map(|(which, outcome)| Do::Report { which, outcome }),
        1 => which().prop_map(Do::AgentDecides),
        2 => (0..3_usize, any::<bool>()).prop_map(|(whom, on)| Do::Pause(whom, on)),
        1 => any::<bool>().prop_map(Do::Promotion),
        5 => time.prop_map(Do::Pass),
        1 => prop_oneof![0..200_i64, 0..100_000_i64].prop_map(Do::StepBack),
        1 => Just(Do::Restart),
        1 => Just(Do::Sweep),
    ];
    prop::collection::vec(one, 5..70)
}

/// A request as it must be.
#[derive(Clone, Debug)]
struct Modelled {
    id: String,
    agent: usize,
    state: State,
    /// Whether the desk let it pass, and no person.
    by_desk: bool,
    expires_at: i64,
    /// Until when its newest grant is good, while that is neither used nor revoked.
    grant: Option<i64>,
}

impl Modelled {
    fn state_at(&self, now: i64) -> State {
        if self.state == State::Pending && self.expires_at <= now { State::Expired } else { self.state }
    }
}

/// A desk, and what it must be.
struct World {
    desk: TestDesk,
    owner: Actor,
    tokens: [Caller; 2],
    requests: Vec<Modelled>,
    paused: [bool; 3],
    /// Time that never steps back, and when proposals passed in it, by agent and domain.
    time: i64,
    stepped: bool,
    passed: BTreeMap<(usize, usize), Vec<i64>>,
    amount: i64,
}

impl World {
    fn new(backend: Backend) -> Self {
        let desk = TestDesk::new(backend);
        let session = desk.claim();
        let tokens = AGENTS.map(|agent| {
            let added = desk.call(&session, "desk_agent_add", json!({ "agent": agent, "expires_in_days": 3_650 })).unwrap();
            Caller::Secret(added["token"].as_str().unwrap().to_owned())
        });
        let you = desk.call(&session, "desk_whoami", json!({})).unwrap();
        let owner = Actor { role: Some(Role::Owner), ..Actor::person(you["id"].as_str().unwrap()) };
        let by = owner.id.clone();
        desk.act(move |cx| {
            let rules = Document::parse(&format!("authority:\n  volume_cap: {CAP}\n")).expect("the settings are right");
            policy::store(cx, &rules.over(&Parts::default()), &by)?;
            for domain in DOMAINS {
                let known = Known { score: Points::of(0.85), proposals: 10, approved: 9, overridden: 1, streak: 0, updated_at: cx.now() };
                let _ = trust::imported(cx, Of { agent: AGENTS[0], domain, verified: true, request: None, confidence: None }, &known)?;
            }
            Ok(())
        })
        .unwrap();
        Self { desk, owner, tokens, requests: Vec::new(), paused: [false; 3], time: 0, stepped: false, passed: BTreeMap::new(), amount: 0 }
    }

    fn now(&self) -> i64 {
        self.desk.act(|cx| Ok(cx.now())).unwrap()
    }

    fn pass(&mut self, seconds: i64) {
        self.desk.world.pass(Duration::from_secs(seconds.unsigned_abs()));
        self.time += seconds * 1_000_000;
    }

    fn which(&self, number: usize) -> Option<usize> {
        self.requests.len().checked_sub(1 + number % self.requests.len().max(1))
    }

    fn with(&mut self, number: usize, act: impl FnOnce(&mut Self, usize)) {
        if let Some(at) = self.which(number) {
            act(self, at);
        }
    }

    /// Runs something as the owner, who has just given the passphrase.
    fn as_owner<T: Send + 'static>(&self, act: impl Fn(&mut Cx<'_, '_>) -> Result<T> + Send + 'static) -> Result<T> {
        let owner = self.owner.clone();
        self.desk.act(move |cx| {
            cx.actor = Actor { presence_since: Some(cx.now()), ..owner.clone() };
            cx.surface = Surface::Cli;
            act(cx)
        })
    }

    fn is_paused(&self, agent: usize) -> bool {
        self.paused[agent] || self.paused[2]
    }

    fn trusted(&self, agent: usize, request: &str) -> Mode {
        let request = request.to_owned();
        let look = move |cx: &mut Cx<'_, '_>| {
            let domain = request::find(cx, &request)?.map(|request| request.domain).unwrap_or_default();
            Ok(trust::look(cx, AGENTS[agent], &domain, true)?.mode())
        };
        self.desk.act(look).unwrap()
    }

    fn propose(&mut self, agent: usize, domain: usize) {
        self.amount += 1;
        let change = json!({ "amount": self.amount }).to_string();
        let input = json!({
            "domain": DOMAINS[domain], "action": "update", "target": "deal/1", "proposed_change": change, "confidence": 0.8, "reasoning": "because",
        });
        let trusted = self.desk.act(move |cx| trust::look(cx, AGENTS[agent], DOMAINS[domain], true)).unwrap();
        let answer = self.desk.call(&self.tokens[agent], "cowork_propose", input).unwrap();
        let now = self.now();
        let passed = self.passed.entry((agent, domain)).or_default();
        let used = passed.iter().filter(|at| **at > self.time - HOUR).count();
        if answer["error"] == true {
            // A clock that stepped back makes the window longer, never shorter.
            let full = answer["volume_cap_error"] == true && (used >= CAP || self.stepped);
            assert!(self.paused[agent] || self.paused[2] || full, "{answer} after {used} in the last hour");
            return;
        }
        assert!(!self.paused[agent] && !self.paused[2], "a paused agent got {answer}");
        assert!(used < CAP, "the cap was exceeded: {used} in the last hour, and {answer}");
        if !self.stepped {
            assert_eq!(answer["volume_remaining"], json!(CAP - used - 1));
        }
        passed.push(self.time);
        let acts = answer["mode"] == "act";
        assert_eq!(acts, trusted.mode() == Mode::Act, "{answer} with {:?}", trusted.score);
        assert_eq!(acts, answer.get("grant").is_some(), "{answer}");
        self.requests.push(Modelled {
            id: answer["proposal_id"].as_str().unwrap().to_owned(),
            agent,
            state: if acts { State::Approved } else { State::Pending },
            by_desk: acts,
            expires_at: now + 7 * 24 * HOUR,
            grant: acts.then_some(now + GRANT),
        });
    }

    fn approve(&mut self, at: usize, edited: bool) {
        let (now, id) = (self.now(), self.requests[at].id.clone());
        self.amount += 1;
        let edits = edited.then(|| json!({ "amount": self.amount }));
        let done = self.as_owner(move |cx| request::approve(cx, &id, edits.clone(), None, None));
        let one = &mut self.requests[at];
        if one.state_at(now) == State::Pending {
            assert_eq!(done.unwrap().state, State::Approved);
            (one.state, one.by_desk, one.grant) = (State::Approved, false, Some(now + GRANT));
        } else {
            assert_code(&done.unwrap_err(), Code::Conflict);
        }
    }

    fn reject(&mut self, at: usize, kind: usize, severity: usize) {
        let (now, id) = (self.now(), self.requests[at].id.clone());
        let kind = ["agent_wrong", "missing_context", "edge_case", "human_preference", "policy_change"][kind].to_owned();
        let severity = [Severity::Low, Severity::Medium, Severity::High, Severity::Critical][severity];
        let correction = Correction { reason: Some("no".to_owned()), kind: Some(kind), severity: Some(severity), action: None };
        let done = self.as_owner(move |cx| request::reject(cx, &id, None, correction.clone()));
        let one = &mut self.requests[at];
        if one.state_at(now) == State::Pending {
            assert_eq!(done.unwrap().state, State::Rejected);
            one.state = State::Rejected;
        } else {
            assert_code(&done.unwrap_err(), Code::Conflict);
        }
    }

    fn undo(&mut self, at: usize) {
        let id = self.requests[at].id.clone();
        let done = self.as_owner(move |cx| request::undo(cx, &id, None));
        let one = &mut self.requests[at];
        if one.state == State::Approved && one.grant.is_some() {
            assert_eq!(done.unwrap().state, State::Pending);
            (one.state, one.by_desk, one.grant) = (State::Pending, false, None);
        } else {
            assert_code(&done.unwrap_err(), Code::Conflict);
        }
    }

    fn cancel(&mut self, at: usize, by_other: bool) {
        let now = self.now();
        let one = &mut self.requests[at];
        let caller = &self.tokens[if by_other { 1 - one.agent } else { one.agent }];
        let done = self.desk.call(caller, "cowork_cancel_request", json!({ "request_id": one.id }));
        let open = one.state_at(now) == State::Pending || (one.state == State::Approved && one.grant.is_some());
        match done {
            Err(error) if by_other => assert_code(&error, Code::NotFound),
            Err(error) => {
                assert!(!open, "{error}");
                assert_code(&error, Code::Conflict);
            }
            Ok(_) => {
                assert!(open && !by_other);
                (one.state, one.grant) = (State::Cancelled, None);
            }
        }
    }

    /// Begins, directly or with a report. Whether it may depends on the grant alone, unless trust fell since the desk
    /// let it pass.
    fn begin(&mut self, at: usize, by_other: bool, outcome: Option<&str>) {
        let now = self.now();
        let one = self.requests[at].clone();
        let caller = &self.tokens[if by_other { 1 - one.agent } else { one.agent }];
        let input =
            json!({ "domain": DOMAINS[0], "action": "did it", "actor": "agent", "reasoning": "as approved", "proposal_id": one.id, "outcome": outcome });
        let done = match outcome {
            None => self.desk.call(caller, "cowork_begin", json!({ "proposal_id": one.id })),
            Some(_) => self.desk.call(caller, "cowork_log", input),
        };
        let good = one.state == State::Approved && one.grant.is_some_and(|until| until > now);
        let may = good && !by_other && !self.is_paused(one.agent);
        let trusted = !one.by_desk || self.trusted(one.agent, &one.id) == Mode::Act;
        // After a step back nobody knows which use was this act's own, so at a full cap it counts twice, and people look at it.
        let stopped = |answer: &Value| answer["go"] == false || answer["approved"] == false;
        let trusted = trusted && !(self.stepped && done.as_ref().is_ok_and(stopped));
        let one = &mut self.requests[at];
        if by_other {
            match outcome {
                // The other's report is kept as its own, and moves nothing.
                Some(_) => assert_eq!(done.unwrap()["approved"], false),
                None => assert_code(&done.unwrap_err(), Code::NotFound),
            }
        } else if may && !trusted {
            // Today the desk would not let it pass: people look at it.
            let answer = done.unwrap();
            assert!(stopped(&answer), "{answer}");
            (one.state, one.by_desk, one.grant) = (State::Pending, false, None);
        } else if may {
            let answer = done.unwrap();
            assert!(answer["go"] == true || answer["approved"] == true, "{answer}");
            one.grant = None;
            one.state = outcome.map_or(State::Executing, |outcome| State::from_name(outcome).unwrap());
        } else if let Some(outcome) = outcome {
            let closes = matches!(one.state, State::Executing | State::Ambiguous);
            match done {
                Ok(answer) => assert_eq!(answer["approved"], json!(closes), "{answer}"),
                Err(error) => {
                    assert!(good, "{error}");
                    assert_code(&error, Code::Forbidden);
                }
            }
            if closes {
                one.state = State::from_name(outcome).unwrap();
            }
        } else {
            let error = done.unwrap_err();
            assert!(matches!(error.code, Code::Conflict | Code::Forbidden), "{error}");
        }
    }

    fn promotion(&self, yes: bool) {
        let waiting = self.desk.act(|cx| {
            let row = cx.tx.optional("select id from request where kind = 'promotion' and state = 'pending' order by id limit 1", &[])?;
            Ok(row.map(|row| row.get::<String>(0)).transpose()?)
        });
        let Some(id) = waiting.unwrap() else { return };
        let correction = Correction { reason: Some("not yet".to_owned()), ..Correction::default() };
        let done = self.as_owner(move |cx| if yes { request::approve(cx, &id, None, None, None) } else { request::reject(cx, &id, None, correction.clone()) });
        if let Err(error) = done {
            assert_code(&error, Code::Conflict);
        }
    }

    fn pause(&mut self, whom: usize, on: bool) {
        let (operation, input) =
            (if on { "desk_pause" } else { "desk_resume" }, if whom == 2 { json!({ "all": true }) } else { json!({ "agent": AGENTS[whom] }) });
        self.desk.call(&Caller::System, operation, input).unwrap();
        self.paused[whom] = on;
    }

    fn sweep(&mut self) {
        let now = self.now();
        while self.desk.act(|cx| request::expire_due(cx, 50)).unwrap() == 50 {}
        for one in &mut self.requests {
            if one.state_at(now) == State::Expired {
                one.state = State::Expired;
            }
        }
    }

    fn step(&mut self, doing: &Do) {
        match *doing {
            Do::Propose { agent, domain, count } => (0..count).for_each(|_| self.propose(agent, domain)),
            Do::Pause(whom, on) => self.pause(whom, on),
            Do::Promotion(yes) => self.promotion(yes),
            Do::Pass(seconds) => self.pass(seconds),
            Do::StepBack(seconds) => {
                self.desk.world.step_back(Duration::from_secs(seconds.unsigned_abs()));
                self.stepped = true;
            }
            Do::Restart => self.desk.restart(),
            Do::Sweep => self.sweep(),
            Do::Approve { which, edited } => self.with(which, |world, at| world.approve(at, edited)),
            Do::Reject { which, kind, severity } => self.with(which, |world, at| world.reject(at, kind, severity)),
            Do::Undo(which) => self.with(which, |world, at| world.undo(at)),
            Do::Cancel { which, by_other } => self.with(which, |world, at| world.cancel(at, by_other)),
            Do::Begin { which, by_other } => self.with(which, |world, at| world.begin(at, by_other, None)),
            Do::Report { which, outcome } => {
                let outcome = ["done", "failed", "ambiguous"][outcome];
                self.with(which, |world, at| world.begin(at, false, Some(outcome)));
            }
            Do::AgentDecides(which) => {
                if let Some(at) = self.which(which) {
                    let (one, input) = (&self.requests[at], json!({ "request": self.requests[at].id }));
                    assert_code(&self.desk.refused(&self.tokens[one.agent], "desk_request_approve", input), Code::Forbidden);
                }
            }
        }
    }

    /// Every row is in the state that the model says.
    fn compare(&self) {
        let now = self.now();
        for one in &self.requests {
            let id = one.id.clone();
            let found = self.desk.act(move |cx| request::find(cx, &id)).unwrap().expect("it is there");
            assert_eq!(found.state_at(now), one.state_at(now), "{one:?}");
        }
    }

    fn play(&mut self, doings: &[Do]) {
        for doing in doings {
            self.step(doing);
        }
        self.compare();
        self.desk.restart();
        self.compare();
        check(&self.desk);
    }
}

/// What must hold of every desk, judged by its record.
fn check(desk: &TestDesk) {
    let auditor = Auditor::read(desk);
    auditor.judge(desk);
    let replayed = desk.call(&Caller::System, "desk_trust_replay", json!({})).unwrap();
    assert_eq!(replayed["agrees"], true, "{replayed:#}");
    let report = desk.verify();
    assert!(report.sound, "{:?}", report.findings);
}

/// Judges a record by its events alone.
#[derive(Default)]
struct Auditor {
    /// The newest state and digest of each request.
    requests: BTreeMap<String, (String, String)>,
    grants: BTreeMap<String, Granted>,
    begun: BTreeSet<String>,
}

struct Granted {
    request: String,
    digest: String,
    expires_at: i64,
    used: bool,
    revoked: bool,
}

impl Auditor {
    fn read(desk: &TestDesk) -> Self {
        let mut auditor = Self::default();
        let mut next = 0;
        loop {
            let page = desk.act(move |cx| record::heads_after(cx.tx, next, 500).and_then(|heads| record::fill(cx.tx, heads))).unwrap();
            let Some(last) = page.last() else { return auditor };
            next = last.seq + 1;
            page.iter().for_each(|event| auditor.take(event));
        }
    }

    fn take(&mut self, event: &EventRow) {
        let text = |name: &str| event.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |name: &str| event.facts.get(name).and_then(Value::as_i64).unwrap_or_default();
        let at = deskmate_core::parse_time("at", &event.at).unwrap();
        match event.kind.as_str() {
            "grant.issued" => {
                let (state, digest) = &self.requests[&text("request")];
                assert_eq!(state, "approved", "a grant for what was not approved");
                assert_eq!(*digest, text("digest"), "a grant for something else");
                let open = |grant: &&Granted| grant.request == text("request") && !grant.used && !grant.revoked;
                assert_eq!(self.grants.values().filter(open).count(), 0, "two grants for one approval");
                let granted = Granted { request: text("request"), digest: text("digest"), expires_at: number("expires_at"), used: false, revoked: false };
                assert!(self.grants.insert(text("grant"), granted).is_none());
            }
            "grant.used" | "grant.revoked" => {
                let grant = self.grants.get_mut(&text("grant")).expect("a grant that was given");
                assert!(!grant.used && !grant.revoked, "a grant that was used or revoked before");
                if event.kind == "grant.used" {
                    assert!(at < grant.expires_at, "a grant that had run out");
                    assert_eq!(self.requests[&grant.request].1, grant.digest, "a grant for something else");
                    grant.used = true;
                } else {
                    grant.revoked = true;
                }
            }
            "request.started" => {
                let grant = &self.grants[&text("grant")];
                assert!(grant.used && grant.request == text("request"), "begun without its grant");
                assert!(self.begun.insert(text("grant")), "one grant, two acts");
                assert_eq!(event.actor, text("requester"), "begun by somebody else");
            }
            "request.finished" => assert!(matches!(self.requests[&text("request")].0.as_str(), "executing" | "ambiguous")),
            "request.approved" | "request.rejected" | "request.undone" | "request.edited" => assert_eq!(event.actor_kind, "person", "{event:?}"),
            "request.created" if text("state") == "approved" => assert_eq!((text("mode"), text("decided_by")), ("act".to_owned(), "desk".to_owned())),
            "trust.changed" if matches!(text("cause").as_str(), "approved" | "overridden" | "promoted") => assert_eq!(event.actor_kind, "person", "{event:?}"),
            _ => {}
        }
        if event.kind.starts_with("request.") {
            self.requests.insert(text("request"), (text("state"), text("digest")));
        }
    }

    /// Compares what was begun with the rows.
    fn judge(&self, desk: &TestDesk) {
        let ran = ["executing", "done", "failed", "ambiguous"];
        let told: BTreeSet<&String> = self.requests.iter().filter(|(_, (state, _))| ran.contains(&state.as_str())).map(|(id, _)| id).collect();
        let granted: BTreeSet<&String> = self.grants.values().filter(|grant| grant.used).map(|grant| &grant.request).collect();
        assert_eq!(told, granted, "what ran is what had a grant");
        let rows = desk.act(|cx| {
            let rows = cx.tx.query("select id from request where state in ('executing', 'done', 'failed', 'ambiguous') order by id", &[])?;
            Ok(rows.iter().map(|row| row.get::<String>(0)).collect::<Result<BTreeSet<String>, _>>()?)
        });
        assert_eq!(rows.unwrap().iter().collect::<BTreeSet<_>>(), told);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(16), failure_persistence: None, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_life_is_lawful_on_sqlite(doings in doings()) {
        World::new(Backend::Sqlite).play(&doings);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(4), failure_persistence: None, max_shrink_iters: 10, ..ProptestConfig::default() })]

    #[test]
    fn any_life_is_lawful_on_postgres(doings in doings()) {
        if let Some(backend) = Backend::postgres() {
            World::new(backend).play(&doings);
        }
    }
}

/// What chance meets only in some lives: a grant that ran out, a pause between approval and act, an approval taken back,
/// a second use, a full cap.
fn eventful() -> Vec<Do> {
    let (begin, approve) = (Do::Begin { which: 0, by_other: false }, Do::Approve { which: 0, edited: false });
    let propose = Do::Propose { agent: 1, domain: 0, count: 1 };
    let late = [propose.clone(), approve.clone(), Do::Pass(1_000), begin.clone()];
    let paused = [propose.clone(), approve.clone(), Do::Pause(1, true), begin.clone(), Do::Pause(1, false), begin.clone(), begin.clone()];
    let undone = [propose, approve, Do::Undo(0), begin.clone(), Do::Approve { which: 0, edited: true }, begin.clone(), Do::Report { which: 0, outcome: 0 }];
    let full = [Do::Propose { agent: 0, domain: 1, count: 14 }, begin, Do::AgentDecides(0), Do::StepBack(100), Do::Restart, Do::Sweep];
    [late.to_vec(), paused.to_vec(), undone.to_vec(), full.to_vec()].concat()
}

#[test]
fn an_eventful_life_is_lawful_on_sqlite() {
    World::new(Backend::Sqlite).play(&eventful());
}

#[test]
fn an_eventful_life_is_lawful_on_postgres() {
    if let Some(backend) = Backend::postgres() {
        World::new(backend).play(&eventful());
    }
}

fn cases(usual: u32) -> u32 {
    (ProptestConfig::default().cases / 256).max(1) * usual
}

/// Runs one thing on many threads at once.
fn at_once<T: Send>(count: usize, one: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for number in 0..count {
            let (one, done) = (&one, &done);
            scope.spawn(move || {
                let came = one(number);
                done.lock().unwrap().push(came);
            });
        }
    });
    done.into_inner().unwrap()
}

fn call(desk: &TestDesk, caller: &Caller, operation: &str, input: Value) -> Result<Value> {
    let Caller::Secret(secret) = caller else { panic!("a token") };
    let credential = Credential::Secret { secret: secret.clone(), proved: true };
    let answer = wait(desk.desk.call(Call { credential, surface: Surface::Cli, operation: operation.to_owned(), input }))?;
    match answer.outcome {
        Answered::Done(value) | Answered::NotYet(value) => Ok(value),
    }
}

fn proposal(amount: usize) -> Value {
    json!({
        "domain": DOMAINS[0], "action": "update", "target": "deal/1", "proposed_change": json!({ "amount": amount }).to_string(), "confidence": 0.8, "reasoning": "because",
    })
}

both! {
    fn many_clients_together_never_exceed_the_cap(desk: &TestDesk) {
        // Guard: the room is taken in the transaction of the proposal.
        let owner = desk.claim();
        let agent = desk.register(&owner, "code");
        let answers = at_once(8, |thread| (0..8).map(|number| call(desk, &agent, "cowork_propose", proposal(thread * 10 + number)).unwrap()).collect::<Vec<_>>());
        let answers: Vec<Value> = answers.into_iter().flatten().collect();
        desk.seal();
        let mut remaining: Vec<i64> = answers.iter().filter(|answer| answer["error"] != true).map(|answer| answer["volume_remaining"].as_i64().unwrap()).collect();
        remaining.sort_unstable();
        assert_eq!(remaining, (0..50).collect::<Vec<_>>());
        assert!(answers.iter().filter(|answer| answer["error"] == true).all(|answer| answer["volume_cap_error"] == true), "{answers:?}");
        check(desk);
    }

    fn of_many_who_begin_one_goes(desk: &TestDesk) {
        // Guard: a grant is consumed by an update that finds it unused.
        let owner = desk.claim();
        let agent = desk.register(&owner, "code");
        for number in 0..3 {
            let id = call(desk, &agent, "cowork_propose", proposal(number)).unwrap()["proposal_id"].clone();
            desk.seal();
            call(desk, &owner, "desk_request_approve", json!({ "request": id })).unwrap();
            desk.seal();
            let went = at_once(8, |_| call(desk, &agent, "cowork_begin", json!({ "proposal_id": id })));
            desk.seal();
            assert_eq!(went.iter().flatten().filter(|answer| answer["go"] == true).count(), 1, "{went:?}");
            went.iter().filter_map(|one| one.as_ref().err()).for_each(|error: &Error| assert_code(error, Code::Conflict));
        }
        check(desk);
    }

    fn of_many_who_approve_one_counts(desk: &TestDesk) {
        // Guard: an answer needs a request that waits, and `trust_verdict` holds one for each request.
        let owner = desk.claim();
        let agent = desk.register(&owner, "code");
        let id = call(desk, &agent, "cowork_propose", proposal(1)).unwrap()["proposal_id"].clone();
        desk.seal();
        let done = at_once(8, |_| call(desk, &owner, "desk_request_approve", json!({ "request": id })));
        desk.seal();
        assert_eq!(done.iter().filter(|one| one.is_ok()).count(), 1, "{done:?}");
        let shown = desk.call(&owner, "desk_trust_get", json!({ "agent": "code", "domain": DOMAINS[0] })).unwrap();
        assert_eq!((shown["rows"][0]["score"].as_f64(), shown["rows"][0]["sample_size"].as_i64()), (Some(0.32), Some(1)));
        check(desk);
    }

    fn an_approval_is_taken_back_or_used_and_never_both(desk: &TestDesk) {
        // Guard: consuming and revoking change the same row, each only if the other did not.
        let owner = desk.claim();
        let agent = desk.register(&owner, "code");
        for number in 0..5 {
            let id = call(desk, &agent, "cowork_propose", proposal(number)).unwrap()["proposal_id"].clone();
            desk.seal();
            call(desk, &owner, "desk_request_approve", json!({ "request": id })).unwrap();
            desk.seal();
            let done = at_once(2, |who| match who {
                0 => call(desk, &agent, "cowork_begin", json!({ "proposal_id": id })).is_ok_and(|answer| answer["go"] == true),
                _ => call(desk, &owner, "desk_request_undo", json!({ "request": id })).is_ok(),
            });
            desk.seal();
            assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
        }
        check(desk);
    }
}
