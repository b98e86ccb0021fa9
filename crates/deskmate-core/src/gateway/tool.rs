//! The tools of mounts, as people know them. What a server offered when it was first seen is trusted; whatever differs later
//! is not served until a person has seen the difference.

use std::collections::{BTreeMap, BTreeSet};

use deskmate_db::{Row, Tx, args};
use serde_json::{Map, Value, json};

use crate::call::Cx;
use crate::limits::{MOUNT_TOOLS_MAX, TOOL_BYTES_MAX};
use crate::record::{Event, Kind};
use crate::{Code, Error, Result, canonical_value, digest, hex};

pub(super) const MET: Kind =
    Kind { name: "mount.met", says: "A mount was looked at for the first time: what it offered then is known, and what comes later waits for a person." };
pub(super) const PINNED: Kind =
    Kind { name: "tool.pinned", says: "A tool of a mount was seen for the first time together with its mount, and is known from now on." };
pub(super) const OFFERED: Kind =
    Kind { name: "tool.offered", says: "A mount offers a tool that is new or not any more what it was; it is not served until a person has seen it." };
pub(super) const SETTLED: Kind = Kind { name: "tool.settled", says: "A mount offers a tool again as it is known." };
pub(super) const GONE: Kind = Kind { name: "tool.gone", says: "A mount does not offer a tool any more." };
pub(super) const FORGOTTEN: Kind = Kind { name: "mount.forgotten", says: "What a mount offered was forgotten, because it was taken away." };
pub(super) const ACCEPTED: Kind = Kind { name: "tool.accepted", says: "A person has seen a tool that is new or has changed, and lets it be served." };

/// How a tool stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolState {
    /// It is what people know.
    Known,
    /// The server says something else of it now.
    Changed,
    /// It came after the mount was seen first.
    New,
    /// The server does not offer it any more.
    Gone,
}

impl ToolState {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Changed => "changed",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }

    fn from_name(name: &str) -> Result<Self> {
        let all = [Self::Known, Self::Changed, Self::New, Self::Gone];
        all.into_iter().find(|state| state.name() == name).ok_or_else(|| Error::new(Code::Internal, format!("{name} is no state of a tool")))
    }
}

/// A stored tool.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    pub(super) mount: String,
    pub(super) name: String,
    pub(super) state: ToolState,
    pub(super) digest: Vec<u8>,
    pub(super) definition: Value,
    pub(super) offered: Option<Value>,
    pub(super) offered_digest: Option<Vec<u8>>,
    pub(super) looks_like: Option<String>,
    pub(super) changed_at: i64,
    pub(super) accepted_by: Option<String>,
}

impl Tool {
    fn read(row: &Row) -> Result<Self> {
        let json = |text: String| serde_json::from_str(&text).map_err(|_| Error::new(Code::Internal, "a tool's definition is unreadable"));
        Ok(Self {
            mount: row.get(0)?,
            name: row.get(1)?,
            state: ToolState::from_name(&row.get::<String>(2)?)?,
            digest: row.get(3)?,
            definition: json(row.get(4)?)?,
            offered_digest: row.get(5)?,
            offered: row.get::<Option<String>>(6)?.map(json).transpose()?,
            looks_like: row.get(7)?,
            changed_at: row.get(8)?,
            accepted_by: row.get(9)?,
        })
    }

    fn subject(&self) -> String {
        format!("tool:{}/{}", self.mount, self.name)
    }
}

/// A query for [`Tool`]s.
macro_rules! select_tool {
    ($rest:literal) => {
        concat!("select mount, tool, state, digest, definition, offered_digest, offered, looks_like, changed_at, accepted_by from mount_tool ", $rest)
    };
}

/// The tools of a mount, by name.
pub(super) fn of_mount(tx: &mut Tx<'_>, mount: &str) -> Result<Vec<Tool>> {
    let rows = tx.query(select_tool!("where mount = $1 order by tool"), args![mount])?;
    rows.iter().map(Tool::read).collect()
}

/// One tool.
pub(super) fn load(tx: &mut Tx<'_>, mount: &str, tool: &str) -> Result<Option<Tool>> {
    tx.optional(select_tool!("where mount = $1 and tool = $2"), args![mount, tool])?.map(|row| Tool::read(&row)).transpose()
}

/// What of a tool's definition people know it by. What may differ with every answer is left out.
const KEPT: &[&str] = &["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

pub(super) fn kept(definition: &Value) -> Result<(String, Value, [u8; 32])> {
    let wrong = |says: String| Error::invalid("tools", says);
    let fields = definition.as_object().ok_or_else(|| wrong("a tool is no object".to_owned()))?;
    let name = fields.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.is_empty() || name.len() > 128 || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)) {
        return Err(wrong(format!("{name:?} is no name of a tool")));
    }
    if !fields.get("inputSchema").is_some_and(Value::is_object) {
        return Err(wrong(format!("the tool {name} has no schema of its input")));
    }
    let kept: Map<String, Value> =
        fields.iter().filter(|(field, _)| KEPT.contains(&field.as_str())).map(|(field, value)| (field.clone(), value.clone())).collect();
    let kept = Value::Object(kept);
    if canonical_value("tools", &kept)?.len() > TOOL_BYTES_MAX {
        return Err(wrong(format!("the definition of the tool {name} is longer than {TOOL_BYTES_MAX} bytes")));
    }
    let digest = digest(&kept)?;
    Ok((name, kept, digest))
}

/// What came of looking at a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Tools that are served.
    pub known: usize,
    /// Tools that wait for a person: new or changed.
    pub waiting: Vec<String>,
    /// Tools that are not offered any more.
    pub gone: Vec<String>,
    /// Tools that are left out, because the server describes them wrongly, each with the reason.
    pub refused: Vec<String>,
}

/// Takes in what a mount offers now. Those of a mount that was never seen before are known from now on.
pub fn seen(cx: &mut Cx<'_, '_>, mount: &str, offered: &[Value]) -> Result<Seen> {
    if offered.len() > MOUNT_TOOLS_MAX {
        return Err(Error::invalid("tools", format!("{mount} offers {} tools; at most {MOUNT_TOOLS_MAX} are served", offered.len())));
    }
    let before: BTreeMap<String, Tool> = of_mount(cx.tx, mount)?.into_iter().map(|tool| (tool.name.clone(), tool)).collect();
    let first = meet(cx, mount)? && before.is_empty();
    let others = names_elsewhere(cx, mount)?;
    let mut found = Seen::default();
    let mut names = BTreeSet::new();
    for definition in offered {
        let (name, kept, digest) = match kept(definition) {
            Ok(kept) => kept,
            Err(error) => {
                found.refused.push(error.message);
                continue;
            }
        };
        if !names.insert(name.clone()) {
            found.refused.push(format!("the tool {name} is offered twice"));
            continue;
        }
        let state = match before.get(&name) {
            None => add(cx, mount, &name, &kept, &digest, first, look_alike(&name, &others))?,
            Some(known) => compare(cx, known, &kept, &digest)?,
        };
        match state {
            ToolState::Known => found.known += 1,
            _ => found.waiting.push(name),
        }
    }
    for tool in before.into_values().filter(|tool| !names.contains(&tool.name)) {
        match tool.state {
            ToolState::Gone => {}
            // Nobody has accepted it: if it comes again, it is as new as it was.
            ToolState::New => {
                cx.tx.execute("delete from mount_tool where mount = $1 and tool = $2", args![tool.mount, tool.name])?;
                cx.emit(about(GONE, &tool, &tool.digest))?;
            }
            ToolState::Known | ToolState::Changed => {
                set_state(cx, &tool, ToolState::Gone, None)?;
                cx.emit(about(GONE, &tool, &tool.digest))?;
            }
        }
        found.gone.push(tool.name);
    }
    Ok(found)
}

/// Notes that a mount was looked at, also where it offered nothing then. `false`: it was before.
fn meet(cx: &mut Cx<'_, '_>, mount: &str) -> Result<bool> {
    let now = cx.now();
    let is_new = cx.tx.execute("insert into mount_met (mount, met_at) values ($1, $2) on conflict do nothing", args![mount, now])? == 1;
    if is_new {
        cx.emit(Event::new(MET, format!("mount:{mount}")).fact("mount", mount))?;
    }
    Ok(is_new)
}

fn add(cx: &mut Cx<'_, '_>, mount: &str, name: &str, definition: &Value, digest: &[u8; 32], first: bool, looks_like: Option<String>) -> Result<ToolState> {
    let (state, now) = (if first { ToolState::Known } else { ToolState::New }, cx.now());
    let text = definition.to_string();
    // What nobody has seen is offered only, and known when somebody has.
    let (offered, offered_digest) = if first { (None, None) } else { (Some(text.as_str()), Some(digest.as_slice())) };
    cx.tx.execute(
        "insert into mount_tool (mount, tool, state, digest, definition, offered_digest, offered, looks_like, seen_at, changed_at) \
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
        args![mount, name, state.name(), digest.as_slice(), text, offered_digest, offered, looks_like, now],
    )?;
    let mut event = Event::new(if first { PINNED } else { OFFERED }, format!("tool:{mount}/{name}"))
        .fact("mount", mount)
        .fact("tool", name)
        .fact("digest", hex(digest))
        .fact("state", state.name());
    if let Some(other) = &looks_like {
        event = event.fact("looks_like", other.as_str());
    }
    cx.emit(event.payload(json!({ "definition": definition })))?;
    Ok(state)
}

fn compare(cx: &mut Cx<'_, '_>, known: &Tool, definition: &Value, digest: &[u8; 32]) -> Result<ToolState> {
    let same = known.digest == digest;
    // A tool that nobody has accepted yet is new for as long, whatever it says of itself.
    let state = match known.state {
        ToolState::New => ToolState::New,
        _ if same => ToolState::Known,
        _ => ToolState::Changed,
    };
    let offered = (state != ToolState::Known).then_some((definition, digest));
    let unchanged = known.state == state && known.offered_digest.as_deref() == offered.map(|(_, digest)| digest.as_slice());
    if unchanged {
        return Ok(state);
    }
    set_state(cx, known, state, offered)?;
    let kind = if state == ToolState::Known { SETTLED } else { OFFERED };
    cx.emit(about(kind, known, digest).fact("state", state.name()).payload(json!({ "definition": definition })))?;
    Ok(state)
}

fn about(kind: Kind, tool: &Tool, digest: &[u8]) -> Event {
    Event::new(kind, tool.subject()).fact("mount", tool.mount.as_str()).fact("tool", tool.name.as_str()).fact("digest", hex(digest))
}

fn set_state(cx: &mut Cx<'_, '_>, tool: &Tool, state: ToolState, offered: Option<(&Value, &[u8; 32])>) -> Result<()> {
    let now = cx.now();
    cx.tx.execute(
        "update mount_tool set state = $3, offered_digest = $4, offered = $5, changed_at = $6 where mount = $1 and tool = $2",
        args![tool.mount, tool.name, state.name(), offered.map(|(_, digest)| digest.to_vec()), offered.map(|(definition, _)| definition.to_string()), now],
    )?;
    Ok(())
}

/// A person has seen what is offered: it is known from now on. `seen` is the digest of what was shown.
pub(super) fn accept(cx: &mut Cx<'_, '_>, mount: &str, name: &str, shown: &str) -> Result<Tool> {
    let tool = load(cx.tx, mount, name)?.ok_or_else(|| Error::not_found(format!("{mount} has no tool {name}")))?;
    let (Some(offered), Some(digest)) = (&tool.offered, &tool.offered_digest) else {
        return Err(Error::conflict(format!("{name} is as it is known; there is nothing to accept")));
    };
    if hex(digest) != shown {
        return Err(Error::conflict("the tool has changed again since it was shown").hint("look at it again"));
    }
    let (by, now) = (cx.actor.id.clone(), cx.now());
    cx.tx.execute(
        "update mount_tool set state = 'known', digest = $3, definition = $4, offered_digest = null, offered = null, accepted_by = $5, changed_at = $6 \
         where mount = $1 and tool = $2",
        args![mount, name, digest.as_slice(), offered.to_string(), by, now],
    )?;
    cx.emit(about(ACCEPTED, &tool, digest).fact("was", hex(&tool.digest)))?;
    load(cx.tx, mount, name)?.ok_or_else(|| Error::new(Code::Internal, "a tool vanished while it was accepted"))
}

/// Forgets the tools of a mount that was taken away: if one of that name comes again, it is a new one.
pub(crate) fn forget(cx: &mut Cx<'_, '_>, mount: &str) -> Result<()> {
    let tools = cx.tx.execute("delete from mount_tool where mount = $1", args![mount])?;
    if cx.tx.execute("delete from mount_met where mount = $1", args![mount])? + tools == 0 {
        return Ok(());
    }
    cx.emit(Event::new(FORGOTTEN, format!("mount:{mount}")).fact("mount", mount).fact("tools", tools))
}

fn names_elsewhere(cx: &mut Cx<'_, '_>, mount: &str) -> Result<Vec<(String, String)>> {
    let rows = cx.tx.query("select mount, tool from mount_tool where mount <> $1 and state <> 'gone' order by mount, tool", args![mount])?;
    rows.iter().map(|row| Ok((row.get(0)?, row.get(1)?))).collect()
}

/// A tool of another mount that this one could be taken for.
fn look_alike(name: &str, others: &[(String, String)]) -> Option<String> {
    let own = skeleton(name);
    let near = |other: &str| {
        let other = skeleton(other);
        own == other || (own.len().min(other.len()) >= 6 && distance(&own, &other) <= 1)
    };
    others.iter().find(|(_, other)| near(other)).map(|(mount, other)| format!("{mount}/{other}"))
}

/// A name as it looks at a glance.
fn skeleton(name: &str) -> Vec<u8> {
    let alike = |byte: u8| match byte.to_ascii_lowercase() {
        b'0' => b'o',
        b'1' | b'i' => b'l',
        b'5' => b's',
        other => other,
    };
    name.bytes().filter(u8::is_ascii_alphanumeric).map(alike).collect()
}

/// How many letters differ, are missing or too many.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, left) in one.iter().enumerate() {
        // The row above, shifted by one, is what stands diagonally before each place.
        let mut next = vec![i + 1];
        for ((right, diagonal), above) in other.iter().zip(&row).zip(row.iter().skip(1)) {
            let before = next.last().copied().unwrap_or(0);
            next.push((diagonal + usize::from(left != right)).min(above + 1).min(before + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_found() {
        let others = vec![("mail".to_owned(), "send_email".to_owned()), ("crm".to_owned(), "list".to_owned())];
        for name in ["send_email", "sendEmail", "send-emai1", "send_emails", "s3nd_email"] {
            assert_eq!(look_alike(name, &others).as_deref(), Some("mail/send_email"), "{name}");
        }
        for name in ["send_invoice", "lost", "email"] {
            assert_eq!(look_alike(name, &others), None, "{name}");
        }
        assert_eq!(distance(b"kitten", b"sitting"), 3);
    }

    #[test]
    fn what_may_differ_with_every_answer_is_not_what_a_tool_is_known_by() {
        let tool = json!({ "name": "x", "description": "d", "inputSchema": { "type": "object" }, "_meta": { "n": 1 } });
        let other = json!({ "name": "x", "description": "d", "inputSchema": { "type": "object" }, "_meta": { "n": 2 } });
        assert_eq!(kept(&tool).unwrap().2, kept(&other).unwrap().2);
        let reworded = json!({ "name": "x", "description": "D", "inputSchema": { "type": "object" } });
        assert_ne!(kept(&tool).unwrap().2, kept(&reworded).unwrap().2);
        assert!(kept(&json!({ "name": "x y", "inputSchema": {} })).is_err());
        assert!(kept(&json!({ "name": "x" })).is_err());
    }
}
