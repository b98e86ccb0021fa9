//! The kinds of jobs by their numbers, and how their parameters, which are texts, become the input of an operation.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::call::{Op, Registry};
use crate::limits::FILE_READ_BYTES_MAX;
use crate::{Error, Result};

/// A kind of job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its number.
    pub number: i32,
    /// Its name.
    pub name: &'static str,
    /// The operation that does it.
    pub operation: &'static str,
    /// Its usual parameters.
    pub params: &'static [&'static str],
    /// Whether a person approves what it changes.
    pub requires_approval: bool,
}

const fn kind(number: i32, name: &'static str, operation: &'static str, params: &'static [&'static str], requires_approval: bool) -> Kind {
    Kind { number, name, operation, params, requires_approval }
}

/// The kind that does an approved plan.
pub(super) const EXECUTE_PLAN: i32 = 5;

/// All kinds. Whether one can be done depends on whether its operation is there.
pub const KINDS: [Kind; 13] = [
    kind(1, "scan_index", "workspace_scan_index", &["root", "hash_files"], false),
    kind(2, "list_files", "workspace_list_files", &["root"], false),
    kind(3, "read_file", "workspace_read_file", &["path", "max_bytes"], false),
    kind(4, "organize_plan", "workspace_organize_plan", &["root", "policy"], false),
    kind(EXECUTE_PLAN, "execute_plan", "workspace_execute_plan", &["plan_job_id", "workspace_root"], true),
    kind(6, "soft_delete", "workspace_soft_delete", &["path", "workspace_root"], true),
    kind(7, "restore", "workspace_restore", &["trash_item_path", "restore_to", "workspace_root"], true),
    kind(8, "browse_web", "workspace_browse_web", &["url"], false),
    kind(9, "create_excel", "workspace_create_excel", &["path", "data"], true),
    kind(10, "create_word", "workspace_create_word", &["path", "content"], true),
    kind(11, "create_pdf", "workspace_create_pdf", &["path", "content"], true),
    kind(12, "execute_python", "workspace_execute_python", &["code"], true),
    kind(13, "search_past_actions", "workspace_search_past_actions", &["query", "workspace_root"], false),
];

/// Kinds that earlier servers had and that this one leaves to others.
const ELSEWHERE: [(i32, &str); 3] = [(14, "search_google_drive"), (15, "listen_meeting"), (16, "ai_analyze")];
/// Inputs that are not the program's to give.
const RESERVED: [&str; 4] = ["idempotency_key", "agent_id", "agent_token", "plan_id"];

/// A kind by its number.
pub(super) fn find(number: i32) -> Result<&'static Kind> {
    if let Some((_, name)) = ELSEWHERE.iter().find(|(other, _)| *other == number) {
        let told = Error::invalid("type", format!("{name} ({number}) is not done by this desk"));
        return Err(told.hint("mount an MCP server that does it, and call that one"));
    }
    let found = KINDS.iter().find(|kind| kind.number == number);
    found.ok_or_else(|| Error::invalid("type", format!("there is no kind of job with the number {number}")).hint("GET /tools lists those that there are"))
}

/// The operation of a kind, and the input that a job's parameters are for it. What an operation needs beyond, it says itself.
pub fn input(registry: &Registry, number: i32, params: &BTreeMap<String, String>) -> Result<(&'static Kind, Value)> {
    let kind = find(number)?;
    let op = registry.get(kind.operation).ok_or_else(|| Error::invalid("type", format!("this version cannot do {} yet", kind.name)))?;
    let mut fields = Map::new();
    for (name, text) in params {
        if let Some((name, value)) = field(op, kind, name, text)? {
            fields.insert(name.to_owned(), value);
        }
    }
    Ok((kind, Value::Object(fields)))
}

fn field<'p>(op: &Op, kind: &Kind, name: &'p str, text: &str) -> Result<Option<(&'p str, Value)>> {
    let takes = |name: &str| op.input().pointer(&format!("/properties/{name}")).is_some() && !RESERVED.contains(&name);
    let value = |name: &'p str| op.value_of(name, text).map_err(|error| Error { field: Some(format!("params.{name}")), ..error });
    Ok(match name {
        // Which plan that is, is found when the job runs.
        "plan_job_id" if kind.number == EXECUTE_PLAN => None,
        "max_bytes" if takes(name) => {
            let bytes = value(name)?.as_u64().ok_or_else(|| Error::invalid("params.max_bytes", "must not be negative"))?;
            Some((name, Value::from(bytes.min(FILE_READ_BYTES_MAX))))
        }
        _ if takes(name) => Some((name, value(name)?)),
        _ => return Err(Error::invalid(&format!("params.{name}"), format!("is not a parameter of {}", kind.name))),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(number: i32, params: &[(&str, &str)]) -> Result<Value> {
        let params = params.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        input(&Registry::new(), number, &params).map(|(_, input)| input)
    }

    #[test]
    fn texts_become_what_the_operation_takes() {
        assert_eq!(read(2, &[("root", "notes"), ("limit", "7"), ("hidden", "true")]).unwrap(), json!({ "root": "notes", "limit": 7, "hidden": true }));
        assert_eq!(read(3, &[("path", "notes/a"), ("max_bytes", "1000000")]).unwrap(), json!({ "path": "notes/a", "max_bytes": FILE_READ_BYTES_MAX }));
        assert_eq!(read(9, &[("path", "notes/a.xlsx"), ("data", r#"[{"a":1}]"#)]).unwrap(), json!({ "path": "notes/a.xlsx", "data": [{ "a": 1 }] }));
        let restore = read(7, &[("trash_item_path", "/w/.trash/files/a.txt"), ("workspace_root", "notes")]).unwrap();
        assert_eq!(restore, json!({ "trash_item_path": "/w/.trash/files/a.txt", "workspace_root": "notes" }));
        assert_eq!(read(6, &[("path", "notes/a"), ("workspace_root", "notes")]).unwrap(), json!({ "path": "notes/a", "workspace_root": "notes" }));
        assert_eq!(read(5, &[("plan_job_id", "x")]).unwrap(), json!({}));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (number, params, field) in [
            (0, &[][..], "type"),
            (17, &[], "type"),
            (14, &[], "type"),
            (3, &[("max_bytes", "-1")], "params.max_bytes"),
            (3, &[("max_bytes", "many")], "params.max_bytes"),
            (2, &[("sudo", "true")], "params.sudo"),
            (2, &[("agent_token", "x")], "params.agent_token"),
            (2, &[("root", "notes/sub"), ("workspace_root", "notes")], "params.workspace_root"),
            (10, &[("path", "notes/a.docx"), ("workspace_root", "manuals")], "params.workspace_root"),
            (5, &[("plan_id", "x")], "params.plan_id"),
            (4, &[("idempotency_key", "x")], "params.idempotency_key"),
            (9, &[("data", "no JSON")], "params.data"),
        ] {
            assert_eq!(read(number, params).unwrap_err().field.as_deref(), Some(field), "{number} {params:?}");
        }
        for (number, name) in ELSEWHERE {
            let refused = read(number, &[]).unwrap_err();
            assert!(refused.message.contains(name) && refused.hint.unwrap().contains("mount"), "{number}");
        }
    }

    #[test]
    fn every_usual_parameter_is_one_of_its_operation() {
        let registry = Registry::new();
        for kind in KINDS.iter().filter(|kind| registry.get(kind.operation).is_some()) {
            let texts = |name: &str| match name {
                "data" => "[]".to_owned(),
                "max_bytes" => "1".to_owned(),
                "hash_files" => "false".to_owned(),
                _ => "x".to_owned(),
            };
            let params = kind.params.iter().map(|name| ((*name).to_owned(), texts(name))).collect();
            input(&registry, kind.number, &params).unwrap();
        }
    }
}
