//! Bringing in what a cowork server left: its configuration and its database, in the shape that it had.

use rusqlite::Connection;
use serde_json::{Value, json};

use super::desk::Desk;
use super::policy::{answer, as_owner, text};

const TOKEN: &str = "sk-cowork-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c";

/// A configuration as people had it: with what that server read, what it did not, and what it should have refused.
const CONFIG: &str = r#"
trust:
  default_level: 0.25
  auto_promote_after: 20
  auto_promote_threshold: 0.8
  decay_per_day: 0.01
authority:
  default_mode: "suggest"
  volume_cap: 40
  high_risk_fields: ["deal_stage", "password"]
  colour: blue
handoff:
  context_format: "structured"
  handoff_timeout: 1800
feedback:
  override_requires_reason: true
  implicit_approval_seconds: 86400
storage:
  driver: "json"
  path: "./cowork.db"
agents:
  - id: "sales-agent"
    token: "sk-cowork-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c"
    workspace_id: acme
  - id: "support-agent"
    token: "sk-cowork-REPLACE_WITH_GENERATED_TOKEN"
  - id: "demo-agent"
    token_hash: "d03f462b83c1b6121e9e97662456dc63a57ac1ec676045660591fa1d3e059b11"
sentry:
  enabled: false
policies:
  - id: crm-write-policy
    description: Deals
    rules:
      - { field: deal_stage, constraint: high_risk, reason: people look at stages }
      - { field: commission, constraint: readonly }
      - { field: amount, constraint: value_range, min: 0, max: 500000 }
      - { field: code, constraint: regex, pattern: "(?=x)y" }
      - { field: other, constraint: no_such_thing }
mappings:
  - { agent_id: sales-agent, domain: crm.deals, policy_id: crm-write-policy }
  - { agent_id: sales-agent, domain: crm.leads, policy_id: gone }
  - { agent_id: "*", domain: crm.deals, policy_id: crm-write-policy }
surprise: 1
"#;

/// A database with the six tables.
fn database(desk: &Desk) -> String {
    let path = desk.path().join("cowork.db");
    let db = Connection::open(&path).expect("a database");
    db.execute_batch(
        "create table trust_scores (agent_id text not null, domain text not null, score real not null, accuracy real not null, total_actions integer not null,
            approved_actions integer not null, overridden_actions integer not null, consecutive_overrides integer not null, last_updated text not null,
            primary key (agent_id, domain));
         create table actions (id text primary key, agent_id text not null, action_type text not null, domain text not null, description text not null,
            confidence real not null, reasoning text not null, status text not null, actor text not null, created_at text not null);
         create table proposals (id text primary key, action_id text not null, proposed_change text not null, trust_at_proposal real not null,
            threshold_required real not null, auto_approved integer not null, human_decision text, human_reason text, decided_at text, created_at text not null);
         create table overrides (id text primary key, action_id text not null, override_type text not null, description text not null, trust_impact real not null,
            created_at text not null);
         create table handoffs (id text primary key, agent_id text not null, domain text not null, reason text not null, confidence_at_handoff real not null,
            context_packet text not null, attempted_actions text not null, resolution text, resolved_at text, created_at text not null, instructions text,
            hand_back integer not null default 0, instructions_read integer not null default 0);
         create table timeline (id text primary key, session_id text not null, actor text not null, event_type text not null, reference_id text not null,
            summary text not null, created_at text not null);",
    )
    .expect("the tables");
    let at = "2026-01-05T10:00:00.000Z";
    db.execute("insert into trust_scores values ('sales-agent', 'crm.deals', 0.62, 0.4, 40, 16, 2, 0, ?1)", [at]).unwrap();
    for number in 0..450 {
        let (action, proposal) = (format!("a-{number}"), format!("p-{number}"));
        db.execute(
            "insert into actions values (?1, 'sales-agent', 'propose', 'crm.deals', 'update deal', 0.8, 'because', 'proposed', 'agent', ?2)",
            (&action, at),
        )
        .unwrap();
        let decision = if number < 448 { Some("approved") } else { None };
        db.execute("insert into proposals values (?1, ?2, '{\"value\":5}', 0.3, 0.8, 0, ?3, null, null, ?4)", (&proposal, &action, decision, at)).unwrap();
    }
    db.execute("insert into overrides values ('o-1', 'a-0', 'agent_wrong', 'no', -0.08, ?1)", [at]).unwrap();
    db.execute(
        "insert into handoffs values ('h-1', 'sales-agent', 'crm.deals', 'stuck', 0.2, '{\"mode\":\"review\"}', '[]', null, null, ?1, null, 0, 0)",
        [at],
    )
    .unwrap();
    db.execute("insert into timeline values ('t-1', 'session_1', 'agent', 'proposal', 'p-0', 'proposed', ?1)", [at]).unwrap();
    path.to_str().expect("text").to_owned()
}

fn outcome(report: &Value, what: &str) -> String {
    let entries = report["entries"].as_array().unwrap();
    let found: Vec<&Value> = entries.iter().filter(|entry| entry["what"] == what).collect();
    assert!(!found.is_empty(), "{what} is not in {report:#}");
    found.iter().map(|entry| format!("{} {}", entry["outcome"].as_str().unwrap(), entry["why"].as_str().unwrap_or_default())).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_cowork_server_is_brought_in_with_a_report_of_everything() {
    let desk = Desk::new();
    desk.register("code");
    database(&desk);
    let config = desk.path().join("cowork.config.yaml");
    std::fs::write(&config, CONFIG).unwrap();
    let config = config.to_str().unwrap();
    let dry = as_owner(&desk, &["import", "cowork", "--config", config, "--dry-run", "--json"]);
    let dry = answer(&dry);
    assert!(dry["database"].as_str().unwrap().ends_with("cowork.db"), "the database is where the configuration says");
    for (what, says) in [
        ("trust.auto_promote_threshold", "changed it is called trust.auto_promote_accuracy here"),
        ("handoff.handoff_timeout", "changed it is called handoff.timeout_seconds here"),
        ("feedback.implicit_approval_seconds", "refused silence is not consent here"),
        ("authority.default_mode", "changed was only shown there"),
        ("authority.colour", "refused"),
        ("surprise", "refused"),
        ("storage", "refused"),
        ("sentry", "refused"),
        ("policy crm-write-policy: regex on code", "changed"),
        ("policy crm-write-policy: no_such_thing on other", "changed"),
        ("mapping sales-agent × crm.leads → gone", "refused"),
        ("mapping * × crm.deals → crm-write-policy", "refused"),
        ("agent sales-agent: workspace_id", "refused"),
        ("token of sales-agent", "taken good for 365 days"),
        ("token of support-agent", "refused it is a placeholder"),
        ("token of demo-agent", "refused the token stands in a public example file"),
        ("trust of sales-agent in crm.deals", "changed the score is 0.62"),
        ("proposals p-449", "taken nobody had decided it"),
        ("handoffs h-1", "taken nobody had resolved it"),
    ] {
        assert!(outcome(&dry, what).starts_with(says), "{what}: {}", outcome(&dry, what));
    }
    assert_eq!(dry["counts"]["actions"], json!({ "taken": 450 }));
    assert_eq!(desk.command(&["call", "desk_whoami", "--json"]).env("DESKMATE_TOKEN", TOKEN).output().unwrap().status.code(), Some(3), "nothing was written");

    let done = answer(&as_owner(&desk, &["import", "cowork", "--config", config, "--json"]));
    assert_eq!((&done["counts"]["actions"], &done["counts"]["proposals"]), (&json!({ "taken": 450 }), &json!({ "taken": 450 })));
    let you = answer(&desk.command(&["call", "desk_whoami", "--json"]).env("DESKMATE_TOKEN", TOKEN).output().unwrap());
    assert_eq!((you["id"].as_str(), you["verified"].as_bool()), (Some("sales-agent"), Some(true)));
    let shown = answer(&as_owner(&desk, &["policy", "show", "--json"]))["body"].clone();
    assert_eq!(shown["trust"]["default_level"], 0.25);
    assert_eq!(shown["handoff"]["timeout_seconds"], 1800);
    let rules = shown["policies"][0]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 5, "what could not be read holds its field: {shown:#}");
    assert_eq!((&rules[3]["constraint"], &rules[4]["constraint"]), (&json!("high_risk"), &json!("high_risk")));
    let input = json!({ "domain": "crm.deals", "action": "u", "target": "t", "proposed_change": "{\"commission\": 1}", "confidence": 1, "reasoning": "r" });
    let asked = desk.command(&["call", "cowork_propose", "--input", &input.to_string(), "--json"]).env("DESKMATE_TOKEN", TOKEN).output().unwrap();
    assert_eq!(answer(&asked)["policy_error"], true);

    let again = answer(&as_owner(&desk, &["import", "cowork", "--config", config, "--json"]));
    assert_eq!((&again["counts"]["actions"], &again["counts"]["timeline"]), (&json!({ "known": 450 }), &json!({ "known": 1 })));
    let told = text(&as_owner(&desk, &["import", "cowork", "--config", config, "--dry-run"]).stdout);
    assert!(told.contains("Refused:") && told.contains("dry run"), "{told}");
    assert!(!told.contains(TOKEN), "no token is ever shown");
    assert!(desk.run(&["audit", "verify"]).status.success());
}

#[test]
fn what_cannot_be_read_is_refused_as_a_whole() {
    let desk = Desk::new();
    desk.register("code");
    let write = |name: &str, text: &str| {
        let path = desk.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    for (args, says) in [
        (vec!["--config", "/nowhere.yaml"], "no such file"),
        (vec!["--config", &write("broken.yaml", "trust: [\n")], "broken.yaml"),
        (vec!["--config", &write("list.yaml", "- a\n")], "mapping of sections"),
        (vec!["--db", &write("text.db", "not a database, though it is long enough to look like one to somebody in a hurry")], "text.db"),
        (vec!["--db", "/nowhere.db"], "no such file"),
        (vec!["--db", desk.path().join("desk.db").to_str().unwrap()], "not a cowork database"),
    ] {
        let output = as_owner(&desk, &[&["import", "cowork"][..], &args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(text(&output.stderr).contains(says), "{args:?}: {}", text(&output.stderr));
    }
    let agents = answer(&as_owner(&desk, &["agent", "list", "--json"]));
    assert_eq!(agents["agents"].as_array().unwrap().len(), 1, "nothing came in");
}

#[test]
fn a_dry_run_foresees_what_the_slices_before_would_have_written() {
    let desk = Desk::new();
    desk.register("code");
    let db = Connection::open(database(&desk)).unwrap();
    for number in 0..205 {
        let values = (format!("eager-{number}"), "2026-01-05T10:00:00.000Z");
        db.execute("insert into handoffs values (?1, 'support-agent', 'crm.deals', 'stuck', 0.2, '{}', '[]', null, null, ?2, null, 0, 0)", values).unwrap();
    }
    let config = desk.path().join("cowork.config.yaml");
    std::fs::write(&config, CONFIG).unwrap();
    let import = |more: &[&str]| answer(&as_owner(&desk, &[&["import", "cowork", "--config", config.to_str().unwrap(), "--json"], more].concat()));
    let (dry, done) = (import(&["--dry-run"]), import(&[]));
    assert_eq!(dry["counts"]["handoffs"], json!({ "refused": 5, "taken": 201 }));
    assert_eq!((&dry["counts"], dry.get("so_far")), (&done["counts"], None));
    let score = "trust of sales-agent in crm.deals";
    assert_eq!(outcome(&dry, score), outcome(&done, score));
    assert!(!outcome(&dry, score).contains("nobody proved"), "{dry:#}");
}
