//! Where the parts of an expression were written. The parser numbers its nodes as it meets their words, so following
//! numbers and words side by side finds the place of each. What macros put in has no words and no place.

use std::collections::HashMap;

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue, operators as op};
use cel::parser::pratt_parser::{Lexer, Token, TokenKind};

/// The word by which a node is found.
enum Word<'e> {
    Text(&'e str),
    Kind(TokenKind),
}

/// The characters before each node.
pub(super) fn places(source: &str, expression: &IdedExpr) -> HashMap<u64, usize> {
    let mut words = Vec::new();
    collect(expression, &mut words);
    words.sort_by_key(|(id, _)| *id);
    let tokens = tokens(source);
    let mut rest = tokens.as_slice();
    let mut places = HashMap::new();
    for (id, word) in words {
        let fits = |token: &Token| match word {
            Word::Text(text) => source.get(token.start..token.end) == Some(text),
            Word::Kind(kind) => token.kind == kind,
        };
        let Some(found) = rest.iter().position(fits) else { continue };
        if let Some(token) = rest.get(found) {
            places.insert(id, source.get(..token.start).map_or(0, |before| before.chars().count()));
        }
        rest = rest.get(found + 1..).unwrap_or_default();
    }
    places
}

fn tokens(source: &str) -> Vec<Token> {
    let mut lexer = Lexer::new(source);
    let mut tokens = Vec::new();
    // Every token has at least one byte, so there are no more of them.
    for _ in 0..=source.len() {
        let token = lexer.lex();
        match token.kind {
            TokenKind::TokEnd => break,
            TokenKind::TokWhitespace | TokenKind::TokComment => {}
            _ => tokens.push(token),
        }
    }
    tokens
}

fn collect<'e>(node: &'e IdedExpr, words: &mut Vec<(u64, Word<'e>)>) {
    let mut add = |word: Word<'e>| words.push((node.id, word));
    match &node.expr {
        Expr::Unspecified => {}
        Expr::Ident(name) => add(Word::Text(name.trim_start_matches('.'))),
        Expr::Literal(literal) => add(Word::Kind(match literal {
            LiteralValue::Boolean(value) if *value.inner() => TokenKind::TokTrue,
            LiteralValue::Boolean(_) => TokenKind::TokFalse,
            LiteralValue::Null => TokenKind::TokNull,
            LiteralValue::Int(_) => TokenKind::TokInt,
            LiteralValue::UInt(_) => TokenKind::TokUint,
            LiteralValue::Double(_) => TokenKind::TokFloat,
            LiteralValue::String(_) => TokenKind::TokString,
            LiteralValue::Bytes(_) => TokenKind::TokBytes,
        })),
        Expr::Select(select) => {
            add(Word::Text(&select.field));
            collect(&select.operand, words);
        }
        Expr::List(list) => {
            add(Word::Kind(TokenKind::TokLeftBracket));
            list.elements.iter().for_each(|element| collect(element, words));
        }
        Expr::Map(map) => {
            add(Word::Kind(TokenKind::TokLeftBrace));
            map.entries.iter().for_each(|entry| entry_words(&entry.expr, words));
        }
        Expr::Struct(message) => {
            add(Word::Kind(TokenKind::TokLeftBrace));
            message.entries.iter().for_each(|entry| entry_words(&entry.expr, words));
        }
        Expr::Call(call) => {
            add(Word::Text(symbol(&call.func_name)));
            call.target.iter().for_each(|target| collect(target, words));
            call.args.iter().for_each(|argument| collect(argument, words));
        }
        Expr::Comprehension(body) => {
            collect(&body.iter_range, words);
            step(&body.loop_step, &body.accu_var, words);
        }
    }
}

fn entry_words<'e>(entry: &'e EntryExpr, words: &mut Vec<(u64, Word<'e>)>) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            collect(&entry.key, words);
            collect(&entry.value, words);
        }
        EntryExpr::StructField(field) => collect(&field.value, words),
    }
}

/// What somebody wrote of a macro's step: the macro's own nodes stand beside its accumulator.
fn step<'e>(node: &'e IdedExpr, accumulator: &str, words: &mut Vec<(u64, Word<'e>)>) {
    let is_accumulator = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == accumulator);
    match &node.expr {
        Expr::Call(call) if call.args.iter().any(is_accumulator) => {
            for argument in call.args.iter().filter(|argument| !is_accumulator(argument)) {
                match &argument.expr {
                    Expr::Literal(_) => {}
                    Expr::List(list) => list.elements.iter().for_each(|element| collect(element, words)),
                    _ => step(argument, accumulator, words),
                }
            }
        }
        _ => collect(node, words),
    }
}

/// How an operator is written.
fn symbol(name: &str) -> &str {
    match name {
        op::CONDITIONAL => "?",
        op::LOGICAL_AND => "&&",
        op::LOGICAL_OR => "||",
        op::LOGICAL_NOT => "!",
        op::SUBSTRACT | op::NEGATE => "-",
        op::ADD => "+",
        op::MULTIPLY => "*",
        op::DIVIDE => "/",
        op::MODULO => "%",
        op::EQUALS => "==",
        op::NOT_EQUALS => "!=",
        op::GREATER_EQUALS => ">=",
        op::LESS_EQUALS => "<=",
        op::GREATER => ">",
        op::LESS => "<",
        op::INDEX => "[",
        op::IN => "in",
        name => name,
    }
}
