//! Acts that fit the conditions of two rules. They are guessed from what the rules compare with, and counted only if the engine
//! itself says that both rules fire on them, and not because something could not be told.

use serde_json::{Map, Value, json};

use super::logic::{self, Conjunction, Literal, Sign, Test};
use crate::policy::{Act, Counters, GeneralRule, Policy, Rulebook, Standing, decide_under};
use crate::trust::Points;

/// How many acts are tried.
const TRIES_MAX: usize = 200;

/// A guess under way.
#[derive(Clone)]
struct Guess {
    act: Map<String, Value>,
    arguments: Map<String, Value>,
    counters: Map<String, Value>,
    agent: String,
    verified: bool,
    trust: f64,
    /// Year, month, day, hour, minute.
    time: [i64; 5],
    weekday: Option<i64>,
}

/// An act on which both rules fire, as in the cases of a policy.
pub(super) fn of_both(rulebook: &Rulebook, one: (&Policy, Option<&GeneralRule>), other: (&Policy, Option<&GeneralRule>)) -> Option<Value> {
    let (Some(first), Some(second)) = (one.1, other.1) else { return None };
    let cases = [logic::cases(first.when.as_deref())?, logic::cases(second.when.as_deref())?];
    let [left, right] = &cases;
    let mut tried = 0;
    for one_case in left {
        for other_case in right {
            let both: Conjunction = one_case.iter().chain(other_case).cloned().collect();
            for guess in guesses(first, second, &both) {
                tried += 1;
                if tried > TRIES_MAX {
                    return None;
                }
                if guess.fires(rulebook, &one.0.id, &first.name) && guess.fires(rulebook, &other.0.id, &second.name) {
                    return Some(guess.shown());
                }
            }
        }
    }
    None
}

/// Texts that fit patterns of both rules, some of each.
fn common(one: &[String], other: &[String]) -> Vec<String> {
    let concrete = |pattern: &String| pattern.replace(['*', '?'], "x");
    let begins = |pattern: &String| pattern.trim_end_matches('*').to_owned();
    let mut values: Vec<String> = one.iter().chain(other).flat_map(|pattern| [concrete(pattern), begins(pattern)]).collect();
    values.dedup();
    if values.is_empty() {
        values.push(String::new());
    }
    let fits = |list: &[String], value: &str| list.is_empty() || list.iter().any(|pattern| crate::policy::fits_pattern(pattern, value));
    values.retain(|value| fits(one, value) && fits(other, value));
    values.truncate(3);
    values
}

fn guesses(first: &GeneralRule, second: &GeneralRule, tests: &Conjunction) -> Vec<Guess> {
    let start = Guess {
        act: Map::new(),
        arguments: Map::new(),
        counters: Map::new(),
        agent: "tester".to_owned(),
        verified: true,
        trust: 1.0,
        time: [2026, 1, 1, 12, 0],
        weekday: None,
    };
    let (one, other) = (&first.matches, &second.matches);
    let dimensions = [
        ("kind", &one.kind, &other.kind),
        ("tool", &one.tool, &other.tool),
        ("domain", &one.domain, &other.domain),
        ("agent", &one.agent, &other.agent),
        ("environment", &one.environment, &other.environment),
    ];
    let mut guesses = vec![start];
    for (name, one, other) in dimensions {
        if one.is_empty() && other.is_empty() {
            continue;
        }
        guesses = guesses
            .iter()
            .flat_map(|guess| {
                common(one, other).into_iter().map(move |value| {
                    let mut guess = guess.clone();
                    if name == "agent" {
                        guess.agent = value;
                    } else {
                        drop(guess.act.insert(name.to_owned(), Value::from(value)));
                    }
                    guess
                })
            })
            .collect();
        guesses.truncate(20);
    }
    for guess in &mut guesses {
        for test in tests {
            guess.heed(test);
        }
    }
    guesses
}

/// A number that fits.
fn number(sign: Sign, bound: f64) -> f64 {
    match sign {
        Sign::Equal | Sign::AtMost | Sign::AtLeast => bound,
        Sign::More | Sign::Unequal => bound.floor() + 1.0,
        Sign::Less => bound.ceil() - 1.0,
    }
}

/// The names that a question such as `largest(['a', 'b'])` asks for.
fn asked<'t>(text: &'t str, question: &str) -> Option<Vec<&'t str>> {
    let inner = text.strip_prefix(question)?.strip_prefix('(')?.strip_suffix(')')?;
    let names: Vec<&str> = inner.split('"').skip(1).step_by(2).collect();
    (!names.is_empty()).then_some(names)
}

impl Guess {
    /// Does what it can to make a test hold.
    fn heed(&mut self, test: &Test) {
        match test {
            Test::Compared { left, sign, right } => self.compare(left, *sign, right),
            Test::Among { left, list, turned: false } => {
                if let Some(value) = list.first() {
                    self.compare(left, Sign::Equal, &Literal::Text(value.clone()));
                }
            }
            Test::Other { text, turned } => self.other(text, *turned),
            Test::Among { .. } => {}
        }
    }

    fn compare(&mut self, left: &str, sign: Sign, right: &Literal) {
        let value = match right {
            Literal::Number(bound) => {
                let number = number(sign, *bound);
                #[expect(clippy::cast_possible_truncation, reason = "small whole numbers")]
                if number.fract() == 0.0 && number.abs() < 1e15 { Value::from(number as i64) } else { Value::from(number) }
            }
            Literal::Text(text) if sign == Sign::Equal => Value::from(text.as_str()),
            Literal::Text(_) => Value::from("other"),
            Literal::Bool(flag) => Value::from(*flag == (sign == Sign::Equal)),
        };
        let whole = value.as_i64().unwrap_or(0);
        if let Some(names) = asked(left, "largest") {
            if let Some(name) = names.first() {
                self.arguments.insert((*name).to_owned(), value);
            }
        } else if let Some(names) = asked(left, "count") {
            if let Some(name) = names.first().filter(|_| (0..1_500).contains(&whole)) {
                self.arguments.insert((*name).to_owned(), Value::Array((0..whole).map(Value::from).collect()));
            }
        } else if left == "size(recipients)" {
            self.arguments.insert("to".to_owned(), (0..whole.clamp(0, 500)).map(|number| Value::from(format!("p{number}@example.org"))).collect());
        } else if let Some(path) = left.strip_prefix("args.") {
            if path.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '.')) {
                put(&mut self.arguments, path, value);
            }
        } else if let Some(name) = left.strip_prefix("counters.") {
            let value = if name == "cost_day" { Value::from(whole.saturating_mul(1_000_000)) } else { value };
            self.counters.insert(name.to_owned(), value);
        } else if let Some(name) = left.strip_prefix("time.") {
            let at = ["year", "month", "day", "hour", "minute"].iter().position(|known| *known == name);
            if let Some(part) = at.and_then(|at| self.time.get_mut(at)) {
                *part = whole;
            } else {
                self.weekday = Some(whole);
            }
        } else if left == "trust.score" {
            self.trust = match right {
                Literal::Number(bound) if matches!(sign, Sign::Less | Sign::AtMost) => bound / 2.0,
                Literal::Number(bound) => (bound + 1.0) / 2.0,
                _ => self.trust,
            };
        } else if left == "act.cost" {
            self.act.insert("cost".to_owned(), Value::from(whole.saturating_mul(1_000_000)));
        } else if left == "agent.id" {
            value.as_str().unwrap_or("tester").clone_into(&mut self.agent);
        } else if left == "agent.verified" {
            self.verified = value.as_bool().unwrap_or(true);
        } else if let Some(name) = left.strip_prefix("act.")
            && matches!(name, "kind" | "tool" | "domain" | "environment" | "action" | "target" | "field")
        {
            self.act.insert(name.to_owned(), value);
        }
    }

    fn other(&mut self, text: &str, turned: bool) {
        if let Some(names) = asked(text, "does").filter(|_| !turned) {
            let word = match names.first().copied().unwrap_or_default() {
                "mail" => "send_mail",
                "message" => "send_message",
                "file_read" => "read_file",
                "file_write" => "write_file",
                "file_delete" => "delete_file",
                "database_write" => "write_database",
                "call" => "api",
                "run" => "execute",
                "erase_person" => "deletion_request",
                "sign_in" => "login",
                other => other,
            };
            let known = self.act.get("action").and_then(Value::as_str).unwrap_or_default();
            self.act.insert("action".to_owned(), Value::from(format!("{known} {word}").trim()));
        } else if let Some(names) = asked(text, "holds").filter(|_| !turned) {
            let sample = match names.first().copied().unwrap_or_default() {
                "card" => "4111 1111 1111 1111",
                "email" | "personal" => "ada@example.org",
                "phone" => "+49 30 901820",
                "iban" => "DE89 3704 0044 0532 0130 00",
                "ssn" => "social security number 123-45-6789",
                "secret" => "password = hunter2-Sommer!",
                "sql_insert" | "sql_write" => "insert into t values (1)",
                "sql_update" => "update t set a = 1 where b = 2",
                "sql_delete" => "delete from t where b = 2",
                "sql_all_rows" => "delete from t",
                "sql_schema" => "create table t (a int)",
                "sql_drop" => "drop table t",
                _ => return,
            };
            self.arguments.insert(format!("text_{}", self.arguments.len()), Value::from(sample));
        } else if let Some(names) = asked(text, "says") {
            if let Some(name) = names.first() {
                self.arguments.insert((*name).to_owned(), Value::from(!turned));
            }
        } else if let Some(path) = text.strip_prefix("has(args.").and_then(|rest| rest.strip_suffix(')')).filter(|_| !turned) {
            if !self.arguments.contains_key(path) {
                put(&mut self.arguments, path, Value::from("x"));
            }
        } else if text == "agent.verified" {
            self.verified = !turned;
        } else if let Some(path) = text.strip_prefix("args.").filter(|path| path.chars().all(|letter| letter.is_alphanumeric() || letter == '_')) {
            self.arguments.insert(path.to_owned(), Value::from(!turned));
        } else if let Some((taint, _)) = text.strip_prefix("@in(\"").and_then(|rest| rest.split_once("\", act.taint)")).filter(|_| !turned) {
            self.act.insert("taint".to_owned(), json!([taint]));
        }
    }

    fn now(&self) -> Option<i64> {
        let [year, month, day, hour, minute] = self.time;
        let part = |number: i64| i8::try_from(number).ok();
        let mut date = jiff::civil::Date::new(i16::try_from(year).ok()?, part(month)?, part(day)?).ok()?;
        if let Some(weekday) = self.weekday.and_then(part).filter(|weekday| (1..=7).contains(weekday)) {
            while date.weekday().to_monday_one_offset() != weekday {
                date = date.tomorrow().ok()?;
            }
        }
        let time = jiff::civil::DateTime::new(date.year(), date.month(), date.day(), part(hour)?, part(minute)?, 0, 0).ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(time).ok().map(jiff::Timestamp::as_microsecond)
    }

    fn whole(&self) -> Option<(Act, Counters)> {
        let mut act = json!({ "kind": "propose", "tool": "cowork_propose", "domain": "test", "action": "", "target": "" });
        let mut counters = serde_json::to_value(Counters::default()).ok()?;
        act.as_object_mut()?.extend(self.act.clone());
        act.as_object_mut()?.insert("arguments".to_owned(), Value::Object(self.arguments.clone()));
        counters.as_object_mut()?.extend(self.counters.clone());
        Some((serde_json::from_value(act).ok()?, serde_json::from_value(counters).ok()?))
    }

    /// Whether a rule fires on it, because its condition holds.
    fn fires(&self, rulebook: &Rulebook, policy: &str, rule: &str) -> bool {
        let (Some((act, counters)), Some(now)) = (self.whole(), self.now()) else { return false };
        let standing = Standing {
            agent: self.agent.clone(),
            verified: self.verified,
            paused: false,
            score: Points::of(self.trust),
            decided: 100,
            over_a_persons_edit: false,
            waived_by: None,
            attached: None,
        };
        let decision = decide_under(rulebook, policy, &act, &standing, &counters, now);
        decision.hits.iter().any(|hit| hit.policy == policy && hit.rule_id == rule && !hit.failed)
    }

    fn shown(&self) -> Value {
        let mut act = self.act.clone();
        act.insert("arguments".to_owned(), Value::Object(self.arguments.clone()));
        let mut shown = json!({ "act": act, "agent": self.agent });
        if let Some(fields) = shown.as_object_mut() {
            if !self.counters.is_empty() {
                fields.insert("counters".to_owned(), Value::Object(self.counters.clone()));
            }
            if let Some(now) = self.now() {
                fields.insert("now".to_owned(), Value::from(crate::format_time(now)));
            }
            fields.insert("trust".to_owned(), Value::from(self.trust));
        }
        shown
    }
}

/// Puts a value at a path with dots.
fn put(table: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            table.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = table.entry(first.to_owned()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}
