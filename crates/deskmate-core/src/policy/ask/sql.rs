//! What SQL in a text would do, read without a grammar of any one database: comments and texts are passed over, statements are
//! told apart, and the words that matter are looked for. Databases differ in what a comment and the end of a text is, so it is
//! read in each manner, and what is found in any counts.

/// How many texts and bytes are looked at is bounded by the caller; this bounds the words of one text.
const WORDS_MAX: usize = 20_000;

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sql {
    /// Rows are added.
    pub(super) inserts: bool,
    /// Rows are changed.
    pub(super) updates: bool,
    /// Rows are taken away.
    pub(super) deletes: bool,
    /// Rows are changed or taken away without a condition.
    pub(super) all_rows: bool,
    /// Tables, rights or the like are made, changed or taken away.
    pub(super) schema: bool,
    /// A table or a database goes.
    pub(super) drops: bool,
}

impl Sql {
    /// What is too long to be followed could be anything.
    const ANYTHING: Self = Self { inserts: true, updates: true, deletes: true, all_rows: true, schema: true, drops: true };

    /// Whether rows are different afterwards.
    pub(super) fn writes(self) -> bool {
        self.inserts || self.updates || self.deletes
    }

    pub(super) fn add(&mut self, other: Self) {
        self.inserts |= other.inserts;
        self.updates |= other.updates;
        self.deletes |= other.deletes;
        self.all_rows |= other.all_rows;
        self.schema |= other.schema;
        self.drops |= other.drops;
    }
}

/// Words after which a statement is surely SQL, by its first word.
const SECOND: &[(&str, &[&str])] = &[
    ("insert", &["into", "ignore", "or", "overwrite", "low_priority", "delayed"]),
    ("replace", &["into"]),
    ("delete", &["from"]),
    ("merge", &["into"]),
    ("truncate", &[]),
    ("drop", OBJECTS),
    ("create", OBJECTS),
    ("alter", OBJECTS),
    ("grant", &[]),
    ("revoke", &[]),
    ("update", &[]),
];
const OBJECTS: &[&str] = &[
    "table",
    "database",
    "schema",
    "index",
    "unique",
    "view",
    "materialized",
    "user",
    "role",
    "trigger",
    "function",
    "procedure",
    "sequence",
    "type",
    "extension",
    "column",
    "temporary",
    "temp",
    "or",
    "policy",
    "keyspace",
    "collection",
    "external",
    "global",
    "virtual",
];
/// First words that only look, and whose statement is then looked through for others: `with x as (delete …) select`.
const LOOKING: &[&str] =
    &["select", "with", "explain", "values", "show", "describe", "pragma", "call", "exec", "execute", "do", "begin", "declare", "copy", "set"];

/// What a text would do, if it is SQL.
pub(super) fn read(text: &str) -> Sql {
    let mut found = Sql::default();
    for (line_comments, escapes) in [(true, true), (true, false), (false, true), (false, false)] {
        let Some(words) = tokens(text, line_comments, escapes) else { return Sql::ANYTHING };
        for statement in words.split(|word| word == ";") {
            found.add(statement_of(statement));
        }
    }
    found
}

/// Whether a text may begin a statement: cheap, so that mails are not taken apart.
pub(super) fn may_be(text: &str) -> bool {
    let verbs = ["insert", "replace", "delete", "merge", "truncate", "drop", "create", "alter", "grant", "revoke", "update", "copy", "into"];
    let lower = text.to_ascii_lowercase();
    verbs.iter().any(|verb| lower.contains(verb))
}

fn statement_of(words: &[String]) -> Sql {
    let first = words.iter().position(|word| word != "(");
    let Some(words) = first.and_then(|first| words.get(first..)) else { return Sql::default() };
    let Some(verb) = words.first().map(String::as_str) else { return Sql::default() };
    if LOOKING.contains(&verb) {
        // A verb that is not at the beginning counts where it cannot be anything else.
        let mut found = Sql::default();
        let is_query = verb != "with" || words.iter().any(|word| word == "as");
        for at in (1..words.len()).filter(|_| is_query) {
            let rest = words.get(at..).unwrap_or_default();
            if rest.first().is_some_and(|word| matches!(word.as_str(), "insert" | "delete" | "update" | "merge" | "drop" | "truncate" | "alter" | "create")) {
                found.add(plain(rest));
            }
            // `select … into new_table`
            found.schema |= verb == "select" && rest.first().is_some_and(|word| word == "into");
        }
        let is_copy_in = verb == "copy" && words.iter().any(|word| word == "from");
        found.inserts |= is_copy_in;
        return found;
    }
    plain(words)
}

/// A statement that begins with a verb that changes something, if that is what it is.
fn plain(words: &[String]) -> Sql {
    let word = |at: usize| words.get(at).map(String::as_str).unwrap_or_default();
    let verb = word(0);
    let Some((_, second)) = SECOND.iter().find(|(known, _)| *known == verb) else { return Sql::default() };
    let has = |sought: &str| words.iter().any(|word| word == sought);
    let fits = match verb {
        "update" => has("set"),
        "grant" | "revoke" => has("to") || has("from") || has("on"),
        "truncate" => word(1) == "table" || words.len() <= 4,
        _ => second.contains(&word(1)),
    };
    if !fits {
        return Sql::default();
    }
    match verb {
        "insert" => Sql { inserts: true, updates: has("update"), ..Sql::default() },
        // Rows take the place of others.
        "replace" | "merge" => Sql { inserts: true, updates: true, deletes: has("delete"), ..Sql::default() },
        "delete" => Sql { deletes: true, all_rows: !limits(words), ..Sql::default() },
        "update" => Sql { updates: true, all_rows: !limits(words), ..Sql::default() },
        "truncate" => Sql { deletes: true, all_rows: true, schema: true, ..Sql::default() },
        "drop" => Sql { schema: true, drops: true, ..Sql::default() },
        _ => Sql { schema: true, ..Sql::default() },
    }
}

/// Whether a condition limits the rows: one that is more than `1 = 1` or `true`.
fn limits(words: &[String]) -> bool {
    let Some(at) = words.iter().position(|word| word == "where") else { return false };
    let condition: Vec<&str> = words
        .get(at + 1..)
        .unwrap_or_default()
        .iter()
        .map(String::as_str)
        .take_while(|word| *word != "returning")
        .filter(|word| *word != "(" && *word != ")")
        .collect();
    match condition.as_slice() {
        [] | ["true" | "1" | "not", ..] if condition.len() <= 2 => false,
        [left, "=", right] if left == right => false,
        [left, "=", right, ..] if left == right && is_literal(left) && !condition.contains(&"and") => false,
        words => {
            !words.windows(4).any(|four| matches!(four, ["or", left, "=", right] if left == right))
                && !words.windows(2).any(|two| matches!(two, ["or", "true" | "1"]))
        }
    }
}

fn is_literal(word: &str) -> bool {
    word == "''" || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The words of a text without comments; a text in quotes is `''`, a name in quotes is a word. `None` if there are too many.
/// `--` begins a comment everywhere if a space follows, `#` and `--` alone only in some databases; in some `\` takes the
/// meaning of a quote.
fn tokens(text: &str, line_comments: bool, escapes: bool) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        if words.len() > WORDS_MAX {
            return None;
        }
        match (letter, rest.peek().copied()) {
            ('-', Some('-')) if line_comments || text_after(&rest, 1).is_none_or(char::is_whitespace) => skip_line(&mut rest),
            ('#', _) if line_comments => skip_line(&mut rest),
            // One that some databases read as a statement.
            ('/', Some('*')) if text_after(&rest, 1) == Some('!') => {
                rest.nth(1);
                while rest.peek().is_some_and(char::is_ascii_digit) {
                    rest.next();
                }
            }
            ('/', Some('*')) => {
                let mut before = ' ';
                rest.next();
                for letter in rest.by_ref() {
                    if before == '*' && letter == '/' {
                        break;
                    }
                    before = letter;
                }
            }
            ('\'', _) => {
                skip_quoted(&mut rest, '\'', escapes);
                words.push("''".to_owned());
            }
            ('"' | '`', _) => {
                skip_quoted(&mut rest, letter, false);
                words.push("\"\"".to_owned());
            }
            (letter, _) if letter.is_alphanumeric() || letter == '_' => {
                let mut word: String = letter.to_lowercase().collect();
                while let Some(next) = rest.peek().copied().filter(|next| next.is_alphanumeric() || matches!(next, '_' | '.' | '$')) {
                    word.extend(next.to_lowercase());
                    rest.next();
                }
                words.push(word);
            }
            (letter, _) if letter.is_whitespace() => {}
            (letter, _) => words.push(letter.to_string()),
        }
    }
    Some(words)
}

type Letters<'t> = std::iter::Peekable<std::str::Chars<'t>>;

/// The letter so many places after the next.
fn text_after(rest: &Letters<'_>, places: usize) -> Option<char> {
    rest.clone().nth(places)
}

fn skip_line(rest: &mut Letters<'_>) {
    for letter in rest.by_ref() {
        if letter == '\n' {
            break;
        }
    }
}

/// Passes over the rest of a text in quotes; a doubled quote belongs to it.
fn skip_quoted(rest: &mut Letters<'_>, quote: char, escapes: bool) {
    while let Some(letter) = rest.next() {
        if letter == '\\' && escapes {
            rest.next();
        } else if letter == quote {
            if rest.peek() == Some(&quote) {
                rest.next();
            } else {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(text: &str) -> String {
        let sql = if may_be(text) { read(text) } else { Sql::default() };
        let parts = [(sql.writes(), "writes"), (sql.all_rows, "all"), (sql.schema, "schema"), (sql.drops, "drops")];
        parts.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn statements_are_told() {
        for (text, expected) in [
            ("select * from users", ""),
            ("SELECT deleted, updated FROM audit WHERE action = 'DROP TABLE x'", ""),
            ("delete from users where id = 5", "writes"),
            ("DELETE FROM users", "writes all"),
            ("delete from users;", "writes all"),
            ("delete from users where 1=1", "writes all"),
            ("delete from users where id = 3 or 1 = 1", "writes all"),
            ("delete from users where true", "writes all"),
            ("delete from users -- where id = 5", "writes all"),
            ("delete /* x */ from users /* where id = 1 */", "writes all"),
            ("update users set name = 'x where y'", "writes all"),
            ("update users set name = 'x' where id = 1", "writes"),
            ("UPDATE \"users\" SET a = 1", "writes all"),
            ("insert into t values (1)", "writes"),
            ("with gone as (delete from t returning *) select * from gone", "writes all"),
            ("explain analyze delete from t where id = 1", "writes"),
            ("select 1; drop table users", "schema drops"),
            ("DROP   TABLE users", "schema drops"),
            ("drop database production", "schema drops"),
            ("create table t (a int)", "schema"),
            ("ALTER TABLE t ADD COLUMN b int", "schema"),
            ("truncate table t", "writes all schema"),
            ("TRUNCATE t", "writes all schema"),
            ("grant all on t to bob", "schema"),
            ("select * into copy_of_t from t", "schema"),
            ("copy t from stdin", "writes"),
            ("Please delete from the list whoever left", ""),
            ("Please update the report and set it aside", ""),
            ("Create a summary of the table", ""),
            ("drop me a line about the table", ""),
            ("We grant access on request to everybody", ""),
            ("(((delete from t)))", "writes all"),
            ("select 1 # 2; drop table x", "schema drops"),
            ("delete from users # where id = 5", "writes all"),
            ("select 5--1; drop table x", "schema drops"),
            ("select '\\'; drop table x; --'", "schema drops"),
            ("select 'it\\'s'; delete from t where a = 1", "writes"),
            ("/*!50000 drop table x */", "schema drops"),
        ] {
            assert_eq!(told(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,80}|((delete|from|where|;|--|/\\*|'|\"|\\(|update|set|=|1) ?){0,30}") {
            let _ = read(&text);
        }

        /// Whatever is written around it, a statement of its own is seen.
        #[test]
        fn a_statement_after_a_semicolon_is_seen(before in "select [a-z ,]{0,20} from [a-z]{1,8}", space in "[ \n\t]{1,4}") {
            let text = format!("{before};{space}DROP{space}TABLE{space}x");
            prop_assert!(read(&text).drops);
        }
    }
}
