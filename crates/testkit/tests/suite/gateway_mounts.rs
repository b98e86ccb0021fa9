//! What may be written into a mount, and what its tools are called beside those of others, on both engines.

use deskmate_core::Code;
use serde_json::{Value, json};
use testkit::{Caller, TestDesk, assert_code, both};

use super::gateway_answers::mount;

const KEY: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// The names of the tools of a server, beside those of others where they have one there.
fn names(desk: &TestDesk, who: &Caller, mount: &str) -> Vec<(String, Option<String>)> {
    let listed = desk.call(who, "gateway_list_tools", json!({ "mount": mount })).unwrap();
    let name = |tool: &Value, field: &str| tool[field].as_str().map(str::to_owned);
    listed["tools"].as_array().unwrap().iter().map(|tool| (name(tool, "name").unwrap(), name(tool, "full_name"))).collect()
}

fn alone(desk: &TestDesk, owner: &Caller, mount: &str) -> Vec<Value> {
    let shown = desk.call(owner, "desk_mount_tools", json!({ "name": mount })).unwrap();
    shown["tools"].as_array().unwrap().iter().map(|tool| tool.get("alone").cloned().unwrap_or_default()).collect()
}

both! {
    fn no_two_tools_have_one_name_beside_each_other(desk: &TestDesk) {
        let owner = desk.claim();
        let agent = desk.register(&owner, "code");
        mount(desk, &owner, "a_b", &["c", "d"]);
        assert_eq!(names(desk, &agent, "a_b")[0], ("c".into(), Some("a_b_c".into())));
        mount(desk, &owner, "a", &["b_c"]);
        // The first mount has the name, whoever lists which of them.
        assert_eq!(names(desk, &agent, "a"), [("b_c".into(), Some("a_b_c".into()))]);
        assert_eq!(names(desk, &agent, "a_b"), [("c".into(), None), ("d".into(), Some("a_b_d".into()))]);
        assert_eq!(alone(desk, &owner, "a_b"), [json!("b_c of a has the same name there"), Value::Null]);
        // It keeps the name whatever becomes of it, until somebody hides it: nobody reaches another tool by a name that they know.
        mount(desk, &owner, "a", &[]);
        assert_eq!(names(desk, &agent, "a_b")[0].1, None);
        desk.call(&owner, "desk_mount_add", json!({ "mount": { "name": "a", "command": "x", "hide": ["b_c"] }, "replace": true })).unwrap();
        assert_eq!((names(desk, &agent, "a_b")[0].1.as_deref(), alone(desk, &owner, "a_b")), (Some("a_b_c"), vec![Value::Null, Value::Null]));
        desk.call(&owner, "desk_mount_add", json!({ "mount": { "name": "a", "command": "x", "hide": [] }, "replace": true })).unwrap();
        desk.call(&owner, "desk_mount_switch", json!({ "name": "a", "enabled": false })).unwrap();
        assert_eq!(names(desk, &agent, "a_b")[0].1.as_deref(), Some("a_b_c"));
        // What model APIs would not take has no name there.
        let (fits, long) = ("x".repeat(126), "y".repeat(127));
        mount(desk, &owner, "l", &[&fits, &long]);
        assert_eq!(names(desk, &agent, "l"), [(fits.clone(), Some(format!("l_{fits}"))), (long.clone(), None)]);
        assert!(alone(desk, &owner, "l")[1].as_str().unwrap().contains("128"));
    }

    fn nobody_writes_a_secret_or_a_folder_that_may_be_anywhere_into_a_mount(desk: &TestDesk) {
        let owner = desk.claim();
        for bad in [
            json!({ "command": "x", "env": { "GITHUB_TOKEN": KEY } }),
            json!({ "command": "x", "args": ["--api-key", KEY] }),
            json!({ "url": "https://x.example", "headers": { "Authorization": format!("Bearer {KEY}") } }),
            json!({ "url": format!("https://x.example/mcp?key={KEY}") }),
            json!({ "command": "x", "cwd": "sub" }),
        ] {
            let mut mount = json!({ "name": "tools" });
            mount.as_object_mut().unwrap().extend(bad.as_object().unwrap().clone());
            for replace in [false, true] {
                let refused = desk.refused(&owner, "desk_mount_add", json!({ "mount": mount, "replace": replace }));
                assert_code(&refused, Code::Invalid);
                assert!(["deskmate secret set tools-", "whole path"].iter().any(|says| refused.message.contains(says)), "{refused:?}");
                assert!(!format!("{refused:?}").contains(KEY), "{refused:?}");
            }
            // The same in a file, which is what the server reads at its start.
            let refused = desk.refused(&owner, "desk_policy_apply", json!({ "document": json!({ "gateway": { "mounts": [mount] } }).to_string() }));
            assert_code(&refused, Code::Invalid);
            assert!(!format!("{refused:?}").contains(KEY), "{refused:?}");
        }
        desk.seal();
        let told = desk.call(&owner, "desk_record_list", json!({ "limit": 200 })).unwrap().to_string();
        assert!(!told.contains(KEY) && !told.contains("setting.changed"), "{told}");
        let named = json!({ "name": "tools", "command": "x", "env": { "GITHUB_TOKEN": "secret:tools-github-token" }, "cwd": "/srv" });
        desk.call(&owner, "desk_mount_add", json!({ "mount": named })).unwrap();
    }
}
