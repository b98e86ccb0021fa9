//! Looking at what is in force, and at what was.

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::draft::to_document;
use super::super::store::sha256;
use super::super::{DEFAULT_POLICY, Mapping, Policy, PolicyMode, Rulebook, current};
use crate::call::{Cx, Page, PageIn};
use crate::hook::{self, HOOK_POLICY};
use crate::{Code, Error, Result, canonical, format_time, hex};

/// List the policies in force, in the order of their names.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// How many; at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of the policies in force.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Policies {
    /// The policies.
    policies: Vec<PolicyOut>,
    /// What is built in and holds until a policy with its name takes its place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    built_in: Vec<BuiltInOut>,
    /// How many mappings are in force. Without any, the built-in policy `default` holds for everybody.
    mappings: usize,
    /// What happens to an agent and domain that no mapping names, once there is any.
    policy_mode: PolicyMode,
    /// The digest of everything in force.
    rulebook: String,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct PolicyOut {
    /// The name.
    policy: String,
    /// The version in force.
    version: i64,
    /// What it is for.
    description: String,
    /// How many rules it has.
    rules: usize,
    /// How many mappings name it.
    mappings: usize,
    /// Who accepted it: a person's id, or `desk` when it only tightened.
    accepted_by: String,
    /// When.
    accepted_at: String,
}

/// A policy that is built in.
#[derive(Serialize, JsonSchema)]
struct BuiltInOut {
    /// The name.
    policy: String,
    /// Always 0.
    version: i64,
    /// What it is for.
    description: String,
    /// How many rules it has.
    rules: usize,
    /// How many mappings name it.
    mappings: usize,
}

/// The policies that are built in and that no policy in force takes the place of.
fn built_in(rulebook: &Rulebook) -> Result<Vec<Policy>> {
    let default = Policy {
        id: DEFAULT_POLICY.to_owned(),
        description:
            "Holds for everybody while there is no mapping, and for what no mapping names where policy_mode is permissive. It has no rules of its own."
                .to_owned(),
        ..Policy::default()
    };
    let hooks = hook::starter().map_err(|why| Error::new(Code::Internal, format!("the policy {HOOK_POLICY} is unreadable: {why}")))?.clone();
    Ok([default, hooks].into_iter().filter(|policy| !rulebook.parts().policies.contains_key(&policy.id)).collect())
}

fn mapped<'a>(rulebook: &'a Rulebook, name: &'a str) -> impl Iterator<Item = &'a Mapping> {
    rulebook.parts().mappings.iter().filter(move |mapping| mapping.policy == name)
}

pub(crate) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<Policies> {
    let rulebook = current(cx)?;
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let after = page.after.as_ref().map_or("", |(_, name)| name.as_str());
    let rows = cx.tx.query(
        "select name, version, accepted_by, accepted_at from policy where state = 'in_force' and name > $1 order by name limit $2",
        args![after, page.look_ahead()],
    )?;
    let mut policies = Vec::with_capacity(rows.len());
    for row in rows {
        let name: String = row.get(0)?;
        let policy = rulebook.parts().policies.get(&name);
        policies.push(PolicyOut {
            version: row.get(1)?,
            description: policy.map(|policy| policy.description.clone()).unwrap_or_default(),
            rules: policy.map_or(0, |policy| policy.rules.len()),
            mappings: mapped(&rulebook, &name).count(),
            accepted_by: row.get(2)?,
            accepted_at: format_time(row.get(3)?),
            policy: name,
        });
    }
    let mut built = Vec::new();
    for policy in if page.after.is_none() { built_in(&rulebook)? } else { Vec::new() } {
        let (rules, mappings) = (policy.rules.len(), mapped(&rulebook, &policy.id).count());
        built.push(BuiltInOut { policy: policy.id, version: 0, description: policy.description, rules, mappings });
    }
    let page = Page::cut(policies, &page, |policy| (0, policy.policy.clone()));
    Ok(Policies {
        policies: page.items,
        built_in: built,
        mappings: rulebook.parts().mappings.len(),
        policy_mode: rulebook.parts().mode,
        rulebook: rulebook.digest().to_owned(),
        next_cursor: page.next_cursor,
    })
}

/// Show a policy, in force or as it was, with the mappings that name it and its versions; without a name, everything in
/// force as one document.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Get {
    /// The policy's name.
    policy: Option<String>,
    /// Which version; the one in force if not given.
    version: Option<i64>,
}

impl Get {
    /// One policy, as it is in force.
    pub(crate) fn named(policy: String) -> Self {
        Self { policy: Some(policy), version: None }
    }
}

/// A policy, or everything in force.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PolicyWhole {
    /// The policy's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// The version shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<i64>,
    /// `in_force` or `past`; `built_in` for what no policy in force takes the place of, with version 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// The policy as a document's entry, or the whole document.
    body: Value,
    /// The SHA-256 of a policy's canonical JSON, or of everything in force.
    digest: String,
    /// Mappings in force that name the policy.
    mappings: Vec<Mapping>,
    /// The newest versions, at most 50.
    versions: Vec<VersionOut>,
}

#[derive(Serialize, JsonSchema)]
struct VersionOut {
    /// The version.
    version: i64,
    /// `in_force` or `past`.
    state: String,
    /// Who accepted it.
    accepted_by: String,
    /// When.
    accepted_at: String,
}

pub(crate) fn get(cx: &mut Cx<'_, '_>, input: Get) -> Result<PolicyWhole> {
    let rulebook = current(cx)?;
    let Some(name) = input.policy else {
        if input.version.is_some() {
            return Err(Error::invalid("version", "needs the name of a policy"));
        }
        let (body, digest) = (to_document(rulebook.parts())?, rulebook.digest().to_owned());
        return Ok(PolicyWhole { policy: None, version: None, state: None, body, digest, mappings: Vec::new(), versions: Vec::new() });
    };
    let rows = cx.tx.query("select version, state, accepted_by, accepted_at from policy where name = $1 order by version desc limit 50", args![name])?;
    let mut versions = Vec::with_capacity(rows.len());
    for row in rows {
        versions.push(VersionOut { version: row.get(0)?, state: row.get(1)?, accepted_by: row.get(2)?, accepted_at: format_time(row.get(3)?) });
    }
    let mappings: Vec<Mapping> = mapped(&rulebook, &name).cloned().collect();
    if input.version.is_none_or(|version| version == 0)
        && let Some(policy) = built_in(&rulebook)?.into_iter().find(|policy| policy.id == name)
    {
        let text = canonical("policy", &policy)?;
        let (state, digest) = (Some("built_in".to_owned()), hex(&sha256(&text)));
        return Ok(PolicyWhole { policy: Some(name), version: Some(0), state, body: json!(policy), digest, mappings, versions });
    }
    let in_force = versions.iter().find(|one| one.state == "in_force").map(|one| one.version);
    let version = input.version.or(in_force).or(versions.first().map(|one| one.version));
    let absent = || Error::not_found(format!("there is no policy {name}")).hint("`deskmate policy list` shows those in force");
    let version = version.ok_or_else(absent)?;
    let row = cx.tx.optional("select body, digest, state from policy where name = $1 and version = $2", args![name, version])?.ok_or_else(absent)?;
    let (body, digest): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
    let body = serde_json::from_str(&body).map_err(|error| Error::new(Code::Internal, format!("a stored policy is unreadable: {error}")))?;
    Ok(PolicyWhole { policy: Some(name), version: Some(version), state: Some(row.get(2)?), body, digest: hex(&digest), mappings, versions })
}
