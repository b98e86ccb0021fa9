//! Conditions as lists of cases, each a list of simple tests. A condition can be true, false or impossible to tell, and a rule
//! fires in the first and the last case; `&&` and `||` of the engine are the least and the greatest of false, untold and true, for
//! which taking apart into cases is sound.

use std::collections::{BTreeMap, BTreeSet};

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators as op};
use cel::parser::PrattParser;

/// How many cases a condition is taken apart into; with more nothing is said about it.
const CASES_MAX: usize = 64;

/// A value that a test compares with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Number(f64),
    Text(String),
    Bool(bool),
}

/// How something is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Sign {
    fn turned(self) -> Self {
        match self {
            Self::Equal => Self::Unequal,
            Self::Unequal => Self::Equal,
            Self::Less => Self::AtLeast,
            Self::AtLeast => Self::Less,
            Self::More => Self::AtMost,
            Self::AtMost => Self::More,
        }
    }

    /// The sign with both sides exchanged.
    fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::More,
            Self::More => Self::Less,
            Self::AtMost => Self::AtLeast,
            Self::AtLeast => Self::AtMost,
            same => same,
        }
    }
}

/// A simple test.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// Something compared with a value that is written out.
    Compared { left: String, sign: Sign, right: Literal },
    /// Something is one of some texts; or, turned, none of them.
    Among { left: String, list: Vec<String>, turned: bool },
    /// Anything else, by its own text.
    Other { text: String, turned: bool },
}

impl Test {
    /// The same the other way round: true where it was false, and untold where it was.
    fn turned(self) -> Self {
        match self {
            Self::Compared { left, sign, right } => Self::Compared { left, sign: sign.turned(), right },
            Self::Among { left, list, turned } => Self::Among { left, list, turned: !turned },
            Self::Other { text, turned } => Self::Other { text, turned: !turned },
        }
    }

    /// Whether this is never false where the other is not: for the same thing, the same or a wider test.
    fn follows_from(&self, other: &Self) -> bool {
        match (self, other) {
            (one, same) if one == same => true,
            (Self::Compared { left, sign, right: Literal::Number(bound) }, Self::Compared { left: same, sign: known, right: Literal::Number(value) })
                if left == same =>
            {
                within(*known, *value, *sign, *bound)
            }
            (Self::Among { left, list, turned: false }, Self::Compared { left: same, sign: Sign::Equal, right: Literal::Text(value) }) => {
                left == same && list.contains(value)
            }
            (Self::Among { left, list, turned: false }, Self::Among { left: same, list: known, turned: false }) => {
                left == same && known.iter().all(|value| list.contains(value))
            }
            (
                Self::Compared { left, sign: Sign::Unequal, right: Literal::Text(value) },
                Self::Compared { left: same, sign: Sign::Equal, right: Literal::Text(known) },
            ) => left == same && value != known,
            _ => false,
        }
    }
}

/// Whether every number that fits `known value` fits `sign bound` as well.
fn within(known: Sign, value: f64, sign: Sign, bound: f64) -> bool {
    match (known, sign) {
        (Sign::More, Sign::More | Sign::AtLeast) | (Sign::AtLeast, Sign::AtLeast) => value >= bound,
        (Sign::AtLeast, Sign::More) => value > bound,
        (Sign::Less, Sign::Less | Sign::AtMost) | (Sign::AtMost, Sign::AtMost) => value <= bound,
        (Sign::AtMost, Sign::Less) => value < bound,
        (Sign::Equal, sign) => fits(value, sign, bound),
        (Sign::More, Sign::Unequal) => bound <= value,
        (Sign::Less, Sign::Unequal) => bound >= value,
        _ => false,
    }
}

#[expect(clippy::float_cmp, reason = "both were written out")]
pub(super) fn fits(value: f64, sign: Sign, bound: f64) -> bool {
    match sign {
        Sign::Equal => value == bound,
        Sign::Unequal => value != bound,
        Sign::Less => value < bound,
        Sign::AtMost => value <= bound,
        Sign::More => value > bound,
        Sign::AtLeast => value >= bound,
    }
}

/// One case of a condition: all of these tests.
pub(super) type Conjunction = Vec<Test>;

/// The cases of a condition, any of which makes it hold; `None` if there are too many. No cases: it never holds. A case
/// without tests: it always does.
pub(super) fn cases(when: Option<&str>) -> Option<Vec<Conjunction>> {
    let Some(when) = when else { return Some(vec![Vec::new()]) };
    let expression = PrattParser::new().parse(when).ok()?;
    take_apart(&expression, false)
}

fn take_apart(node: &IdedExpr, turned: bool) -> Option<Vec<Conjunction>> {
    match &node.expr {
        Expr::Literal(LiteralValue::Boolean(value)) => Some(if *value.inner() == turned { Vec::new() } else { vec![Vec::new()] }),
        Expr::Call(call) if call.target.is_none() => match (call.func_name.as_str(), call.args.as_slice()) {
            (op::LOGICAL_NOT, [one]) => take_apart(one, !turned),
            (op::LOGICAL_AND | op::LOGICAL_OR, [left, right]) => {
                let (left, right) = (take_apart(left, turned)?, take_apart(right, turned)?);
                if (call.func_name == op::LOGICAL_AND) == turned {
                    let mut all = left;
                    all.extend(right);
                    return (all.len() <= CASES_MAX).then_some(all);
                }
                if left.len() * right.len() > CASES_MAX {
                    return None;
                }
                Some(left.iter().flat_map(|one| right.iter().map(move |other| one.iter().chain(other).cloned().collect())).collect())
            }
            _ => Some(vec![vec![test(node, turned)]]),
        },
        _ => Some(vec![vec![test(node, turned)]]),
    }
}

fn test(node: &IdedExpr, turned: bool) -> Test {
    let simple = simple(node).unwrap_or_else(|| Test::Other { text: shown(node), turned: false });
    if turned { simple.turned() } else { simple }
}

fn simple(node: &IdedExpr) -> Option<Test> {
    let Expr::Call(call) = &node.expr else { return None };
    let (None, [left, right]) = (&call.target, call.args.as_slice()) else { return None };
    let sign = match call.func_name.as_str() {
        op::EQUALS => Sign::Equal,
        op::NOT_EQUALS => Sign::Unequal,
        op::LESS => Sign::Less,
        op::LESS_EQUALS => Sign::AtMost,
        op::GREATER => Sign::More,
        op::GREATER_EQUALS => Sign::AtLeast,
        op::IN => {
            let Expr::List(list) = &right.expr else { return None };
            let texts = list.elements.iter().map(|element| match literal(element)? {
                Literal::Text(text) => Some(text),
                _ => None,
            });
            return Some(Test::Among { left: shown(left), list: texts.collect::<Option<_>>()?, turned: false });
        }
        _ => return None,
    };
    match (literal(left), literal(right)) {
        (None, Some(right)) => Some(Test::Compared { left: shown(left), sign, right }),
        (Some(value), None) => Some(Test::Compared { left: shown(right), sign: sign.mirrored(), right: value }),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of rules are small; a larger one is not compared")]
fn literal(node: &IdedExpr) -> Option<Literal> {
    match &node.expr {
        Expr::Literal(LiteralValue::Int(value)) if value.inner().unsigned_abs() < 1 << 53 => Some(Literal::Number(*value.inner() as f64)),
        Expr::Literal(LiteralValue::Double(value)) => Some(Literal::Number(*value.inner())).filter(|_| value.inner().is_finite()),
        Expr::Literal(LiteralValue::String(value)) => Some(Literal::Text(value.inner().to_owned())),
        Expr::Literal(LiteralValue::Boolean(value)) => Some(Literal::Bool(*value.inner())),
        Expr::Call(call) if call.func_name == op::NEGATE && call.target.is_none() => match call.args.first().and_then(literal) {
            Some(Literal::Number(value)) => Some(Literal::Number(-value)),
            _ => None,
        },
        _ => None,
    }
}

/// An expression in one writing: the same expression has the same text.
pub(super) fn shown(node: &IdedExpr) -> String {
    let all = |list: &[IdedExpr]| list.iter().map(shown).collect::<Vec<_>>().join(", ");
    match &node.expr {
        Expr::Unspecified => String::new(),
        Expr::Literal(literal) => match literal {
            LiteralValue::Boolean(value) => value.inner().to_string(),
            LiteralValue::Int(value) => value.inner().to_string(),
            LiteralValue::UInt(value) => format!("{}u", value.inner()),
            LiteralValue::Double(value) => format!("{:?}", value.inner()),
            LiteralValue::String(value) => format!("{:?}", value.inner()),
            LiteralValue::Bytes(value) => format!("b{:?}", value.inner()),
            LiteralValue::Null => "null".to_owned(),
        },
        Expr::Ident(name) => name.clone(),
        Expr::Select(select) if select.test => format!("has({}.{})", shown(&select.operand), select.field),
        Expr::Select(select) => format!("{}.{}", shown(&select.operand), select.field),
        Expr::List(list) => format!("[{}]", all(&list.elements)),
        Expr::Map(map) => {
            let entries = map.entries.iter().map(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => format!("{}: {}", shown(&entry.key), shown(&entry.value)),
                EntryExpr::StructField(field) => format!("{}: {}", field.field, shown(&field.value)),
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Expr::Struct(message) => format!("{}{{…{}}}", message.type_name, node.id),
        Expr::Call(call) => match &call.target {
            Some(target) => format!("{}.{}({})", shown(target), call.func_name, all(&call.args)),
            None => format!("{}({})", call.func_name, all(&call.args)),
        },
        Expr::Comprehension(body) => format!(
            "loop({}, {}, {:?}, {}, {}, {}, {}, {})",
            shown(&body.iter_range),
            body.iter_var,
            body.iter_var2,
            body.accu_var,
            shown(&body.accu_init),
            shown(&body.loop_cond),
            shown(&body.loop_step),
            shown(&body.result)
        ),
    }
}

/// Texts that every act has, so that asking for them never fails.
pub(super) const TEXTS: [&str; 8] = ["act.kind", "act.tool", "act.domain", "act.environment", "act.action", "act.target", "act.field", "agent.id"];
/// Whole numbers that every act has, with the bounds that they never leave.
const WHOLE: [(&str, f64, f64); 15] = [
    ("trust.decided", 0.0, f64::INFINITY),
    ("counters.calls_minute", 0.0, f64::INFINITY),
    ("counters.calls_hour", 0.0, f64::INFINITY),
    ("counters.calls_day", 0.0, f64::INFINITY),
    ("counters.calls_hour_all", 0.0, f64::INFINITY),
    ("counters.calls_day_all", 0.0, f64::INFINITY),
    ("counters.denied_day", 0.0, f64::INFINITY),
    ("counters.pending", 0.0, f64::INFINITY),
    ("now", f64::NEG_INFINITY, f64::INFINITY),
    ("time.year", f64::NEG_INFINITY, f64::INFINITY),
    ("time.month", 1.0, 12.0),
    ("time.day", 1.0, 31.0),
    ("time.hour", 0.0, 23.0),
    ("time.minute", 0.0, 59.0),
    ("time.weekday", 1.0, 7.0),
];
/// Other numbers that every act has.
const NUMBERS: [(&str, f64, f64); 3] =
    [("act.cost", f64::NEG_INFINITY, f64::INFINITY), ("trust.score", 0.0, 1.0), ("counters.cost_day", f64::NEG_INFINITY, f64::INFINITY)];

/// Whether a case can never be: two of its tests, about something that every act has, contradict each other, or one of them
/// contradicts what the rule matches. `matched` tells for a text whether the rule is about acts with it.
pub(super) fn is_impossible(case: &Conjunction, matched: impl Fn(&str, &str) -> bool) -> bool {
    let mut ranges: BTreeMap<&str, Range> = BTreeMap::new();
    let mut texts: BTreeMap<&str, Texts> = BTreeMap::new();
    let (mut is_verified, mut is_unverified) = (false, false);
    for test in case {
        match test {
            Test::Compared { left, sign, right: Literal::Number(bound) } => {
                let known = WHOLE.iter().map(|known| (known, true)).chain(NUMBERS.iter().map(|known| (known, false))).find(|((name, ..), _)| name == left);
                if let Some(((name, min, max), is_whole)) = known {
                    ranges.entry(name).or_insert_with(|| Range { min: *min, max: *max, is_whole, not: Vec::new() }).narrow(*sign, *bound);
                }
            }
            Test::Compared { left, sign, right: Literal::Text(value) } if TEXTS.contains(&left.as_str()) => match sign {
                Sign::Equal => texts.entry(left).or_default().only(std::slice::from_ref(value)),
                Sign::Unequal => texts.entry(left).or_default().not.push(value.clone()),
                _ => {}
            },
            Test::Among { left, list, turned } if TEXTS.contains(&left.as_str()) => {
                let known = texts.entry(left).or_default();
                if *turned { known.not.extend(list.iter().cloned()) } else { known.only(list) }
            }
            Test::Compared { left, sign, right: Literal::Bool(value) } if left == "agent.verified" && matches!(sign, Sign::Equal | Sign::Unequal) => {
                let verified = *value == (*sign == Sign::Equal);
                (is_verified, is_unverified) = (is_verified || verified, is_unverified || !verified);
            }
            Test::Other { text, turned } if text == "agent.verified" => {
                (is_verified, is_unverified) = (is_verified || !turned, is_unverified || *turned);
            }
            _ => {}
        }
    }
    (is_verified && is_unverified) || ranges.values().any(Range::is_empty) || texts.iter().any(|(name, texts)| texts.is_empty(|value| matched(name, value)))
}

/// What a number can be.
struct Range {
    min: f64,
    max: f64,
    is_whole: bool,
    not: Vec<f64>,
}

impl Range {
    fn narrow(&mut self, sign: Sign, bound: f64) {
        match sign {
            Sign::Equal => (self.min, self.max) = (self.min.max(bound), self.max.min(bound)),
            Sign::Unequal => self.not.push(bound),
            Sign::AtLeast => self.min = self.min.max(bound),
            Sign::AtMost => self.max = self.max.min(bound),
            // Of whole numbers the next one is known; of others the bound itself is left out.
            Sign::More if self.is_whole => self.min = self.min.max(bound.floor() + 1.0),
            Sign::Less if self.is_whole => self.max = self.max.min(bound.ceil() - 1.0),
            Sign::More => {
                self.min = self.min.max(bound);
                self.not.push(bound);
            }
            Sign::Less => {
                self.max = self.max.min(bound);
                self.not.push(bound);
            }
        }
    }

    #[expect(clippy::float_cmp, reason = "a bound is met exactly or not at all")]
    fn is_empty(&self) -> bool {
        let (min, max) = if self.is_whole { (self.min.ceil(), self.max.floor()) } else { (self.min, self.max) };
        min > max || (min == max && self.not.contains(&min))
    }
}

/// What a text can be.
#[derive(Default)]
struct Texts {
    only: Option<BTreeSet<String>>,
    not: Vec<String>,
}

impl Texts {
    fn only(&mut self, list: &[String]) {
        let list: BTreeSet<String> = list.iter().cloned().collect();
        self.only = Some(match self.only.take() {
            None => list,
            Some(known) => known.intersection(&list).cloned().collect(),
        });
    }

    fn is_empty(&self, matched: impl Fn(&str) -> bool) -> bool {
        self.only.as_ref().is_some_and(|only| only.iter().all(|value| self.not.contains(value) || !matched(value)))
    }
}

/// Whether a rule with the cases `wide` fires wherever one with the cases `narrow` does, as far as conditions go.
pub(super) fn covers(wide: &[Conjunction], narrow: &[Conjunction]) -> bool {
    narrow.iter().all(|case| wide.iter().any(|other| other.iter().all(|test| case.iter().any(|known| test.follows_from(known)))))
}
