//! The walk over an expression: what an act has, which functions there are, and which types fit together.

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators as op};

use super::scope::is_of_the_change;
use super::{Found, regex};
use crate::policy::PATHS;
use crate::policy::ask::{ASKS, Ask};
use crate::policy::yaml::nearest;

/// How many nodes an expression may have.
const NODES_MAX: usize = 500;
/// How deep they may nest: evaluating them goes as deep.
const DEPTH_MAX: usize = 40;

/// What is known of a value before there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Type {
    Bool,
    Int,
    Double,
    Text,
    Null,
    Table,
    List(Box<Type>),
    /// Known only when it is there.
    Any,
}

impl Type {
    fn name(&self) -> &'static str {
        match self {
            Self::Bool => "a yes or no",
            Self::Int => "a whole number",
            Self::Double => "a number",
            Self::Text => "a text",
            Self::Null => "null",
            Self::Table => "a table",
            Self::List(_) => "a list",
            Self::Any => "anything",
        }
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Double)
    }

    /// Whether values of both can be equal.
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any | Self::Null, _) | (_, Self::Any | Self::Null) => true,
            (Self::List(left), Self::List(right)) => left.meets(right),
            (left, right) => left == right || (left.is_number() && right.is_number()),
        }
    }
}

/// What a condition can ask for, with the type and what it is.
pub(in crate::policy) const VARIABLES: &[(&str, Kind, &str)] = &[
    ("act.kind", Kind::Text, "the verb, such as `propose`"),
    ("act.tool", Kind::Text, "the operation or tool"),
    ("act.domain", Kind::Text, "the scope of work"),
    ("act.environment", Kind::Text, "where; empty if nobody said"),
    ("act.action", Kind::Text, "what would be done"),
    ("act.target", Kind::Text, "to what"),
    ("act.field", Kind::Text, "the field that the agent names; empty if none"),
    ("act.cost", Kind::Double, "what it would cost, in units"),
    ("act.taint", Kind::Texts, "origins of inputs that nobody vouches for"),
    ("args", Kind::Any, "the change, or the arguments of the call"),
    ("changed", Kind::Texts, "every changed path"),
    ("fields", Kind::Texts, "the name of every changed field, written as `card_number`"),
    ("texts", Kind::Texts, "every text in the change"),
    ("recipients", Kind::Texts, "who gets it: what stands under `to`, `cc`, `bcc` and the like, in small letters"),
    ("agent.id", Kind::Text, "who acts"),
    ("agent.verified", Kind::Bool, "whether its credential proved it"),
    ("trust.score", Kind::Double, "its score in the domain, 0 to 1"),
    ("trust.decided", Kind::Int, "its proposals in the domain that people decided"),
    ("counters.calls_minute", Kind::Int, "its acts in the domain in the last minute"),
    ("counters.calls_hour", Kind::Int, "its acts in the domain in the last hour"),
    ("counters.calls_day", Kind::Int, "its acts in the domain on this day"),
    ("counters.calls_hour_all", Kind::Int, "its acts in all domains in the last hour"),
    ("counters.calls_day_all", Kind::Int, "its acts in all domains on this day"),
    ("counters.cost_day", Kind::Double, "its cost on this day, in units"),
    ("counters.denied_day", Kind::Int, "its denied acts on this day"),
    ("counters.pending", Kind::Int, "its requests that wait"),
    ("now", Kind::Int, "seconds since 1970"),
    ("time.year", Kind::Int, "the year (all times are UTC)"),
    ("time.month", Kind::Int, "1 to 12"),
    ("time.day", Kind::Int, "1 to 31"),
    ("time.hour", Kind::Int, "0 to 23"),
    ("time.minute", Kind::Int, "0 to 59"),
    ("time.weekday", Kind::Int, "1 is Monday, 7 is Sunday"),
];

/// The types of variables, as constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Kind {
    Bool,
    Int,
    Double,
    Text,
    Texts,
    Any,
}

impl Kind {
    fn of(self) -> Type {
        match self {
            Self::Bool => Type::Bool,
            Self::Int => Type::Int,
            Self::Double => Type::Double,
            Self::Text => Type::Text,
            Self::Texts => Type::List(Box::new(Type::Text)),
            Self::Any => Type::Any,
        }
    }
}

/// Names that only stand before a dot.
const GROUPS: [&str; 5] = ["act", "agent", "trust", "counters", "time"];

/// Functions: name, whether it is called on a value, how many arguments besides it.
const FUNCTIONS: &[(&str, bool, usize)] = &[
    ("size", false, 1),
    ("int", false, 1),
    ("double", false, 1),
    ("string", false, 1),
    ("size", true, 0),
    ("contains", true, 1),
    ("startsWith", true, 1),
    ("endsWith", true, 1),
    ("matches", true, 1),
    ("lowerAscii", true, 0),
    ("upperAscii", true, 0),
    ("trim", true, 0),
];

/// Macros, which are no calls once they are written rightly.
const MACROS: &[(&str, &str)] = &[
    ("has", "has(args.amount)"),
    ("all", "args.items.all(x, x > 0)"),
    ("exists", "args.items.exists(x, x > 0)"),
    ("exists_one", "args.items.exists_one(x, x > 0)"),
    ("map", "args.items.map(x, x.price)"),
    ("filter", "args.items.filter(x, x.price > 0)"),
];

/// Walks an expression, notes what is wrong, and turns `act.kind` into one name that is looked up at once.
pub(in crate::policy) fn check(expression: &mut IdedExpr, found: &mut Found) {
    let mut walk = Walk { found, locals: Vec::new(), inside: 0, nodes: 0, depth: 0 };
    let kind = walk.expression(expression);
    if !matches!(kind, Type::Bool | Type::Any) {
        let said = format!("the condition is {}, not a yes or no: compare it with something", kind.name());
        walk.fault(expression.id, said);
    }
}

struct Walk<'f> {
    found: &'f mut Found,
    locals: Vec<(String, Type)>,
    /// How many comprehensions surround the node.
    inside: usize,
    nodes: usize,
    depth: usize,
}

impl Walk<'_> {
    fn fault(&mut self, id: u64, message: impl Into<String>) {
        self.found.faults.push((id, message.into()));
    }

    fn expression(&mut self, node: &mut IdedExpr) -> Type {
        self.nodes += 1;
        self.depth += 1;
        if self.nodes == NODES_MAX {
            self.fault(node.id, format!("the condition has more than {NODES_MAX} parts: split the rule in two"));
        } else if self.depth == DEPTH_MAX {
            self.fault(node.id, format!("the condition nests deeper than {DEPTH_MAX}: split the rule in two"));
        }
        let kind = if self.nodes >= NODES_MAX || self.depth >= DEPTH_MAX { Type::Any } else { self.known(node) };
        self.depth -= 1;
        kind
    }

    fn known(&mut self, node: &mut IdedExpr) -> Type {
        let id = node.id;
        if let Some(kind) = self.variable(node) {
            return kind;
        }
        match &mut node.expr {
            Expr::Unspecified => {
                self.fault(id, "something is missing here");
                Type::Any
            }
            Expr::Literal(literal) => self.literal(id, literal),
            Expr::Ident(name) => {
                let name = name.clone();
                self.name(id, &name)
            }
            Expr::Select(select) => {
                let is_other = select.field != PATHS && matches!(&select.operand.expr, Expr::Ident(name) if name == "args" && self.local(name).is_none());
                let asked = self.found.asks_for_paths;
                let operand = self.expression(&mut select.operand);
                if is_other {
                    self.found.asks_for_paths = asked;
                }
                if !matches!(operand, Type::Any | Type::Table) {
                    self.fault(id, format!("{} has no `{}`", operand.name(), select.field));
                }
                if select.test { Type::Bool } else { Type::Any }
            }
            Expr::List(list) => {
                let mut kind: Option<Type> = None;
                for element in &mut list.elements {
                    let element = self.expression(element);
                    kind = Some(match kind {
                        None => element,
                        Some(kind) if kind == element => kind,
                        Some(kind) if kind.is_number() && element.is_number() => Type::Double,
                        Some(_) => Type::Any,
                    });
                }
                Type::List(Box::new(kind.unwrap_or(Type::Any)))
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    match &mut entry.expr {
                        EntryExpr::MapEntry(entry) => {
                            let key = self.expression(&mut entry.key);
                            if !matches!(key, Type::Any | Type::Text | Type::Int | Type::Bool) {
                                self.fault(entry.key.id, format!("{} cannot be a key: write a text", key.name()));
                            }
                            self.expression(&mut entry.value);
                        }
                        EntryExpr::StructField(_) => self.fault(entry.id, "there are no messages here: write a table such as {'a': 1}"),
                    }
                }
                Type::Table
            }
            Expr::Struct(_) => {
                self.fault(id, "there are no messages here: write a table such as {'a': 1}");
                Type::Any
            }
            Expr::Call(_) => self.call(node),
            Expr::Comprehension(_) => self.comprehension(node),
        }
    }

    /// A variable of the act's schema, written `args` or `act.kind`. It becomes one name.
    fn variable(&mut self, node: &mut IdedExpr) -> Option<Type> {
        let name = match &node.expr {
            Expr::Ident(name) if self.local(name).is_none() => name.clone(),
            Expr::Select(select) => match &select.operand.expr {
                Expr::Ident(group) if GROUPS.contains(&group.as_str()) => {
                    let name = format!("{group}.{}", select.field);
                    let start = select.operand.id;
                    if select.test {
                        self.fault(start, format!("`{group}` always has all its parts: compare `{name}` with '' or 0 instead of `has`"));
                        return Some(Type::Bool);
                    }
                    if !VARIABLES.iter().any(|(known, ..)| *known == name) {
                        let known: Vec<&str> = VARIABLES.iter().map(|(known, ..)| *known).filter(|known| known.starts_with(&format!("{group}."))).collect();
                        let hint =
                            nearest(&name, &known).map_or_else(|| format!("write one of {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
                        self.fault(start, format!("`{name}` is not known: {hint}"));
                        return Some(Type::Any);
                    }
                    name
                }
                _ => return None,
            },
            _ => return None,
        };
        let (known, kind, _) = VARIABLES.iter().find(|(known, ..)| *known == name)?;
        self.found.variables.insert(known);
        self.found.asks_for_the_change |= is_of_the_change(known);
        self.found.asks_for_paths |= matches!(*known, "args" | "texts");
        node.expr = Expr::Ident(name);
        Some(kind.of())
    }

    fn local(&self, name: &str) -> Option<&Type> {
        self.locals.iter().rev().find(|(local, _)| local == name).map(|(_, kind)| kind)
    }

    fn name(&mut self, id: u64, name: &str) -> Type {
        if let Some(kind) = self.local(name) {
            return kind.clone();
        }
        if GROUPS.contains(&name) {
            let example = VARIABLES.iter().map(|(known, ..)| *known).find(|known| known.starts_with(&format!("{name}."))).unwrap_or_default();
            self.fault(id, format!("`{name}` is no value by itself: write for example `{example}`"));
            return Type::Any;
        }
        let known: Vec<&str> = VARIABLES.iter().map(|(known, ..)| *known).chain(self.locals.iter().map(|(local, _)| local.as_str())).collect();
        let hint = nearest(name, &known)
            .map_or_else(|| "write act.…, args.…, changed, agent.…, trust.…, counters.…, time.… or now".to_owned(), |near| format!("did you mean `{near}`?"));
        self.fault(id, format!("the name `{name}` is not known: {hint}"));
        Type::Any
    }

    fn literal(&mut self, id: u64, literal: &LiteralValue) -> Type {
        match literal {
            LiteralValue::Boolean(_) => Type::Bool,
            LiteralValue::Int(_) => Type::Int,
            LiteralValue::Double(_) => Type::Double,
            LiteralValue::String(_) => Type::Text,
            LiteralValue::Null => Type::Null,
            LiteralValue::UInt(_) => {
                self.fault(id, "write whole numbers without `u`");
                Type::Int
            }
            LiteralValue::Bytes(_) => {
                self.fault(id, "there are no bytes here: write a text without `b`");
                Type::Any
            }
        }
    }

    fn call(&mut self, node: &mut IdedExpr) -> Type {
        let id = node.id;
        if let Some(kind) = self.ask(node) {
            return kind;
        }
        let Expr::Call(call) = &mut node.expr else { return Type::Any };
        let target = call.target.as_mut().map(|target| self.expression(target));
        let arguments: Vec<Type> = call.args.iter_mut().map(|argument| self.expression(argument)).collect();
        let name = call.func_name.as_str();
        match (target, arguments.as_slice()) {
            (None, [left, right]) if name != op::INDEX => {
                if let Some(kind) = self.binary(id, name, left, right) {
                    return kind;
                }
            }
            (None, [one]) if name == op::LOGICAL_NOT => {
                self.want(id, one, &Type::Bool, "`!`");
                return Type::Bool;
            }
            (None, [one]) if name == op::NEGATE => {
                if !one.is_number() && *one != Type::Any {
                    self.fault(id, format!("`-` needs a number, not {}", one.name()));
                }
                return one.clone();
            }
            (None, [_]) if name == op::NOT_STRICTLY_FALSE => return Type::Bool,
            (None, [condition, left, right]) if name == op::CONDITIONAL => {
                self.want(id, condition, &Type::Bool, "`? :`");
                return if left == right { left.clone() } else { Type::Any };
            }
            (None, [container, index]) if name == op::INDEX => return self.index(id, container, index),
            (Some(target), arguments) => {
                let pattern = call.args.first().map(|argument| &argument.expr);
                if name == "matches" && arguments.len() == 1 {
                    return self.matches(id, &target, pattern);
                }
                return self.member(id, name, &target, arguments);
            }
            _ => {}
        }
        self.function(id, name, &arguments)
    }

    /// A question about the whole act. It becomes one name, under which the answer is looked up.
    fn ask(&mut self, node: &mut IdedExpr) -> Option<Type> {
        let Expr::Call(call) = &node.expr else { return None };
        let (name, example) = ASKS.iter().find(|(known, _)| *known == call.func_name)?;
        if call.target.is_some() {
            self.fault(node.id, format!("`{name}` is not called on a value: write for example {example}"));
            return Some(Type::Any);
        }
        match Ask::read(name, &call.args) {
            Ok(ask) => {
                self.found.asks_for_the_change |= is_of_the_change(&ask.key());
                self.found.asks_for_paths |= ask.is_about(PATHS);
                node.expr = Expr::Ident(ask.key());
                Some(match ask.is_number() {
                    (true, true) => Type::Int,
                    (true, false) => Type::Double,
                    (false, _) => Type::Bool,
                })
            }
            Err(problem) => {
                self.fault(node.id, problem);
                Some(Type::Any)
            }
        }
    }

    fn want(&mut self, id: u64, got: &Type, want: &Type, what: &str) {
        if got != want && *got != Type::Any {
            self.fault(id, format!("{what} needs {}, not {}", want.name(), got.name()));
        }
    }

    fn binary(&mut self, id: u64, name: &str, left: &Type, right: &Type) -> Option<Type> {
        let both = |kind: &Type| left == kind && right == kind;
        Some(match name {
            op::LOGICAL_AND | op::LOGICAL_OR => {
                for side in [left, right] {
                    self.want(id, side, &Type::Bool, if name == op::LOGICAL_AND { "`&&`" } else { "`||`" });
                }
                Type::Bool
            }
            op::EQUALS | op::NOT_EQUALS => {
                if !left.meets(right) {
                    self.fault(id, format!("{} is never equal to {}", left.name(), right.name()));
                }
                Type::Bool
            }
            op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS => {
                let known = |kind: &Type| matches!(kind, Type::Any | Type::Text | Type::Bool) || kind.is_number();
                if !known(left) || !known(right) || !left.meets(right) {
                    self.fault(id, format!("{} cannot be compared with {}", left.name(), right.name()));
                }
                Type::Bool
            }
            op::IN => {
                match right {
                    Type::List(element) if !left.meets(element) => {
                        self.fault(id, format!("a list whose entries are {} never has {}", element.name(), left.name()));
                    }
                    Type::List(_) | Type::Table | Type::Any => {}
                    Type::Text => self.fault(id, "`in` needs a list; for a part of a text write a.contains(b)"),
                    other => self.fault(id, format!("`in` needs a list, not {}", other.name())),
                }
                Type::Bool
            }
            op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO => {
                let texts = name == op::ADD && (both(&Type::Text) || matches!((left, right), (Type::List(_), Type::List(_))));
                let whole = both(&Type::Int) || (name != op::MODULO && both(&Type::Double));
                if texts || whole {
                    return Some(left.clone());
                }
                if *left == Type::Any || *right == Type::Any {
                    return Some(Type::Any);
                }
                if left.is_number() && right.is_number() && name != op::MODULO {
                    self.fault(id, "whole numbers and others do not mix here: write 2.0 instead of 2, or double(x)");
                } else {
                    self.fault(id, format!("{} and {} cannot be reckoned with", left.name(), right.name()));
                }
                Type::Any
            }
            _ => return None,
        })
    }

    fn index(&mut self, id: u64, container: &Type, index: &Type) -> Type {
        match container {
            Type::List(element) => {
                if !matches!(index, Type::Int | Type::Any) {
                    self.fault(id, format!("a list is indexed with a whole number, not with {}", index.name()));
                }
                (**element).clone()
            }
            Type::Table | Type::Any => Type::Any,
            other => {
                self.fault(id, format!("{} cannot be indexed", other.name()));
                Type::Any
            }
        }
    }

    fn matches(&mut self, id: u64, target: &Type, pattern: Option<&Expr>) -> Type {
        self.want(id, target, &Type::Text, "`matches`");
        match pattern {
            Some(Expr::Literal(LiteralValue::String(pattern))) => match regex(pattern.inner()) {
                Ok(_) => {
                    self.found.patterns.insert(pattern.inner().to_owned());
                }
                Err(problem) => self.fault(id, problem),
            },
            _ => self.fault(id, "the pattern of `matches` has to be written out, so that it is read once: x.matches('^a')"),
        }
        Type::Bool
    }

    fn member(&mut self, id: u64, name: &str, target: &Type, arguments: &[Type]) -> Type {
        if !self.known_function(id, name, true, arguments.len()) {
            return Type::Any;
        }
        match name {
            "size" => {
                if !matches!(target, Type::Any | Type::Text | Type::Table | Type::List(_)) {
                    self.fault(id, format!("{} has no size", target.name()));
                }
                Type::Int
            }
            "lowerAscii" | "upperAscii" | "trim" => {
                self.want(id, target, &Type::Text, &format!("`{name}`"));
                Type::Text
            }
            _ => {
                for kind in std::iter::once(target).chain(arguments) {
                    self.want(id, kind, &Type::Text, &format!("`{name}`"));
                }
                Type::Bool
            }
        }
    }

    fn function(&mut self, id: u64, name: &str, arguments: &[Type]) -> Type {
        if !self.known_function(id, name, false, arguments.len()) {
            return Type::Any;
        }
        let argument = arguments.first().cloned().unwrap_or(Type::Any);
        if name == "size" {
            if !matches!(argument, Type::Any | Type::Text | Type::Table | Type::List(_)) {
                self.fault(id, format!("{} has no size", argument.name()));
            }
            return Type::Int;
        }
        let turns = matches!(argument, Type::Any | Type::Text) || argument.is_number() || (name == "string" && argument == Type::Bool);
        if !turns {
            self.fault(id, format!("`{name}` cannot turn {} into something else", argument.name()));
        }
        match name {
            "int" => Type::Int,
            "double" => Type::Double,
            _ => Type::Text,
        }
    }

    /// Whether a function exists in this form; says so if not.
    fn known_function(&mut self, id: u64, name: &str, member: bool, arguments: usize) -> bool {
        if FUNCTIONS.contains(&(name, member, arguments)) {
            return true;
        }
        if let Some((_, example)) = MACROS.iter().find(|(known, _)| *known == name) {
            self.fault(id, format!("`{name}` is not written so: write for example {example}"));
            return false;
        }
        let said = match FUNCTIONS.iter().find(|(known, ..)| *known == name) {
            Some((_, true, count)) if member => format!("`{name}` takes {count} argument{}, not {arguments}", if *count == 1 { "" } else { "s" }),
            Some((_, false, count)) if !member => format!("`{name}` takes {count} argument{}, not {arguments}", if *count == 1 { "" } else { "s" }),
            Some((_, true, _)) => format!("`{name}` is called on a value: write x.{name}(…)"),
            Some((_, false, _)) => format!("`{name}` is not called on a value: write {name}(x)"),
            None => {
                let mut known: Vec<&str> = FUNCTIONS.iter().map(|(known, ..)| *known).chain(MACROS.iter().chain(&ASKS).map(|(known, _)| *known)).collect();
                known.dedup();
                let hint = nearest(name, &known).map_or_else(|| format!("there are {}", known.join(", ")), |near| format!("did you mean `{near}`?"));
                format!("the function `{name}` is not known: {hint}")
            }
        };
        self.fault(id, said);
        false
    }

    fn comprehension(&mut self, node: &mut IdedExpr) -> Type {
        let Expr::Comprehension(body) = &mut node.expr else { return Type::Any };
        // A macro has no place of its own.
        let id = body.iter_range.id;
        if self.inside > 0 {
            self.fault(id, "a loop inside a loop could take for ever: write two rules, or loop over one list only");
            return Type::Any;
        }
        let element = match self.expression(&mut body.iter_range) {
            Type::List(element) => *element,
            Type::Table => Type::Text,
            Type::Any => Type::Any,
            other => {
                self.fault(body.iter_range.id, format!("{} cannot be looped over: that needs a list", other.name()));
                Type::Any
            }
        };
        let kept = self.locals.len();
        for name in std::iter::once(&body.iter_var).chain(&body.iter_var2) {
            if GROUPS.contains(&name.as_str()) || VARIABLES.iter().any(|(known, ..)| known == name) {
                self.fault(id, format!("`{name}` is taken: choose another name for the entries of the list"));
            }
        }
        let start = self.expression(&mut body.accu_init);
        self.locals.push((body.accu_var.clone(), start));
        self.locals.push((body.iter_var.clone(), element));
        if let Some(second) = &body.iter_var2 {
            self.locals.push((second.clone(), Type::Any));
        }
        self.inside += 1;
        self.expression(&mut body.loop_cond);
        self.expression(&mut body.loop_step);
        let kind = self.expression(&mut body.result);
        self.inside -= 1;
        self.locals.truncate(kept);
        kind
    }
}
