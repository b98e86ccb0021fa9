//! What a condition is given, and its evaluation.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::extractors::This;
use cel::{Context, Env, ExecutionError};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use regex::Regex;
use serde_json::Value;

use super::Condition;
use crate::limits::{CONDITION_BYTES_MAX, CONDITION_DEPTH_MAX, CONDITION_VALUES_MAX};
use crate::policy::ask::{Answer, Look, is_about_the_change};
use crate::policy::change::Change;
use crate::policy::{Act, Counters, Standing};

/// The functions that conditions can call; [`super::check`] lets through only some of them.
pub(in crate::policy) fn environment() -> Arc<Env> {
    let mut env = Env::stdlib().with_optional_support(false);
    // The only failure is a name that exists twice, and then the conditions that need it fail, which is restrictive.
    let _ = env.add_extension(cel::extensions::strings);
    Arc::new(env)
}

/// An act with everything that a condition can ask of it. Lists and arguments are turned into CEL values only when a
/// condition asks for them; beyond their bounds they are not there, and asking for them is an error.
pub(in crate::policy) struct Scope<'a> {
    act: &'a Act,
    change: &'a Change<'a>,
    /// Whether what the act is called with is not known yet.
    is_foreseen: bool,
    texts: [CelString<'a>; 8],
    ints: [CelInt; 15],
    doubles: [CelDouble; 3],
    verified: CelBool,
    args: OnceLock<Option<Box<dyn Val + 'a>>>,
    changed: OnceLock<Option<Box<dyn Val + 'a>>>,
    taint: OnceLock<Option<Box<dyn Val + 'a>>>,
    look: Look<'a>,
}

impl<'a> Scope<'a> {
    pub(in crate::policy) fn new(act: &'a Act, change: &'a Change<'a>, standing: &'a Standing, counters: &Counters, now: i64) -> Self {
        let texts = [&act.kind, &act.tool, &act.domain, &act.environment, &act.action, &act.target].map(String::as_str);
        let [kind, tool, domain, environment, action, target] = texts.map(CelString::from);
        let field = CelString::from(act.field.as_deref().unwrap_or_default());
        let agent = CelString::from(standing.agent.as_str());
        let time = Timestamp::from_microsecond(now).unwrap_or_default().to_zoned(TimeZone::UTC);
        let ints = [
            standing.decided,
            counters.calls_minute,
            counters.calls_hour,
            counters.calls_day,
            counters.calls_hour_all,
            counters.calls_day_all,
            counters.denied_day,
            counters.pending,
            now.div_euclid(1_000_000),
            i64::from(time.year()),
            i64::from(time.month()),
            i64::from(time.day()),
            i64::from(time.hour()),
            i64::from(time.minute()),
            i64::from(time.weekday().to_monday_one_offset()),
        ];
        Self {
            act,
            change,
            is_foreseen: false,
            texts: [kind, tool, domain, environment, action, target, field, agent],
            ints: ints.map(CelInt::from),
            doubles: [CelDouble::from(units(act.cost)), CelDouble::from(standing.score.to_f64()), CelDouble::from(units(counters.cost_day))],
            verified: CelBool::from(standing.verified),
            args: OnceLock::new(),
            changed: OnceLock::new(),
            taint: OnceLock::new(),
            look: Look::new(act, change),
        }
    }

    /// The same for an act of which what it is called with is not known yet: whatever a condition asks of that has no answer.
    pub(in crate::policy) fn foreseen(self) -> Self {
        Self { is_foreseen: true, ..self }
    }

    /// Whether what a variable stands for is not known yet. Of an act that names its field the changed fields are.
    fn is_open(&self, variable: &str) -> bool {
        self.is_foreseen && is_of_the_change(variable) && !(self.act.field.is_some() && matches!(variable, "changed" | "fields"))
    }

    /// Conditions in this scope are evaluated with this.
    pub(in crate::policy) fn context<'s>(&'s self, env: &Arc<Env>, patterns: &Arc<HashMap<String, Regex>>) -> Context<'s, 's> {
        let mut context = Context::with_env(Arc::clone(env));
        context.set_variable_resolver(self);
        if !patterns.is_empty() {
            let patterns = Arc::clone(patterns);
            let matches = move |This(text): This<Arc<String>>, pattern: Arc<String>| {
                let pattern = patterns.get(pattern.as_str()).ok_or_else(|| ExecutionError::function_error("matches", "the pattern was not compiled"))?;
                Ok::<bool, ExecutionError>(pattern.is_match(&text))
            };
            // A name that exists already leaves the function away, and the conditions that need it fail.
            let _ = context.add_function("matches", matches);
        }
        context
    }

    fn within_bounds(&self) -> bool {
        let mut room = Room { values: CONDITION_VALUES_MAX, bytes: CONDITION_BYTES_MAX };
        room.fits(&self.act.arguments, 0)
    }
}

/// Whether a condition holds, or why that cannot be told.
pub(in crate::policy) fn holds(condition: &Condition, context: &Context<'_, '_>) -> Result<bool, String> {
    let value = cel::Value::resolve_val(&condition.expression, context).map_err(|error| crate::policy::yaml::short(&error.to_string()))?;
    value.downcast_ref::<CelBool>().map(|value| *value.inner()).ok_or_else(|| "the condition is not a yes or no for this act".to_owned())
}

/// Whether a variable, or the key of a question, is about what an act is called with.
pub(super) fn is_of_the_change(variable: &str) -> bool {
    matches!(variable, "args" | "changed" | "fields" | "texts" | "recipients") || is_about_the_change(variable)
}

/// Millionths as units.
#[expect(clippy::cast_precision_loss, reason = "costs are far below 2^53 millionths")]
fn units(millionths: i64) -> f64 {
    millionths as f64 / 1e6
}

impl VariableResolver for Scope<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        if self.is_open(variable) {
            return None;
        }
        let [kind, tool, domain, environment, action, target, field, agent] = &self.texts;
        let [decided, minute, hour, day, hour_all, day_all, denied, pending, now, year, month, monthday, clock, minutes, weekday] = &self.ints;
        let [cost, score, cost_day] = &self.doubles;
        let value: &(dyn Val + 'b) = match variable {
            "act.kind" => kind,
            "act.tool" => tool,
            "act.domain" => domain,
            "act.environment" => environment,
            "act.action" => action,
            "act.target" => target,
            "act.field" => field,
            "act.cost" => cost,
            "act.taint" => self.taint.get_or_init(|| texts(self.act.taint.iter().map(String::as_str))).as_deref()?,
            "args" => self.args.get_or_init(|| self.within_bounds().then(|| value(&self.act.arguments))).as_deref()?,
            "changed" => self.changed.get_or_init(|| if self.change.over { None } else { texts(self.change.paths()) }).as_deref()?,
            "agent.id" => agent,
            "agent.verified" => &self.verified,
            "trust.score" => score,
            "trust.decided" => decided,
            "counters.calls_minute" => minute,
            "counters.calls_hour" => hour,
            "counters.calls_day" => day,
            "counters.calls_hour_all" => hour_all,
            "counters.calls_day_all" => day_all,
            "counters.cost_day" => cost_day,
            "counters.denied_day" => denied,
            "counters.pending" => pending,
            "now" => now,
            "time.year" => year,
            "time.month" => month,
            "time.day" => monthday,
            "time.hour" => clock,
            "time.minute" => minutes,
            "time.weekday" => weekday,
            "fields" => return self.look.fields().and_then(owned_texts),
            "recipients" => return self.look.recipients().and_then(owned_texts),
            "texts" => return self.look.all_texts().and_then(owned_texts),
            key => {
                return self.look.answer(key, || self.within_bounds()).map(|answer| match answer {
                    Answer::Yes(yes) => CowVal::owned(CelBool::from(yes)),
                    Answer::Number(number) => CowVal::owned(CelDouble::from(number)),
                    Answer::Whole(whole) => CowVal::owned(CelInt::from(whole)),
                });
            }
        };
        Some(CowVal::Borrowed(value))
    }
}

/// A list of texts, unless it is too long.
fn texts<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Box<dyn Val + 'a>> {
    let mut list: Vec<Box<dyn Val + 'a>> = Vec::new();
    let mut bytes = 0;
    for text in texts {
        bytes += text.len();
        if list.len() == CONDITION_VALUES_MAX || bytes > CONDITION_BYTES_MAX {
            return None;
        }
        list.push(Box::new(CelString::from(text)));
    }
    Some(Box::new(CelList::from(list)))
}

/// The same, of texts that were made for it.
fn owned_texts<'b, T: Into<String>>(texts: Vec<T>) -> Option<CowVal<'b, 'b>> {
    let list: Vec<Box<dyn Val + 'b>> = texts.into_iter().map(|text| Box::new(CelString::from(text.into())) as Box<dyn Val + 'b>).collect();
    (list.len() <= CONDITION_VALUES_MAX).then(|| CowVal::owned(CelList::from(list)))
}

/// JSON as a CEL value that borrows its texts.
fn value(json: &Value) -> Box<dyn Val + '_> {
    match json {
        Value::Null => Box::new(CelNull),
        Value::Bool(value) => Box::new(CelBool::from(*value)),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Box::new(CelInt::from(whole)),
            None => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Value::String(text) => Box::new(CelString::from(text.as_str())),
        Value::Array(list) => Box::new(CelList::from(list.iter().map(value).collect::<Vec<_>>())),
        Value::Object(table) => {
            let entries: HashMap<CelMapKey<'_>, Box<dyn Val + '_>> = table.iter().map(|(key, entry)| (CelMapKey::from(key.as_str()), value(entry))).collect();
            Box::new(CelMap::from(entries))
        }
    }
}

/// What is left of the bounds.
struct Room {
    values: usize,
    bytes: usize,
}

impl Room {
    fn fits(&mut self, json: &Value, depth: usize) -> bool {
        if self.values == 0 || depth > CONDITION_DEPTH_MAX {
            return false;
        }
        self.values -= 1;
        match json {
            Value::String(text) => self.takes(text.len()),
            Value::Array(list) => list.iter().all(|entry| self.fits(entry, depth + 1)),
            Value::Object(table) => table.iter().all(|(key, entry)| self.takes(key.len()) && self.fits(entry, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
        }
    }

    fn takes(&mut self, bytes: usize) -> bool {
        match self.bytes.checked_sub(bytes) {
            Some(left) => {
                self.bytes = left;
                true
            }
            None => false,
        }
    }
}
