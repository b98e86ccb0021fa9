//! Who acts, how that was shown, and who may do what.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::op::Effect;

/// The kinds of actors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    /// Somebody.
    Person,
    /// A program that works for somebody.
    Agent,
    /// The desk itself.
    System,
}

impl ActorKind {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Agent => "agent",
            Self::System => "system",
        }
    }

    /// The kind of a stored name; what is not known is treated as an agent, which may the least.
    pub fn from_name(name: &str) -> Self {
        match name {
            "person" => Self::Person,
            "system" => Self::System,
            _ => Self::Agent,
        }
    }
}

/// What a person may do. Later ones include earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks.
    Viewer,
    /// Works with agents: messages, tasks.
    Member,
    /// Decides, in the domains that are named.
    Approver,
    /// Configures.
    Owner,
}

impl Role {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Approver => "approver",
            Self::Owner => "owner",
        }
    }

    /// The role of a stored name; what is not known may only look.
    pub fn from_name(name: &str) -> Self {
        match name {
            "owner" => Self::Owner,
            "approver" => Self::Approver,
            "member" => Self::Member,
            _ => Self::Viewer,
        }
    }
}

/// Whether a person has just shown that they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The presence factor was given for this session and the call carries what proves the session.
    Shown,
    /// Only something that could lie on a disk was given.
    NotShown,
    /// A link came that was sent to the person for one request. It stands for presence nowhere but there.
    Linked,
    /// A session's secret came without what proves the session: a cookie alone, which only reads.
    Unproved,
}

/// Who acts. Made from a credential, never from an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The kind.
    pub kind: ActorKind,
    /// The id: an agent's name, a person's id, or `desk`.
    pub id: String,
    /// Whether a credential proved it. In open mode an agent only says who it is.
    pub verified: bool,
    /// A person's role.
    pub role: Option<Role>,
    /// Whether a person is there now.
    pub presence: Presence,
    /// When the person last gave the passphrase, while that counts.
    pub presence_since: Option<i64>,
    /// What a personal token may call; `None` is everything that the role allows.
    pub scopes: Option<Vec<String>>,
    /// The id of the credential.
    pub credential: Option<String>,
    /// The run of an agent from within which it acts.
    pub run: Option<String>,
}

/// What stands in the place of a credential's id where the local socket is all there is.
const LOCAL: &str = "local socket";

impl Actor {
    /// The desk itself.
    pub fn system() -> Self {
        Self {
            kind: ActorKind::System,
            id: "desk".to_owned(),
            verified: true,
            role: None,
            presence: Presence::NotShown,
            presence_since: None,
            scopes: None,
            credential: None,
            run: None,
        }
    }

    /// Somebody who is known by the server's own local socket only.
    pub(crate) fn local() -> Self {
        Self { credential: Some(LOCAL.to_owned()), ..Self::system() }
    }

    /// Whether the call came over the server's own local socket, from its own account.
    pub(crate) fn is_local(&self) -> bool {
        self.is_system() && self.credential.as_deref() == Some(LOCAL)
    }

    /// An agent.
    pub fn agent(id: impl Into<String>, verified: bool) -> Self {
        Self { kind: ActorKind::Agent, id: id.into(), verified, ..Self::system() }
    }

    /// A person whose passphrase or link was just checked.
    pub fn person(id: impl Into<String>) -> Self {
        Self { kind: ActorKind::Person, presence: Presence::Shown, ..Self::agent(id, true) }
    }

    /// Whether this is a person.
    pub fn is_person(&self) -> bool {
        self.kind == ActorKind::Person
    }

    /// Whether this is an agent.
    pub fn is_agent(&self) -> bool {
        self.kind == ActorKind::Agent
    }

    /// Whether this is the desk itself.
    pub fn is_system(&self) -> bool {
        self.kind == ActorKind::System
    }
}

/// Over which surface a call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// An MCP client.
    Mcp,
    /// REST.
    Rest,
    /// The command line.
    Cli,
    /// A page.
    Web,
    /// The bridge file that people write with `sqlite3`.
    File,
    /// The desk's own followers and workers.
    System,
}

impl Surface {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Rest => "rest",
            Self::Cli => "cli",
            Self::Web => "web",
            Self::File => "file",
            Self::System => "system",
        }
    }
}

/// What a person's browser signed: the method, the path, the digest of the body and the time of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// The signed text.
    pub text: String,
    /// The signature, base64.
    pub signature: String,
    /// The public key, base64. Its digest is among the facts of the session's credential.
    pub key: String,
}

/// What a caller brought to show who it is.
#[derive(Clone)]
pub enum Credential {
    /// A token or session secret, as received.
    Secret {
        /// The secret's text.
        secret: String,
        /// Whether the request carried what proves the session beyond its secret: a signature of the browser's key,
        /// or the channel over which the person has just signed in.
        proved: bool,
    },
    /// A session's secret with a signature of the browser that signed in, which the desk has checked. The record keeps it.
    Signed {
        /// The secret's text.
        secret: String,
        /// What was signed, and how.
        signed: Signed,
    },
    /// The id of a credential whose holder put work into the queue; never built from anything that came from outside.
    Kept(String),
    /// The id of a run that is under way; never built from anything that came from outside.
    Run(String),
    /// Nothing but a name. Good only in open mode, and only from this machine.
    Named(Option<String>),
    /// Nothing but the server's own local socket, opened by the account that the server runs under.
    Local,
    /// Nothing at all: enough for operations that bring their own proof, such as signing in.
    Nobody,
    /// The desk itself; never built from anything that came from outside.
    System,
}

/// Who may call an operation. This is the authorisation row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Whoever brings what the input asks for, such as a passphrase or a link's code.
    Public,
    /// Whoever can open the server's own local socket. No argument and no header stands for it.
    Local,
    /// Agents, people from member on, and the desk itself.
    Anyone,
    /// People from this role on; a session or a personal token is enough.
    Person(Role),
    /// People from this role on who show that they are there. Deciding and configuring.
    Present(Role),
    /// People from this role on who decide: they show that they are there, or their personal token is one that policy
    /// names. Whether it does depends on the domain, so the operation looks itself.
    Decides(Role),
    /// Only the desk itself.
    System,
}

impl Access {
    /// Whether a person of this role may call at all what has this effect; some calls also need them to show that they
    /// are there.
    pub fn is_for(self, role: Role, effect: Effect) -> bool {
        match self {
            Self::Public => true,
            Self::Local | Self::System => false,
            Self::Anyone => effect == Effect::Read || role >= Role::Member,
            Self::Person(least) | Self::Present(least) | Self::Decides(least) => role >= least,
        }
    }

    /// The row as the reference shows it.
    pub fn describe(self) -> String {
        match self {
            Self::Public => "whoever brings what the input asks for".to_owned(),
            Self::Local => "whoever can open the server's local socket".to_owned(),
            Self::Anyone => "agents and people".to_owned(),
            Self::Person(role) => format!("people ({} or more)", role.name()),
            Self::Present(role) => format!("people ({} or more) who show their presence", role.name()),
            Self::Decides(role) => {
                format!("people ({} or more) who show their presence, and personal tokens that policy names; over MCP only those tokens", role.name())
            }
            Self::System => "the desk itself".to_owned(),
        }
    }
}
