//! What an act does, told from the words of its kind, tool and action: one table that people can read.
//!
//! A tool whose name says nothing is not seen through. Give it a verb where it is mounted.

use std::collections::BTreeSet;

use serde_json::Value;

use super::names::words;
use crate::policy::Act;

/// How many words are looked at. An act with more cannot be told.
const WORDS_MAX: usize = 400;

const READING: &[&str] =
    &["read", "get", "list", "search", "find", "fetch", "view", "look", "query", "select", "download", "browse", "show", "open", "load", "lookup"];
const WRITING: &[&str] = &[
    "write", "create", "update", "edit", "set", "put", "insert", "add", "append", "save", "modify", "change", "patch", "upload", "move", "rename", "copy",
    "replace", "import", "store", "upsert", "merge", "make", "new",
];
const DELETING: &[&str] = &[
    "delete", "deleted", "deletion", "remove", "removal", "erase", "erasure", "purge", "drop", "destroy", "trash", "truncate", "wipe", "rm", "rmdir", "unlink",
];
const SENDING: &[&str] = &["send", "reply", "forward", "post", "publish", "share", "notify", "invite", "broadcast", "announce"];
const FILES: &[&str] = &["file", "files", "folder", "folders", "directory", "document", "documents", "fs", "attachment", "attachments"];
const DATABASES: &[&str] =
    &["database", "db", "sql", "table", "tables", "record", "records", "row", "rows", "postgres", "postgresql", "mysql", "sqlite", "mongodb"];
const MAILING: &[&str] = &["mail", "mails", "email", "emails", "smtp", "gmail", "outlook", "newsletter"];
const CHATTING: &[&str] = &["message", "messages", "chat", "slack", "teams", "sms", "whatsapp", "telegram", "discord", "channel", "dm"];

/// One thing that acts do.
pub(in crate::policy) struct Doing {
    /// Its name.
    pub(in crate::policy) name: &'static str,
    /// What it is, for people.
    pub(in crate::policy) what: &'static str,
    /// Any of these, all of each, any word of all.
    words: &'static [&'static [&'static [&'static str]]],
}

/// All of them.
pub(in crate::policy) const DOINGS: &[Doing] = &[
    Doing { name: "read", what: "looking at something", words: &[&[READING]] },
    Doing { name: "write", what: "making or changing something", words: &[&[WRITING]] },
    Doing { name: "delete", what: "taking something away", words: &[&[DELETING]] },
    Doing { name: "file_read", what: "looking at files", words: &[&[FILES, READING]] },
    Doing { name: "file_write", what: "making or changing files", words: &[&[FILES, WRITING]] },
    Doing { name: "file_delete", what: "deleting files", words: &[&[FILES, DELETING]] },
    Doing { name: "query", what: "asking a database", words: &[&[&["query", "queries", "sql"]], &[DATABASES, READING]] },
    Doing { name: "database_write", what: "changing a database", words: &[&[DATABASES, WRITING], &[DATABASES, DELETING]] },
    Doing { name: "send", what: "bringing words to somebody", words: &[&[SENDING], &[MAILING, &["compose", "deliver", "sent"]]] },
    Doing { name: "mail", what: "sending e-mail", words: &[&[MAILING, SENDING], &[MAILING, &["compose", "deliver"]], &[&["sendmail", "mailto"]]] },
    Doing { name: "message", what: "sending a message to a chat", words: &[&[CHATTING, SENDING], &[CHATTING, &["write", "create", "compose"]]] },
    Doing {
        name: "publish",
        what: "putting something where everybody sees it",
        words: &[
            &[&["publish", "tweet", "blog", "announce", "broadcast"]],
            &[&["post"], &["social", "public", "twitter", "linkedin", "facebook", "instagram", "mastodon"]],
        ],
    },
    Doing {
        name: "pay",
        what: "moving money",
        words: &[&[&[
            "pay",
            "payment",
            "payments",
            "charge",
            "charges",
            "refund",
            "refunds",
            "transfer",
            "invoice",
            "invoices",
            "purchase",
            "buy",
            "checkout",
            "payout",
            "payouts",
            "wire",
            "withdraw",
            "withdrawal",
            "billing",
            "financial",
            "remit",
        ]]],
    },
    Doing { name: "deploy", what: "bringing software into use", words: &[&[&["deploy", "deploys", "deployment", "rollout", "release"]]] },
    Doing { name: "configure", what: "changing settings", words: &[&[&["config", "configs", "configure", "configuration", "setting", "settings"]]] },
    Doing {
        name: "fetch",
        what: "getting something from the net",
        words: &[&[&["fetch", "browse", "scrape", "crawl", "http", "https", "url", "web", "webpage", "curl", "wget"]]],
    },
    Doing {
        name: "call",
        what: "calling a tool or an interface of another program",
        words: &[&[&["api", "apis", "webhook", "endpoint", "rest", "graphql"]], &[&["tool"], &["call"]], &[&["net"], &["fetch"]]],
    },
    Doing { name: "run", what: "running a program", words: &[&[&["execute", "exec", "shell", "bash", "command", "process", "script", "terminal"]]] },
    Doing { name: "install", what: "bringing in software", words: &[&[&["install", "installs", "package", "packages"]]] },
    Doing { name: "collect", what: "collecting data", words: &[&[&["collect", "collects", "collection", "gather", "harvest"]]] },
    Doing {
        name: "export",
        what: "bringing data out",
        words: &[&[&["export", "exports", "disclose", "disclosure", "exfiltrate", "sell", "sale"]], &[&["share"], &["data", "personal"]]],
    },
    Doing {
        name: "erase_person",
        what: "a person's request to be erased",
        words: &[&[DELETING, &["request", "requests", "gdpr", "ccpa", "subject"]], &[&["forget", "forgotten"]]],
    },
    Doing {
        name: "grant",
        what: "changing who may do what",
        words: &[
            &[&["grant", "grants", "revoke", "permission", "permissions", "role", "roles", "acl", "privilege", "privileges", "sudo"]],
            &[&["user", "users", "account", "accounts"], WRITING],
            &[&["user", "users", "account", "accounts"], DELETING],
        ],
    },
    Doing { name: "sign_in", what: "signing in", words: &[&[&["login", "logon", "signin", "authenticate", "authentication", "auth"]], &[&["sign"], &["in"]]] },
];

/// The words that an act is told with. `None` if there are too many.
pub(super) fn words_of(act: &Act) -> Option<BTreeSet<String>> {
    let mut told = BTreeSet::new();
    for text in [&act.kind, &act.tool, &act.action] {
        told.extend(words(text));
    }
    // A line of commands does several things, each with a verb of its own.
    let acts = act.arguments.get("acts").and_then(Value::as_array).into_iter().flatten();
    for verb in acts.filter_map(|one| one.get("verb")).filter_map(Value::as_str) {
        told.extend(words(verb));
        if told.len() > WORDS_MAX {
            return None;
        }
    }
    Some(told)
}

impl Doing {
    /// The one with a name.
    pub(in crate::policy) fn named(name: &str) -> Option<&'static Self> {
        DOINGS.iter().find(|doing| doing.name == name)
    }

    pub(super) fn is_told_by(&self, told: &BTreeSet<String>) -> bool {
        self.words.iter().any(|all| all.iter().all(|any| any.iter().any(|word| told.contains(*word))))
    }
}
