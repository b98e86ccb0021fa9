//! The rule of a statement: a condition of questions that the engine knows, with every value written out.

use serde_json::Value;

use super::amount::{Amount, Compared, Times};
use super::{About, DraftedRule, Reading, Recipients, Said, Statement};
use crate::policy::{Effect, GeneralRule, Match, Severity, literal};

const MONEY_FIELDS: &str = "['amount', 'total', 'price', 'sum', 'amount_due', 'payment_amount']";
const MANY_FIELDS: &str = "['ids', 'records', 'rows', 'paths', 'files', 'items', 'keys', 'targets']";
const COUNT_FIELDS: &str = "['count', 'total', 'records', 'rows', 'record_count', 'row_count', 'quantity', 'limit']";

/// Words that narrow something down and that no condition can tell.
const VAGUE: [&str; 16] = [
    "suspicious",
    "dangerous",
    "risky",
    "harmful",
    "bad",
    "weird",
    "inappropriate",
    "sensitive",
    "important",
    "unusual",
    "critical",
    "malicious",
    "strange",
    "confidential",
    "wrong",
    "unsafe",
];

/// Makes the rules of a statement, or says what cannot be expressed.
pub(super) fn rules(reading: &Reading<'_>, statement: &Statement) -> Result<Vec<DraftedRule>, String> {
    if let Some(cannot) = statement.cannot.first() {
        return Err(format!("a condition cannot tell {cannot}"));
    }
    let effects = effects(statement)?;
    let only_notes = effects.iter().all(|effect| *effect == Effect::Log);
    let mut left_out = statement.wider.clone();
    if only_notes {
        left_out.extend(statement.unknown.iter().cloned());
    } else if !statement.unknown.is_empty() {
        let vague = statement.unknown.iter().any(|word| VAGUE.contains(&word.as_str()));
        let hint = if vague { "say by which act, amount, time or data it shows" } else { "leave them out, or name a domain, a tool or an environment" };
        return Err(format!("no condition can tell {}: {hint}", quoted(&statement.unknown)));
    }
    let parts = parts(statement);
    let mut made = Vec::new();
    for part in parts {
        for effect in &effects {
            made.push(rule(reading, statement, &part, *effect, &left_out)?);
        }
    }
    if made.is_empty() {
        Err("which acts are meant was not understood: name what is done, such as deleting, paying, sending mail or writing files".to_owned())
    } else {
        Ok(made)
    }
}

fn quoted(words: &[String]) -> String {
    let shown: Vec<String> = words.iter().take(6).map(|word| format!("\"{word}\"")).collect();
    shown.join(", ")
}

fn effects(statement: &Statement) -> Result<Vec<Effect>, String> {
    let has = |said: Said| statement.effects.contains(&said);
    let is_limit = statement.amounts.iter().any(|(_, amount)| matches!(amount, Amount::Rate(..) | Amount::Cost(..)));
    let mut effects = Vec::new();
    if has(Said::RequireApproval) {
        effects.push(Effect::RequireApproval);
    } else if has(Said::Redact) {
        effects.push(Effect::Redact);
    } else if has(Said::Deny) || has(Said::Only) || has(Said::Rate) || (is_limit && !has(Said::Log)) {
        effects.push(Effect::Deny);
    }
    if has(Said::Log) {
        effects.push(Effect::Log);
    }
    if effects.is_empty() {
        return Err(if has(Said::Allow) {
            "a policy only takes away, so allowing something changes nothing: say what must not be done, or what a person decides".to_owned()
        } else if statement.amounts.iter().any(|(_, amount)| matches!(amount, Amount::Count(Compared::Above, _) | Amount::Money(Compared::Above, _))) {
            "it does not say whether that is refused or decided by a person".to_owned()
        } else {
            "it does not say what becomes of it: write block, require approval for, log, hide, limit or only".to_owned()
        });
    }
    Ok(effects)
}

/// A part of a statement with one thing that is done.
#[derive(Clone, Debug, Default)]
struct Part {
    does: Option<String>,
    holds: Vec<String>,
    fields: Vec<(String, Vec<String>)>,
    amounts: Vec<Amount>,
}

/// A statement about several things that are done, joined by "and" or "or", has a part for each.
fn parts(statement: &Statement) -> Vec<Part> {
    let doings: Vec<(usize, &String)> = statement
        .found
        .iter()
        .filter_map(|found| match &found.about {
            About::Does(what) => Some((found.start, what)),
            _ => None,
        })
        .collect();
    let mut bounds: Vec<usize> = doings.iter().map(|(start, _)| *start).collect();
    if bounds.is_empty() {
        bounds.push(statement.start);
    }
    let mut parts: Vec<Part> = Vec::new();
    for (number, start) in bounds.iter().enumerate() {
        // What stands before the first thing that is done belongs to it.
        let from = if number == 0 { statement.start } else { *start };
        let to = bounds.get(number + 1).copied().unwrap_or(statement.end);
        let mut part = Part { does: doings.get(number).map(|(_, what)| (*what).clone()), ..Part::default() };
        for found in statement.found.iter().filter(|found| (from..to).contains(&found.start)) {
            match &found.about {
                About::Holds(kind) => part.holds.push(kind.clone()),
                About::Fields(says, names) => part.fields.push((says.clone(), names.clone())),
                _ => {}
            }
        }
        part.amounts = statement.amounts.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, amount)| amount.clone()).collect();
        parts.push(part);
    }
    // "never mail or post card numbers": what the last part holds is meant by all.
    if let Some(last) = parts.last().cloned() {
        for part in parts.iter_mut().filter(|part| part.holds.is_empty() && part.fields.is_empty() && part.amounts.is_empty()) {
            part.holds.clone_from(&last.holds);
            part.fields.clone_from(&last.fields);
            part.amounts.clone_from(&last.amounts);
        }
    }
    // Of "send a message" and "message" one is enough.
    let mut seen: Vec<Option<String>> = Vec::new();
    parts.retain(|part| {
        let is_new = !seen.contains(&part.does);
        seen.push(part.does.clone());
        is_new
    });
    let is_everything = |part: &Part| part.does.as_deref() == Some("");
    if parts.len() > 1 {
        parts.retain(|part| !is_everything(part));
    }
    parts
}

/// A condition under way, with its words.
#[derive(Default)]
struct Condition {
    all: Vec<String>,
    says: Vec<String>,
    assumed: Vec<String>,
}

fn texts(list: &[String]) -> String {
    literal(&Value::from(list.to_vec()))
}

fn text(one: &str) -> String {
    literal(&Value::from(one))
}

/// What is done, as people say it.
fn what(question: &str, word: &str) -> &'static str {
    crate::policy::questions().find(|(known, name, _)| *known == question && *name == word).map_or("", |(_, _, what)| what)
}

fn rule(reading: &Reading<'_>, statement: &Statement, part: &Part, effect: Effect, left_out: &[String]) -> Result<DraftedRule, String> {
    let is_only = statement.effects.contains(&Said::Only) && effect == Effect::Deny;
    // "Spend at most 20 a day" is about what acts cost, whatever they do.
    let mut part = part.clone();
    if part.does.as_deref() == Some("pay") && part.amounts.iter().any(|amount| matches!(amount, Amount::Cost(..))) {
        part.does = Some(String::new());
    }
    let part = &part;
    let mut condition = Condition::default();
    let has_place = statement.recipients.is_some()
        || statement.times.is_some()
        || statement.found.iter().any(|found| matches!(found.about, About::Environment(_) | About::Says(..)));
    condition.doing(part, is_only && !has_place && part.amounts.is_empty() && statement.agents.is_empty());
    condition.data(part, effect);
    for amount in &part.amounts {
        condition.amount(amount, effect, is_only);
    }
    condition.recipients(statement, part.does.as_deref());
    if let Some(times) = &statement.times {
        condition.times(times, is_only || statement.is_exception);
    }
    let mut matches = Match { domain: statement.domains.clone(), tool: statement.tools.clone(), ..Match::default() };
    condition.rest(statement, effect, is_only, &mut matches);
    if is_only && !statement.agents.is_empty() {
        condition.all.push(format!("!(agent.id in {})", texts(&statement.agents)));
        condition.says.push(format!("by others than {}", statement.agents.join(", ")));
    } else {
        matches.agent.clone_from(&statement.agents);
    }
    let paths = paths(part);
    let is_everything = part.does.as_deref() == Some("");
    if condition.all.is_empty() && matches.is_empty() && !is_everything && effect != Effect::Redact {
        return Err("which acts are meant was not understood: name what is done, such as deleting, paying, sending mail or writing files".to_owned());
    }
    if effect == Effect::Redact && paths.is_empty() {
        return Err("what is hidden was not understood: name a kind of data, such as e-mail addresses, card numbers, passwords or health data".to_owned());
    }
    let end = match effect {
        Effect::Deny => "is refused",
        Effect::RequireApproval => "is decided by a person",
        Effect::Log => "is noted",
        Effect::Redact => "is hidden from what is shown and kept",
        Effect::Allow => "is allowed",
    };
    let said = if condition.says.is_empty() { "every act".to_owned() } else { condition.says.join(" ") };
    let is_secret = part.holds.iter().any(|kind| matches!(kind.as_str(), "secret" | "card" | "ssn" | "sql_drop" | "sql_all_rows"));
    let severity = match effect {
        Effect::Log | Effect::Allow => Severity::Info,
        _ if is_secret => Severity::Critical,
        _ => Severity::High,
    };
    let when = (!condition.all.is_empty()).then(|| condition.all.join(" && "));
    let rule = GeneralRule {
        name: name(effect, part, &condition),
        matches,
        when: if effect == Effect::Redact && part.does.is_none() { when.filter(|_| statement.times.is_some()) } else { when },
        effect,
        approvers: if effect == Effect::RequireApproval { statement.approvers.clone() } else { Vec::new() },
        quorum: statement.quorum.filter(|_| effect == Effect::RequireApproval),
        grant_seconds: None,
        expires_seconds: None,
        paths: if effect == Effect::Redact { paths } else { Vec::new() },
        severity,
        message: capital(&format!("{said} {end}")),
        alternative: None,
        waive_trust: false,
    };
    Ok(DraftedRule { rule, words: reading.said(statement.start, statement.end), left_out: left_out.to_vec(), assumed: condition.assumed })
}

fn paths(part: &Part) -> Vec<String> {
    let hidden = part.holds.iter().filter(|kind| !kind.starts_with("sql_")).map(|kind| format!("holds({kind})"));
    hidden.chain(part.fields.iter().flat_map(|(_, names)| names.iter().cloned())).collect()
}

fn name(effect: Effect, part: &Part, condition: &Condition) -> String {
    let verb = match effect {
        Effect::Deny => "no",
        Effect::RequireApproval => "ask_before",
        Effect::Log => "note",
        Effect::Redact => "hide",
        Effect::Allow => "allow",
    };
    let does = part.does.as_deref().filter(|does| !does.is_empty());
    let data = part.holds.first().map(String::as_str).or_else(|| part.fields.first().map(|(says, _)| says.as_str()));
    let amount = part.amounts.first().map(|amount| match amount {
        Amount::Rate(period, _) => format!("per_{period}"),
        Amount::Cost(..) => "cost".to_owned(),
        Amount::Money(..) => "amount".to_owned(),
        Amount::Count(..) => "many".to_owned(),
        Amount::Recipients(..) => "recipients".to_owned(),
    });
    let words: Vec<&str> = [Some(verb), does, data, amount.as_deref()].into_iter().flatten().collect();
    let name = if words.len() > 1 { words.join("_") } else { format!("{verb}_{}", if condition.all.is_empty() { "acts" } else { "acts_then" }) };
    name.replace([' ', '-'], "_")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A number as a condition has it.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value:?}") }
}

impl Condition {
    fn doing(&mut self, part: &Part, is_only: bool) {
        let Some(does) = part.does.as_deref().filter(|does| !does.is_empty()) else { return };
        if is_only {
            // "only read" forbids the rest.
            if matches!(does, "read" | "query" | "file_read") {
                self.all.push("(does('write') || does('delete') || does('database_write') || holds('sql_write') || holds('sql_schema'))".to_owned());
                self.says.push("changing something".to_owned());
            } else {
                self.all.push(format!("!does({})", text(does)));
                self.says.push(format!("anything but {}", what("does", does)));
            }
            return;
        }
        let more = match does {
            "delete" if !part.holds.iter().any(|kind| kind.starts_with("sql_")) => Some("holds('sql_delete')"),
            "database_write" => Some("holds('sql_write')"),
            _ => None,
        };
        self.all.push(match more {
            Some(more) => format!("(does({}) || {more})", text(does)),
            None => format!("does({})", text(does)),
        });
        self.says.push(what("does", does).to_owned());
    }

    fn data(&mut self, part: &Part, effect: Effect) {
        let mut any: Vec<String> = part.holds.iter().map(|kind| format!("holds({})", text(kind))).collect();
        let mut says: Vec<String> = part.holds.iter().map(|kind| what("holds", kind).to_owned()).collect();
        for kind in &part.holds {
            let names: &[&str] = match kind.as_str() {
                "card" => &["card_number", "credit_card", "credit_card_number", "cvv", "cvc"],
                "ssn" => &["ssn", "social_security_number", "social_security"],
                "iban" => &["iban", "account_number", "bank_account"],
                "secret" => &["password", "api_key", "secret", "token", "private_key"],
                _ => &[],
            };
            if !names.is_empty() && effect != Effect::Redact {
                let list: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
                any.push(format!("fields.exists(name, name in {})", texts(&list)));
            }
        }
        for (said, names) in &part.fields {
            any.push(format!("fields.exists(name, name in {})", texts(names)));
            says.push(said.clone());
        }
        if let [only] = any.as_slice() {
            self.all.push(only.clone());
        } else if !any.is_empty() {
            self.all.push(format!("({})", any.join(" || ")));
        }
        if !says.is_empty() {
            let said = says.join(" or ");
            self.says.push(if part.does.as_deref().is_none_or(str::is_empty) { format!("whatever holds {said}") } else { format!("with {said}") });
        }
    }

    fn amount(&mut self, amount: &Amount, effect: Effect, is_only: bool) {
        let sign = |compared: Compared| match (compared, is_only) {
            (Compared::Below, true) | (Compared::From, false) => (">=", "from"),
            (Compared::Below, false) | (Compared::From, true) => ("<", "below"),
            (Compared::Above, _) => (">", "above"),
        };
        match amount {
            Amount::Money(compared, most) => {
                let (sign, words) = sign(*compared);
                self.all.push(format!("(largest({MONEY_FIELDS}) {sign} {} || count({MONEY_FIELDS}) == 0)", number(*most)));
                self.says.push(format!("{words} {}", number(*most)));
                if effect != Effect::Log {
                    self.assumed.push("an act that names no amount counts as one with too much".to_owned());
                }
            }
            Amount::Count(compared, most) => {
                let (sign, words) = sign(*compared);
                self.all.push(format!("(count({MANY_FIELDS}) {sign} {0} || largest({COUNT_FIELDS}) {sign} {0})", number(*most)));
                self.says.push(format!("of {} {}", if words == "above" { "more than" } else { words }, number(*most)));
                self.assumed.push("what an act does not say about how many it is cannot be counted".to_owned());
            }
            Amount::Recipients(compared, most) => {
                let (sign, words) = sign(*compared);
                self.all.push(format!("size(recipients) {sign} {}", number(*most)));
                self.says.push(format!("to {} {} at once", if words == "above" { "more than" } else { words }, number(*most)));
            }
            Amount::Rate(period, most) => {
                self.all.push(format!("counters.calls_{period} >= {}", number(*most)));
                self.says.push(format!("after {} acts in a {period}", number(*most)));
                self.assumed.push(format!("all acts of the agent in the domain are counted, per {period}"));
            }
            Amount::Cost(true, most) => {
                self.all.push(format!("counters.cost_day + act.cost > {most:?}"));
                self.says.push(format!("what brings the costs of the day above {}", number(*most)));
            }
            Amount::Cost(false, most) => {
                self.all.push(format!("act.cost > {most:?}"));
                self.says.push(format!("what costs more than {}", number(*most)));
            }
        }
    }

    fn recipients(&mut self, statement: &Statement, does: Option<&str>) {
        match &statement.recipients {
            None => {}
            Some(Recipients::Outside(ends)) => {
                let fits: Vec<String> = ends.iter().map(|end| format!("who.endsWith({})", text(end))).collect();
                self.all.push(format!("recipients.exists(who, !({}))", fits.join(" || ")));
                self.says.push(format!("to others than {}", ends.join(", ")));
            }
            Some(Recipients::Are(ends)) => {
                let fits: Vec<String> = ends.iter().map(|end| format!("who.endsWith({})", text(end))).collect();
                self.all.push(format!("recipients.exists(who, {})", fits.join(" || ")));
                self.says.push(format!("to {}", ends.join(", ")));
            }
        }
        if statement.recipients.is_some() && does.is_none() {
            self.assumed.push("everything that has recipients is meant".to_owned());
        }
    }

    fn times(&mut self, times: &Times, is_what_may_be: bool) {
        let mut inside = Vec::new();
        let mut says = Vec::new();
        if let Some((from, to)) = times.hours {
            let is_whole = from % 60 == 0 && to % 60 == 0;
            let (clock, from_shown, to_shown) = if is_whole { ("time.hour", from / 60, to / 60) } else { ("time.hour * 60 + time.minute", from, to) };
            inside.push(match (from, to) {
                (0, _) => format!("{clock} < {to_shown}"),
                (_, 1440) => format!("{clock} >= {from_shown}"),
                _ if from < to => format!("({clock} >= {from_shown} && {clock} < {to_shown})"),
                _ => format!("({clock} >= {from_shown} || {clock} < {to_shown})"),
            });
            says.push(format!("from {:02}:{:02} to {:02}:{:02} UTC", from / 60, from % 60, to / 60, to % 60));
            self.assumed.push("times are UTC".to_owned());
        }
        if let Some(days) = times.days {
            inside.push(match days {
                0b011_1110 => "time.weekday <= 5".to_owned(),
                0b100_0001 => "time.weekday > 5".to_owned(),
                days => {
                    // Sunday is 7 here.
                    let list: Vec<String> =
                        (0..7).filter(|day| days & (1 << day) != 0).map(|day| if day == 0 { "7".to_owned() } else { day.to_string() }).collect();
                    format!("time.weekday in [{}]", list.join(", "))
                }
            });
            let names = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
            says.push(match days {
                0b011_1110 => "on weekdays".to_owned(),
                0b100_0001 => "on weekends".to_owned(),
                days => {
                    format!("on {}", names.iter().enumerate().filter(|(day, _)| days & (1 << day) != 0).map(|(_, name)| *name).collect::<Vec<_>>().join(", "))
                }
            });
        }
        let all = inside.join(" && ");
        // "only between 9 and 17", "except on weekends", "outside office hours": but "only outside office hours" is inside.
        if is_what_may_be == times.outside {
            self.all.push(if inside.len() > 1 { format!("({all})") } else { all });
            self.says.push(says.join(" "));
        } else {
            self.all.push(format!("!({all})"));
            self.says.push(format!("at other times than {}", says.join(" ")));
        }
    }

    /// Environments, origins, what the agent says, words, trust.
    fn rest(&mut self, statement: &Statement, effect: Effect, is_only: bool, matches: &mut Match) {
        for found in &statement.found {
            match &found.about {
                About::Environment(names) if is_only || statement.is_exception => {
                    let fits: Vec<String> = names
                        .iter()
                        .map(|name| {
                            name.strip_suffix('*')
                                .map_or_else(|| format!("act.environment == {}", text(name)), |begin| format!("act.environment.startsWith({})", text(begin)))
                        })
                        .collect();
                    self.all.push(format!("!({})", fits.join(" || ")));
                    self.says.push(format!("elsewhere than in {}", names.first().map_or("", String::as_str)));
                }
                About::Environment(names) => {
                    matches.environment.extend(names.iter().cloned());
                    self.says.push(format!("in {}", names.iter().max_by_key(|name| name.len()).map_or("", String::as_str)));
                }
                About::Taint(name) => {
                    self.all.push(format!("{} in act.taint", text(name)));
                    self.says.push(format!("after something from the {name}"));
                }
                About::Says(said, names) if effect == Effect::Log && !statement.is_exception => {
                    self.all.push(format!("says({})", texts(names)));
                    self.says.push(format!("with {said}"));
                }
                About::Says(said, names) => {
                    self.all.push(format!("!says({})", texts(names)));
                    self.says.push(format!("without {said}"));
                    self.assumed.push(format!("whether there is {said} is the agent's own word"));
                }
                About::Does(_) | About::Holds(_) | About::Fields(..) => {}
            }
        }
        for words in &statement.texts {
            self.all.push(format!("texts.exists(text, text.lowerAscii().contains({}))", text(words)));
            self.says.push(format!("with \"{words}\" in it"));
        }
        if let Some(score) = statement.trust_below {
            self.all.push(format!("trust.score < {score:?}"));
            self.says.push(format!("with trust below {score}"));
        }
        if statement.unverified {
            self.all.push("!agent.verified".to_owned());
            self.says.push("by agents that nothing proves".to_owned());
        }
    }
}
