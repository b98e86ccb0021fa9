//! The repository's own rules, checked like any other behaviour.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Lines of a source file without its tests, and of one function.
const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 120;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn files(under: &str, endings: &[&str]) -> Vec<PathBuf> {
    fn walk(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if !matches!(name.as_str(), "target" | "node_modules" | ".git" | ".venv") {
                    walk(&path, endings, found);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(under), endings, &mut found);
    found.sort();
    found
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

/// The part of a file that ships: without its test module.
fn shipped(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

#[test]
fn files_and_functions_stay_small() {
    let mut long = Vec::new();
    for path in files("crates", &[".rs"]).into_iter().filter(|path| !shown(path).contains("/tests/")) {
        let text = read(&path);
        let lines = shipped(&text).lines().count();
        if lines > FILE_LINES_MAX {
            long.push(format!("{}: {lines} lines", shown(&path)));
        }
        let mut start = None;
        for (number, line) in text.lines().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let is_function = line.trim_start().contains("fn ") && line.trim_end().ends_with('{') && !line.trim_start().starts_with("//");
            if is_function {
                start = Some((number, indent));
            } else if let Some((begun, at)) = start
                && line.trim_end() == format!("{}}}", " ".repeat(at))
            {
                if number - begun > FUNCTION_LINES_MAX {
                    long.push(format!("{}:{}: a function of {} lines", shown(&path), begun + 1, number - begun));
                }
                start = None;
            }
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn the_scripts_of_pages_stay_few() {
    let lines: usize = files("crates/deskmate/src/http/pages/assets", &[".js"]).iter().map(|path| read(path).lines().count()).sum();
    assert!((1_000..1_900).contains(&lines), "{lines} lines: what a page can say by itself is written in Rust (docs/ARCHITECTURE.md tells the figure)");
}

#[test]
fn every_module_says_what_it_is() {
    let silent: Vec<_> = files("crates", &[".rs"]).iter().filter(|path| !read(path).trim_start().starts_with("//!")).map(|path| shown(path)).collect();
    assert!(silent.is_empty(), "these open without a comment: {silent:#?}");
}

#[test]
fn what_the_libraries_offer_is_described() {
    for name in ["deskmate-core", "deskmate-db"] {
        let text = read(&root().join("crates").join(name).join("src/lib.rs"));
        assert!(text.contains("#![warn(missing_docs)]"), "{name} asks for no descriptions of what it offers");
    }
}

#[test]
fn no_module_is_named_for_nothing_in_particular() {
    let names = ["util", "utils", "common", "helper", "helpers", "misc", "manager", "managers"];
    let is_vague = |path: &PathBuf| path.with_extension("").components().any(|part| names.iter().any(|name| part.as_os_str() == *name));
    let vague: Vec<_> = files("crates", &[".rs"]).into_iter().map(|path| path.strip_prefix(root()).unwrap().to_path_buf()).filter(is_vague).collect();
    assert!(vague.is_empty(), "name these by what is in them: {vague:?}");
    assert!(is_vague(&"crates/deskmate/src/util.rs".into()) && is_vague(&"crates/deskmate/src/common/mod.rs".into()));
}

#[test]
fn only_the_store_names_an_engine_and_the_core_does_no_input_or_output() {
    let manifest = read(&root().join("crates/deskmate-core/Cargo.toml"));
    for banned in ["tokio", "axum", "rmcp", "reqwest", "hyper", "rusqlite", "postgres"] {
        assert!(!manifest.lines().any(|line| line.starts_with(banned)), "the core depends on {banned}");
    }
    for path in files("crates/deskmate-core/src", &[".rs"]).into_iter().filter(|path| !shown(path).contains("/tests/")) {
        let text = read(&path);
        // The pipeline's two doors wait for the store's thread, and for nothing else.
        let waits = path.ends_with("call/pipeline.rs");
        for banned in ["std::fs", "std::net", "std::process", "std::thread", "SystemTime", "Instant::now", "rusqlite", "async fn"] {
            assert!(waits && banned == "async fn" || !shipped(&text).contains(banned), "{} uses {banned}", shown(&path));
        }
    }
}

#[test]
fn the_rules_and_the_store_depend_on_no_system() {
    let of_a_system = ["cap-std", "landlock", "libc", "nix", "rustix", "seccompiler", "winapi", "windows"];
    for name in ["deskmate-core", "deskmate-db"] {
        let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
        // What only one system has is asked for there alone, and has another answer beside it.
        let everywhere = manifest.split("\n[target.").next().unwrap_or_default();
        for banned in of_a_system {
            assert!(!everywhere.lines().any(|line| line.starts_with(banned)), "{name} depends on {banned} on every system");
        }
        for path in files(&format!("crates/{name}/src"), &[".rs"]) {
            let text = read(&path);
            assert!(!shipped(&text).contains("std::os::"), "{} names a system", shown(&path));
            for system in ["unix", "windows", "target_os = \"linux\"", "target_os = \"macos\""] {
                let (asked, other) = (format!("#[cfg({system})]"), format!("#[cfg(not({system}))]"));
                assert_eq!(text.matches(&asked).count(), text.matches(&other).count(), "{}: {asked} without another answer", shown(&path));
            }
        }
    }
}

#[test]
fn scripts_that_the_documents_name_are_there_and_run() {
    use std::os::unix::fs::PermissionsExt;
    let mut wrong = BTreeSet::new();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    for path in files("docs", &[".md"]).into_iter().chain(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name))) {
        for (at, _) in read(&path).match_indices("scripts/") {
            let text = read(&path);
            let name: String = text[at + "scripts/".len()..].chars().take_while(|letter| is_name(*letter)).collect();
            let runs =
                |name: &str| std::fs::metadata(root().join("scripts").join(name)).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
            if !name.is_empty() && !runs(&name) {
                wrong.insert(format!("{}: scripts/{name}", shown(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(read(&root().join("docs/performance.md")).contains("`scripts/bench`"), "one command measures everything");
}

/// Every statement of the core, found as a text that begins with an SQL verb.
fn statements() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in files("crates/deskmate-core/src", &[".rs"]) {
        let text = read(&path);
        for piece in shipped(&text).split('"').skip(1).step_by(2) {
            let sql = piece.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
            if ["select ", "insert ", "update ", "delete "].iter().any(|verb| sql.starts_with(verb)) {
                found.push((shown(&path), sql));
            }
        }
    }
    found
}

#[test]
fn sql_is_portable() {
    let mut wrong = Vec::new();
    for (path, sql) in statements() {
        for banned in [" now()", "random()", "datetime(", "ilike", "array[", "SELECT", "INSERT", "UPDATE", "DELETE", "autoincrement", "json_extract", "->>"] {
            if sql.contains(banned) {
                wrong.push(format!("{path}: {banned} in: {sql}"));
            }
        }
        if sql.contains('?') {
            wrong.push(format!("{path}: a parameter without a number in: {sql}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(statements().len() > 80, "the statements were not found: {}", statements().len());
}

#[test]
fn nothing_unfinished_is_left() {
    let marks = ["TO", "FIX", "XX", "HA"].iter().zip(["DO", "ME", "X", "CK"]).map(|(a, b)| format!("{a}{b}")).collect::<Vec<_>>();
    let mut left = Vec::new();
    for path in files(".", &[".rs", ".sh", ".sql", ".js", ".css", ".html", ".md"]).into_iter().filter(|path| !shown(path).ends_with("tidy.rs")) {
        for (number, line) in read(&path).lines().enumerate() {
            let word = |mark: &String| line.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == mark);
            if marks.iter().any(word) {
                left.push(format!("{}:{}", shown(&path), number + 1));
            }
        }
    }
    assert!(left.is_empty(), "{left:#?}");
}

#[test]
fn links_in_the_documents_lead_somewhere() {
    let mut dead = Vec::new();
    for path in files(".", &[".md"]) {
        let text = read(&path);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            if !path.parent().unwrap().join(file).exists() {
                dead.push(format!("{} → {target}", shown(&path)));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn decisions_are_numbered_without_gaps() {
    let numbers: BTreeSet<usize> =
        files("docs/decisions", &[".md"]).iter().filter_map(|path| path.file_name()?.to_string_lossy().split('-').next()?.parse().ok()).collect();
    assert!(!numbers.is_empty());
    assert_eq!(numbers, (1..=numbers.len()).collect());
}

#[test]
fn every_table_is_copied_with_the_store() {
    let schema: String = files("crates/deskmate-core/src/schema", &[".sql"]).iter().map(|path| read(path)).collect();
    let tables: BTreeSet<&str> = schema.lines().filter_map(|line| line.strip_prefix("create table ")).filter_map(|rest| rest.split(' ').next()).collect();
    let copied: BTreeSet<&str> = deskmate_core::TABLES.iter().map(|(table, _)| *table).chain(["event_staged"]).collect();
    assert_eq!(tables, copied);
}

#[test]
fn every_guard_that_is_proved_is_in_the_code() {
    // `scripts/guards` takes them out one by one and shows which tests fail then; that takes long, this does not.
    let guards: serde_json::Value = serde_json::from_str(include_str!("guards.json")).unwrap();
    let mut missing = Vec::new();
    for edit in guards.as_array().unwrap().iter().flat_map(|guard| guard["edits"].as_array().unwrap()) {
        let (file, text) = (edit["file"].as_str().unwrap(), edit["text"].as_str().unwrap());
        let code = read(&root().join("crates/deskmate-core/src").join(file));
        if code.matches(text).count() != 1 {
            missing.push(format!("{file}: {text}"));
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "change guards.json with the code, and run scripts/guards");
}

#[test]
fn the_extension_asks_for_little() {
    let manifest: serde_json::Value = serde_json::from_str(&read(&root().join("extension/manifest.json"))).unwrap();
    assert_eq!(manifest["manifest_version"], 3);
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["permissions"], serde_json::json!(["storage", "alarms"]));
    assert_eq!(manifest["host_permissions"], serde_json::json!(["http://127.0.0.1/*", "http://localhost/*"]));
    assert_eq!(manifest["optional_host_permissions"], serde_json::json!(["https://*/*"]), "a team's desk has TLS, and is asked for by its name");
    for more in ["optional_permissions", "content_scripts", "externally_connectable", "web_accessible_resources", "sandbox", "update_url"] {
        assert!(manifest.get(more).is_none(), "the extension has no use for {more}");
    }
    let background = &manifest["background"];
    assert_eq!((&background["service_worker"], &background["scripts"]), (&"background.js".into(), &serde_json::json!(["background.js"])), "Chrome and Firefox");
    assert!(manifest["browser_specific_settings"]["gecko"]["id"].is_string());
    let policy = manifest["content_security_policy"]["extension_pages"].as_str().unwrap();
    let directives: Vec<&str> = policy.split("; ").collect();
    for needed in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "form-action 'none'", "base-uri 'none'"] {
        assert!(directives.contains(&needed), "{needed} is not in {policy}");
    }
}

#[test]
fn the_extension_reads_no_text_as_code() {
    let banned = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "setHTML",
        "document.write",
        "DOMParser",
        "createContextualFragment",
        "srcdoc",
        "eval(",
        "Function(",
        "importScripts",
        "import(",
        "javascript:",
        " style=",
        "<style",
        "<iframe",
    ];
    let mut found = Vec::new();
    for path in files("extension", &[".js", ".html", ".css"]) {
        let text = read(&path);
        found.extend(banned.iter().filter(|word| text.contains(**word)).map(|word| format!("{}: {word}", shown(&path))));
        let inline = text.match_indices("<script").filter(|(at, _)| !text[*at..].split('>').next().is_some_and(|tag| tag.contains(" src="))).count();
        let handlers = text.split(['<', '>']).filter(|tag| path.extension().is_some_and(|end| end == "html") && tag.contains(" on")).count();
        if inline + handlers > 0 {
            found.push(format!("{}: a script in the page", shown(&path)));
        }
        // Whatever it loads is its own: the only addresses that it knows are the desk's.
        for address in text.split("://").skip(1).filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric())) {
            if !address.starts_with("127.0.0.1:7373") {
                found.push(format!("{}: ://{}", shown(&path), address.lines().next().unwrap_or_default()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    let known: BTreeSet<String> = files("extension", &[""]).iter().map(|path| shown(path).replacen("extension/", "", 1)).collect();
    for path in files("extension", &[".html", ".json"]) {
        for name in read(&path).split('"').filter(|part| [".js", ".css", ".html", ".png"].iter().any(|end| part.ends_with(end))) {
            assert!(known.contains(name), "{} names {name}, which is not there", shown(&path));
        }
    }
}
