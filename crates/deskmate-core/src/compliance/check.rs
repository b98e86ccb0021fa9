//! Asking a control's checks, and putting their answers together.

use deskmate_db::args;
use serde_json::Value;

use super::framework::{Check, Control, EventsCheck, EveryCheck, Framework, ProbeCheck, SettingCheck, That};
use super::look::{Events, Looker};
use super::report::{Checked, ControlOut, EventRef, NOTICE, ProbeRef, RecordOut, Report, SettingRef, Status};
use super::state;
use crate::agents::Subject;
use crate::call::{ActorKind, Cx};
use crate::policy::{self, Effect, Standing};
use crate::record::{self, EventRow};
use crate::request::{self, Requester};
use crate::trust::Points;
use crate::{Result, format_time};

/// How many events a check shows.
const SHOWN: usize = 5;
/// How many events of one subject are looked at for what was said before.
const BEFORE: u32 = 50;
/// Days that a report looks back unless told otherwise.
pub(super) const DAYS: u32 = 90;

/// Makes a report.
pub(super) fn report(cx: &mut Cx<'_, '_>, framework: &Framework, subject: &Subject, days: u32) -> Result<Report> {
    let since = cx.now().saturating_sub(i64::from(days).saturating_mul(86_400_000_000));
    let mut asking = Asking { looker: Looker::new(cx, &subject.agent, since)?, subject };
    let controls = framework.controls.iter().map(|control| asking.control(cx, control)).collect::<Result<Vec<_>>>()?;
    let (counts, score, verdict) = Report::weigh(&controls);
    let (id, title, edition) = Report::titled(framework);
    Ok(Report {
        agent: subject.agent.clone(),
        framework: id,
        title,
        edition,
        at: format_time(cx.now()),
        since: format_time(since),
        verdict,
        score,
        counts,
        controls,
        looked_at: asking.looker.looked,
        cannot: framework.cannot.clone(),
        record: RecordOut { size: record::size(cx.tx)?, checkpoint: record::newest_checkpoint(cx.tx)?, keys: cx.keys.keys().to_vec() },
        notice: NOTICE.to_owned(),
    })
}

struct Asking<'s> {
    looker: Looker,
    subject: &'s Subject,
}

impl Asking<'_> {
    fn control(&mut self, cx: &mut Cx<'_, '_>, control: &Control) -> Result<ControlOut> {
        let checks = control.checks.iter().map(|check| self.check(cx, check)).collect::<Result<Vec<_>>>()?;
        let status = together(&checks);
        Ok(ControlOut {
            id: control.id.clone(),
            title: control.title.clone(),
            asks: control.asks.clone(),
            status,
            cannot: control.cannot.clone(),
            advice: control.advice.clone().filter(|_| matches!(status, Status::NotMet | Status::Partly)),
            checks,
        })
    }

    fn check(&mut self, cx: &mut Cx<'_, '_>, check: &Check) -> Result<Checked> {
        let mut checked = Checked {
            shows: check.shows.clone(),
            status: Status::CannotBeShown,
            why: String::new(),
            also: check.also,
            found: 0,
            looked_at: 0,
            cut: false,
            events: Vec::new(),
            settings: Vec::new(),
            probes: Vec::new(),
        };
        match check {
            Check { setting: Some(setting), .. } => self.setting(cx, setting, &mut checked)?,
            Check { probe: Some(probe), .. } => self.probe(cx, probe, &mut checked)?,
            Check { events: Some(events), .. } => self.events(cx, events, &mut checked)?,
            Check { every: Some(every), .. } => self.every(cx, every, &mut checked)?,
            _ => "the check asks nothing".clone_into(&mut checked.why),
        }
        Ok(checked)
    }

    fn setting(&mut self, cx: &mut Cx<'_, '_>, check: &SettingCheck, checked: &mut Checked) -> Result<()> {
        let found = state::read(cx, self.subject, &check.name)?;
        checked.events.extend(found.event);
        let number = found.value.as_ref().and_then(Value::as_f64);
        let (good, wanted) = match (&check.is, check.at_least, check.at_most) {
            (Some(is), ..) => (found.value.as_ref() == Some(is), format!("must be {is}")),
            (_, Some(least), _) => (number.is_some_and(|number| number >= least), format!("must be at least {least}")),
            (_, _, Some(most)) => (number.is_some_and(|number| number <= most), format!("must be at most {most}")),
            _ => (false, "is not said".to_owned()),
        };
        checked.why = match &found.value {
            None => format!("{} cannot be seen from here", check.name),
            Some(Value::Null) => format!("{} has no value: it never happened", check.name),
            Some(value) => format!("{} is {value}, and {wanted}", check.name),
        };
        checked.status = match (&found.value, good) {
            (None, _) => Status::CannotBeShown,
            (_, true) => Status::Met,
            (_, false) => Status::NotMet,
        };
        let about = state::KNOWN.iter().find(|(name, _)| *name == check.name).map_or("", |(_, about)| about);
        checked.settings.push(SettingRef { name: check.name.clone(), about: about.to_owned(), value: found.value, wanted });
        Ok(())
    }

    /// What the desk would answer to the agent, were it trusted in full, in each domain in which it has policies of its own and in one
    /// where it has none: what trust holds today it may let pass tomorrow, so only rules count.
    fn probe(&mut self, cx: &mut Cx<'_, '_>, check: &ProbeCheck, checked: &mut Checked) -> Result<()> {
        let rulebook = policy::current(cx)?;
        let standing = Standing {
            agent: self.subject.agent.clone(),
            verified: true,
            paused: false,
            score: Points::ONE,
            decided: i64::MAX,
            over_a_persons_edit: false,
            waived_by: None,
            attached: crate::agents::attached(cx, &self.subject.agent, &rulebook)?,
        };
        let who = Requester { kind: ActorKind::Agent, id: self.subject.agent.clone(), verified: true };
        for domain in state::domains(&rulebook, &self.subject.agent) {
            let act = check.act.within(&domain);
            let mut decision = policy::decide(&rulebook, &act, &standing, &check.counters.counters(), cx.now());
            if act.kind == crate::agents::DEPLOY {
                request::hold_unless_named(cx, &mut decision, &act, &who)?;
            }
            let hits: Vec<&policy::Hit> = decision.hits.iter().filter(|hit| hit.effect != Effect::Allow).collect();
            let good = (check.answer.is_empty() || check.answer.contains(&decision.mode))
                && (check.fires.is_empty() || hits.iter().any(|hit| check.fires.contains(&hit.effect)))
                && check.people.is_none_or(|people| decision.mode == policy::Mode::Deny || decision.needs.quorum >= people);
            checked.probes.push(ProbeRef {
                act: check.act.words(),
                domain,
                answer: decision.mode.name().to_owned(),
                rules: hits.iter().map(|hit| format!("{} ({} version {})", hit.rule_id, hit.policy, hit.version)).collect(),
                good,
            });
        }
        let good = checked.probes.iter().filter(|probe| probe.good).count();
        checked.status = match good {
            0 => Status::NotMet,
            all if all == checked.probes.len() => Status::Met,
            _ => Status::Partly,
        };
        checked.why = match checked.status {
            Status::Met => "the rules in force answer so wherever this agent acts".to_owned(),
            Status::Partly => {
                let gaps: Vec<&str> = checked.probes.iter().filter(|probe| !probe.good).map(|probe| probe.domain.as_str()).collect();
                format!("the rules in force answer so, but not in {}", gaps.join(", "))
            }
            _ => "no rule in force for this agent answers so".to_owned(),
        };
        Ok(())
    }

    fn events(&mut self, cx: &mut Cx<'_, '_>, check: &EventsCheck, checked: &mut Checked) -> Result<()> {
        let found = self.looker.find(cx, &check.kinds, check.of, &check.facts)?;
        let count = found.events.len() as u64;
        let many = if found.cut { format!("at least {count}") } else { count.to_string() };
        let (status, wanted) = match (check.at_least, check.at_most) {
            (Some(least), _) if count >= least => (Status::Met, format!("{least} or more are wanted")),
            (Some(least), _) => (if found.cut { Status::Partly } else { Status::NotMet }, format!("{least} or more are wanted")),
            (_, Some(most)) if count > most => (Status::NotMet, format!("at most {most} may be")),
            (_, Some(most)) => (if found.cut { Status::Partly } else { Status::Met }, format!("at most {most} may be")),
            (None, None) => (Status::CannotBeShown, "nothing is asked".to_owned()),
        };
        checked.status = status;
        checked.why = format!("{many} events of {} since the begin of the period, and {wanted}", check.kinds.join(", "));
        let against = status == Status::NotMet;
        show(checked, &found, |_| against);
        Ok(())
    }

    fn every(&mut self, cx: &mut Cx<'_, '_>, check: &EveryCheck, checked: &mut Checked) -> Result<()> {
        let found = self.looker.find(cx, &check.kinds, check.of, &check.facts)?;
        let mut against = Vec::new();
        for event in &found.events {
            if !holds(cx, check.that, event)? {
                against.push(event.seq);
            }
        }
        let (count, wrong) = (found.events.len(), against.len());
        checked.status = match (count, wrong, found.cut) {
            (_, 1.., _) => Status::NotMet,
            (_, 0, true) => Status::Partly,
            (0, ..) => Status::CannotBeShown,
            _ => Status::Met,
        };
        checked.why = match checked.status {
            Status::CannotBeShown => "nothing of the kind happened in the period".to_owned(),
            Status::NotMet => format!("{wrong} of {count} events are otherwise"),
            Status::Partly => format!("it holds of the newest {count} events, and there are more than were looked at"),
            Status::Met => format!("it holds of all {count} events"),
        };
        show(checked, &found, |event| against.contains(&event.seq));
        Ok(())
    }
}

/// The events that a check shows: those against it first, then the newest.
fn show(checked: &mut Checked, found: &Events, against: impl Fn(&EventRow) -> bool) {
    checked.found = found.events.len();
    checked.looked_at = found.looked;
    checked.cut = found.cut;
    let (wrong, good): (Vec<_>, Vec<_>) =
        found.events.iter().map(|event| EventRef { against: against(event), ..EventRef::of(event) }).partition(|event| event.against);
    checked.events.extend(wrong.into_iter().take(SHOWN));
    checked.events.extend(good.into_iter().take(SHOWN));
}

/// Whether something holds of an event.
fn holds(cx: &mut Cx<'_, '_>, that: That, event: &EventRow) -> Result<bool> {
    let text = |name: &str| event.facts.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    Ok(match that {
        That::Decided => text("rulebook") || text("grant") || text("decided_by") || text("request"),
        That::ByPerson => event.actor_kind == "person",
        That::Proved => event.verified,
        That::ByAnother => event.actor_kind == "person" && author(cx, event)?.is_some_and(|author| author != event.actor),
        That::Allowed => said_before(cx, event)?.is_none_or(|kind| !NO.contains(&kind.as_str())),
    })
}

/// What says no.
const NO: [&str; 6] = ["request.rejected", "request.expired", "request.cancelled", "request.superseded", "request.stopped", "call.denied"];
/// What says yes after that.
const YES: [&str; 3] = ["request.approved", "request.created", "call.passed"];

pub(super) const EARLIER: &str = "select seq, kind, actor from event where subject = $1 and seq < $2 order by seq desc limit $3";

/// The last thing that was said of the same subject before an event.
fn said_before(cx: &mut Cx<'_, '_>, event: &EventRow) -> Result<Option<String>> {
    let rows = cx.tx.query(EARLIER, args![event.subject, i64::try_from(event.seq).unwrap_or(i64::MAX), BEFORE])?;
    for row in &rows {
        let kind: String = row.get(1)?;
        if NO.contains(&kind.as_str()) || YES.contains(&kind.as_str()) {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

/// However much was told of an agent since, such as what it was denied.
pub(super) const WRITTEN: &str =
    "select actor from event where subject = $1 and seq < $2 and kind in ('agent.made', 'agent.changed') order by seq desc limit $3";

/// Who wrote what an agent was when this happened to it.
fn author(cx: &mut Cx<'_, '_>, event: &EventRow) -> Result<Option<String>> {
    let row = cx.tx.optional(WRITTEN, args![event.subject, i64::try_from(event.seq).unwrap_or(i64::MAX), 1])?;
    row.map(|row| row.get(0)).transpose().map_err(Into::into)
}

/// What a control comes to: one thing that does not hold is enough, and what nothing shows counts neither way.
pub(super) fn together(checks: &[Checked]) -> Status {
    let is = |status: Status| checks.iter().any(|check| check.status == status);
    if checks.iter().any(|check| check.status == Status::NotMet && !check.also) {
        Status::NotMet
    } else if is(Status::Partly) || is(Status::NotMet) {
        Status::Partly
    } else if is(Status::Met) {
        Status::Met
    } else {
        Status::CannotBeShown
    }
}

/// A report as an agent may see it: what is set at the desk, which rules there are, and what others did is for people.
pub(super) fn for_agent(report: &mut Report, mut visible: impl FnMut(u64) -> Result<bool>) -> Result<()> {
    for check in report.controls.iter_mut().flat_map(|control| &mut control.checks) {
        let mut kept = Vec::new();
        for event in std::mem::take(&mut check.events) {
            if visible(event.seq)? {
                kept.push(event);
            }
        }
        check.events = kept;
        for setting in &mut check.settings {
            setting.value = None;
            "is for people".clone_into(&mut setting.wanted);
        }
        if !check.settings.is_empty() {
            check.status.words().clone_into(&mut check.why);
        }
        for probe in &mut check.probes {
            probe.rules.clear();
        }
        check.probes.retain(|probe| probe.domain == "any" || !probe.good);
    }
    Ok(())
}
