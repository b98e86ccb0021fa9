//! The inbox on the terminal: full screen with keys, or one command at a time for scripts.
//!
//! - `screen`: what the screen shows and what a key does to it; knows neither terminal nor server.
//! - `draw`: how it looks. `live`: the loop that joins both with the terminal and the server.
//! - `plain`: the commands. `plan`: the steps of a plan that is decided about.

mod bell;
mod draw;
mod live;
mod plain;
mod plan;
mod screen;
mod text;

use std::io::IsTerminal;

use clap::{Args, Subcommand, ValueEnum};

use super::{Failure, Global};

/// How many requests are asked for at once where many are looked through, and how often at most.
const PAGE: u32 = 200;
const PAGES_MAX: u32 = 50;

#[derive(Args)]
pub(super) struct InboxArgs {
    #[command(flatten)]
    filter: Filter,
    /// Stay, and ring the terminal's bell for whatever comes in
    #[arg(long)]
    watch: bool,
    #[command(subcommand)]
    command: Option<InboxCommand>,
}

/// Which requests are listed.
#[derive(Args, Clone, Default)]
struct Filter {
    /// Which ones
    #[arg(long, value_enum, default_value = "inbox")]
    view: View,
    /// Only this domain
    #[arg(long)]
    domain: Option<String>,
    /// Only requests of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only what was given to you
    #[arg(long)]
    mine: bool,
    /// Only titles with this text in them
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// How many; 50 if not given
    #[arg(long)]
    limit: Option<u32>,
    /// Where the previous page ended
    #[arg(long)]
    cursor: Option<String>,
}

/// The views of the inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum View {
    /// What waits for people now
    #[default]
    Inbox,
    /// What waits for an answer of its requester
    Asked,
    /// What was put off
    Snoozed,
    /// Everything that is pending
    Pending,
    /// Everything, newest first
    All,
}

impl View {
    fn name(self) -> &'static str {
        match self {
            Self::Inbox => "inbox",
            Self::Asked => "asked",
            Self::Snoozed => "snoozed",
            Self::Pending => "pending",
            Self::All => "all",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Inbox => Self::Asked,
            Self::Asked => Self::Snoozed,
            Self::Snoozed => Self::Pending,
            Self::Pending => Self::All,
            Self::All => Self::Inbox,
        }
    }
}

impl Filter {
    fn input(&self) -> serde_json::Value {
        let all = serde_json::json!({
            "view": self.view.name(), "domain": self.domain, "requester": self.agent, "mine": self.mine, "search": self.search,
            "limit": self.limit, "cursor": self.cursor,
        });
        let serde_json::Value::Object(fields) = all else { return all };
        fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
    }
}

#[derive(Subcommand)]
enum InboxCommand {
    /// List what waits for people
    List,
    /// Show everything about one request
    Show {
        /// The request's id, or its last characters as the list shows them
        request: String,
    },
    /// Approve a request: its agent may then do exactly that, once
    Approve {
        /// The request's id, or its last characters
        request: String,
        /// A word to the agent
        #[arg(long)]
        reason: Option<String>,
        /// Other arguments in place of all those that were proposed, as JSON
        #[arg(long, value_name = "JSON")]
        edits: Option<String>,
        /// The digest of what you saw; without it, what is shown now is approved
        #[arg(long)]
        digest: Option<String>,
        /// Also let acts like it pass for a while, or draft a rule for them
        #[arg(long, value_enum)]
        remember: Option<Remember>,
        /// How long `--remember session` holds, in hours
        #[arg(long, requires = "remember")]
        hours: Option<u32>,
    },
    /// Reject a request, with a reason that its agent learns from
    Reject {
        /// The request's id, or its last characters
        request: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
        /// What was wrong
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// How bad it was: low, medium, high or critical
        #[arg(long)]
        severity: Option<String>,
        /// The digest of what you saw; if it was changed meanwhile, nothing is done
        #[arg(long)]
        digest: Option<String>,
    },
    /// Ask the agent something before you decide, or take your question back
    Ask {
        /// The request's id, or its last characters
        request: String,
        /// What you want to know; without it the request waits for no answer any more
        question: Option<String>,
        /// The digest of what you saw; if it was changed meanwhile, nothing is done
        #[arg(long)]
        digest: Option<String>,
    },
    /// Give a request to another person, or take it back from them
    Delegate {
        /// The request's id, or its last characters
        request: String,
        /// The person's name; without it, the request is nobody's in particular any more
        to: Option<String>,
        /// A word to them
        #[arg(long)]
        note: Option<String>,
        /// The digest of what you saw; if it was changed meanwhile, nothing is done
        #[arg(long)]
        digest: Option<String>,
    },
    /// Put a request off
    Snooze {
        /// The request's id, or its last characters
        request: String,
        /// For how long, for example 2h, or until when, for example 2026-11-15T09:30:00Z; without it, it is taken up again
        until: Option<String>,
    },
    /// Take an approval back while nobody has used it
    Undo {
        /// The request's id, or its last characters
        request: String,
        /// Why
        #[arg(long)]
        reason: Option<String>,
    },
}

/// How an approval is remembered.
#[derive(Clone, Copy, ValueEnum)]
enum Remember {
    /// Acts like it pass for some hours
    Session,
    /// A rule is drafted and shown; it is not in force until you apply it
    Rule,
}

pub(super) fn run(global: &Global, args: InboxArgs) -> Result<(), Failure> {
    match args.command {
        Some(command) => plain::run(global, &args.filter, command),
        None if !global.json && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() => live::run(global, args.filter, args.watch),
        None if args.watch => plain::watch(global, &args.filter),
        None => plain::run(global, &args.filter, InboxCommand::List),
    }
}
