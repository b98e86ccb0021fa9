//! Backup, restore and move.

use std::path::Path;
use std::time::{Duration, Instant};

use deskmate_db::{Db, Options};
use testkit::{Backend, PgSchema};

use crate::running::{Place, names, text, until};

/// Rows with every kind of value, put in as only somebody with the file in hand would.
fn add_rows(home: &Path) {
    let connection = rusqlite::Connection::open(home.join("desk.db")).unwrap();
    for number in 0..450 {
        connection
            .execute(
                "insert into message (id, project, sender_kind, sender, verified, origin, to_name, thread, reply_to, rank, content, created_at) \
                 values (?1, 'p', 'agent', 'code', ?2, 'x', 'cowork', 't', null, 3, ?3, ?4)",
                rusqlite::params![format!("m{number:04}"), number % 2 == 0, format!("Grüße {number} 🙂"), number],
            )
            .unwrap();
    }
    connection.execute("insert into cursor (name, seq) values ('b', 1), ('B', 2), ('a', 3)", []).unwrap();
    connection.execute("insert into idempotency (actor, operation, key, digest, answer, at) values ('a', 'o', 'k', x'00ff', '{}', 1)", []).unwrap();
}

fn rows(store: &Path) -> i64 {
    let connection = rusqlite::Connection::open(store).unwrap();
    connection.query_row("select count(*) + sum(verified) from message", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_backup_of_a_running_desk_comes_back_whole() {
    let place = Place::new();
    let home = place.home();
    place.filled(&home, &[]);
    add_rows(&home);
    std::fs::write(home.join("deskmate.yaml"), "log:\n  level: warn # quiet\n").unwrap();
    let bridge = rusqlite::Connection::open(home.join("messages.db")).unwrap();
    bridge.execute_batch("pragma journal_mode = wal; create table inbox (x text); insert into inbox values ('one')").unwrap();
    let running = place.start(&home, &[]);
    let file = place.path("desk.backup");
    let saved = place.json(&home, &["backup", file.to_str().unwrap()]);
    running.stop();
    assert!(names(&home).iter().all(|name| !name.starts_with(".deskmate")), "{:?}", names(&home));

    let other = place.path("deep/other");
    let restored = place.json(&other, &["restore", file.to_str().unwrap()]);
    assert_eq!(restored["events"], saved["events"]);
    assert_eq!(saved["root"], place.root(&other), "the record as it was at the backup; the running desk went on");
    assert_eq!(rows(&other.join("desk.db")), rows(&home.join("desk.db")));
    assert_eq!(std::fs::read(other.join("deskmate.yaml")).unwrap(), std::fs::read(home.join("deskmate.yaml")).unwrap());
    assert_eq!(std::fs::read(other.join("record.key")).unwrap(), std::fs::read(home.join("record.key")).unwrap());
    let copied = rusqlite::Connection::open(other.join("messages.db")).unwrap();
    assert_eq!(copied.query_row("select x from inbox", [], |row| row.get::<_, String>(0)).unwrap(), "one");
    // It goes on as a desk, in the same record.
    place.start(&other, &[]).stop();
    assert_ne!(saved["root"], place.root(&other));
}

#[test]
fn every_table_is_copied() {
    let place = Place::new();
    place.filled(&place.home(), &[]);
    let connection = rusqlite::Connection::open(place.home().join("desk.db")).unwrap();
    let mut statement =
        connection.prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name <> 'schema_version'").unwrap();
    let mut there: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let mut copied: Vec<String> = deskmate_core::TABLES.iter().map(|(table, _)| (*table).to_owned()).collect();
    there.sort();
    copied.sort();
    assert_eq!(there, copied);
}

#[test]
fn a_backup_holds_the_files_that_the_configuration_names_and_templates_and_frameworks() {
    let place = Place::new();
    let home = place.home();
    place.filled(&home, &[]);
    std::fs::create_dir(home.join("secrets")).unwrap();
    std::fs::write(home.join("secrets/team"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    let elsewhere = place.path("elsewhere");
    std::fs::write(&elsewhere, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    let hook = |name: &str, file: &str| format!("    - name: {name}\n      url: http://127.0.0.1:9/hook\n      secret_file: {file}\n");
    let webhooks = [hook("team", "secrets/team"), hook("other", elsewhere.to_str().unwrap()), hook("beside", "../elsewhere")].concat();
    let settings = format!("notifications:\n  webhooks:\n{webhooks}");
    std::fs::write(home.join("deskmate.yaml"), settings).unwrap();
    // More of them than a byte counts.
    let own: Vec<String> = (0..130).flat_map(|number| [format!("templates/t{number}.yaml"), format!("compliance/f{number}.yml")]).collect();
    for folder in ["templates", "compliance"] {
        std::fs::create_dir(home.join(folder)).unwrap();
    }
    for name in &own {
        std::fs::write(home.join(name), format!("# {name}")).unwrap();
    }
    let file = place.path("desk.backup");
    let saved = place.json(&home, &["backup", file.to_str().unwrap()]);
    let notes = saved["notes"].to_string();
    assert_eq!(notes.matches("elsewhere, which").count(), 2, "what is outside is told: {saved}");
    let other = place.path("other");
    place.json(&other, &["restore", file.to_str().unwrap()]);
    for name in &own {
        assert_eq!(std::fs::read_to_string(other.join(name)).unwrap(), format!("# {name}"));
    }
    place.start(&other, &[]).stop();
    assert_eq!(std::fs::read(other.join("secrets/team")).unwrap(), std::fs::read(home.join("secrets/team")).unwrap());
}

#[test]
fn a_backup_overwrites_nothing_and_neither_does_a_restore() {
    let place = Place::new();
    let home = place.home();
    place.filled(&home, &[]);
    let file = place.path("desk.backup");
    std::fs::write(&file, "mine").unwrap();
    let refused = place.run(&home, &["backup", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(5), "{}", text(&refused));
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    std::fs::remove_file(&file).unwrap();
    place.json(&home, &["backup", file.to_str().unwrap()]);
    let before = names(&home);
    let refused = place.run(&home, &["restore", file.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(5));
    assert!(text(&refused).contains("it has desk.db") && text(&refused).contains("record.key"), "{}", text(&refused));
    assert_eq!(names(&home), before);
}

#[test]
fn encrypted_backups_open_with_their_secret_only() {
    let place = Place::new();
    let home = place.home();
    place.filled(&home, &[]);
    let file = place.path("desk.age");
    let name = file.to_str().unwrap();
    let saved = place.with_line(&home, &["backup", name, "--encrypt", "--passphrase-stdin"], "correct horse");
    assert!(saved.status.success(), "{}", text(&saved));
    assert!(std::fs::read(&file).unwrap().starts_with(b"age-encryption.org/v1"));
    let other = place.path("other");
    let wrong = place.with_line(&other, &["restore", name, "--passphrase-stdin"], "wrong horse");
    assert!(text(&wrong).contains("passphrase: is wrong"), "{}", text(&wrong));
    assert!(!other.exists());
    let mut flipped = std::fs::read(&file).unwrap();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let damaged = place.path("damaged.age");
    std::fs::write(&damaged, flipped).unwrap();
    let refused = place.with_line(&other, &["restore", damaged.to_str().unwrap(), "--passphrase-stdin"], "correct horse");
    assert!(text(&refused).contains("damaged") && !other.exists(), "{}", text(&refused));
    let right = place.with_line(&other, &["restore", name, "--passphrase-stdin"], "correct horse");
    assert!(right.status.success(), "{}", text(&right));
    assert_eq!(place.root(&other), place.root(&home));

    // To a recipient: the pair is the example of the format's specification.
    let file = place.path("desk2.age");
    let name = file.to_str().unwrap();
    place.json(&home, &["backup", name, "--recipient", "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"]);
    let third = place.path("third");
    assert!(text(&place.run(&third, &["restore", name])).contains("--identity"));
    let identity = place.path("key.txt");
    std::fs::write(&identity, "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX\n").unwrap();
    place.json(&third, &["restore", name, "--identity", identity.to_str().unwrap()]);
    assert_eq!(place.root(&third), place.root(&home));
}

#[test]
fn a_damaged_backup_restores_nothing() {
    let place = Place::new();
    let home = place.home();
    place.filled(&home, &[]);
    let file = place.path("desk.backup");
    place.json(&home, &["backup", file.to_str().unwrap()]);
    let whole = std::fs::read(&file).unwrap();
    let damaged = place.path("damaged");
    let other = place.path("other");
    std::fs::create_dir(&other).unwrap();
    let mut variants: Vec<(String, Vec<u8>)> =
        [0, 1, 511, 4_096, whole.len() / 2, whole.len() - 2_048, whole.len() - 1].map(|length| (format!("cut to {length}"), whole[..length].to_vec())).into();
    // The manifest's header and text, the key, padding, the store's pages, the digest, and the empty end.
    for at in [20, 600, 1_000, 1_600, 5_000, whole.len() / 2, whole.len() - 3_000, whole.len() - 1_400, whole.len() - 10] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        variants.push((format!("flipped at {at}"), flipped));
    }
    variants.push(("longer".to_owned(), [whole.as_slice(), b"x"].concat()));
    for (what, bytes) in variants {
        std::fs::write(&damaged, bytes).unwrap();
        let refused = place.run(&other, &["restore", damaged.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(1), "{what}: {}", text(&refused));
        assert!(names(&other).is_empty(), "{what}: {:?}", names(&other));
    }
}

/// A tar that ends as a backup does, with any entries.
fn forged(entries: &[(&str, &[u8])]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let entry = |name: &str, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    };
    let mut bytes: Vec<u8> = entries.iter().flat_map(|(name, content)| entry(name, content)).collect();
    let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(&bytes));
    bytes.extend(entry("sha256", digest.as_bytes()));
    bytes.resize(bytes.len() + 1_024, 0);
    bytes
}

#[test]
fn entries_that_lead_elsewhere_are_refused() {
    let place = Place::new();
    let file = place.path("forged");
    let other = place.path("other");
    let outside = place.path("outside").display().to_string();
    for name in ["../outside", outside.as_str(), "./desk.db", "sub/desk.db", "server.log"] {
        std::fs::write(&file, forged(&[(name, b"x")])).unwrap();
        let refused = place.run(&other, &["restore", file.to_str().unwrap()]);
        assert!(text(&refused).contains("no backup has"), "{name}: {}", text(&refused));
        assert!(!place.path("outside").exists() && !other.exists());
    }
    std::fs::write(&file, forged(&[("manifest.json", br#"{"format":"deskmate-backup-9"}"#)])).unwrap();
    assert!(text(&place.run(&other, &["restore", file.to_str().unwrap()])).contains("newer deskmate"));
}

#[test]
fn a_restore_says_how_far_it_is_behind() {
    let place = Place::new();
    let home = place.home();
    place.filled(&home, &[]);
    let file = place.path("desk.backup");
    let saved = place.json(&home, &["backup", file.to_str().unwrap()]);
    let early = place.path("early");
    std::fs::write(&early, place.run(&home, &["audit", "checkpoint"]).stdout).unwrap();
    place.filled(&home, &[]);
    let late = place.path("late");
    std::fs::write(&late, place.run(&home, &["audit", "checkpoint"]).stdout).unwrap();
    let events = place.json(&home, &["audit", "verify"])["events"].as_u64().unwrap();
    let restored = place.json(&place.path("a"), &["restore", file.to_str().unwrap(), "--checkpoint", late.to_str().unwrap()]);
    assert_eq!(restored["behind"], events - saved["events"].as_u64().unwrap());
    let restored = place.json(&place.path("b"), &["restore", file.to_str().unwrap(), "--checkpoint", early.to_str().unwrap()]);
    assert!(restored.get("behind").is_none());
    // A checkpoint of another desk says nothing about this one.
    let stranger = place.path("stranger");
    place.filled(&stranger, &[]);
    std::fs::write(&early, place.run(&stranger, &["audit", "checkpoint"]).stdout).unwrap();
    let refused = place.run(&place.path("c"), &["restore", file.to_str().unwrap(), "--checkpoint", early.to_str().unwrap()]);
    assert!(!refused.status.success() && !place.path("c").exists());
}

#[test]
fn a_killed_backup_leaves_nothing_under_its_name() {
    let place = Place::new();
    let home = place.home();
    place.filled(&home, &[]);
    let connection = rusqlite::Connection::open(home.join("desk.db")).unwrap();
    for number in 0..80 {
        let answer = number.to_string().repeat(500_000);
        connection
            .execute("insert into idempotency (actor, operation, key, digest, answer, at) values ('a', 'o', ?1, x'00', ?2, 1)", (number, answer))
            .unwrap();
    }
    drop(connection);
    let target = place.path("target");
    std::fs::create_dir(&target).unwrap();
    let file = target.join("desk.backup");
    for moment in [".deskmate-keep-", ".deskmate-backup-"] {
        let watched = if moment == ".deskmate-keep-" { &home } else { &target };
        let mut child = place.command(&home, &["backup", file.to_str().unwrap()]).spawn().unwrap();
        until("the backup is under way", || names(watched).iter().any(|name| name.starts_with(moment)) || child.try_wait().unwrap().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!file.exists());
    }
    place.json(&home, &["backup", file.to_str().unwrap()]);
    assert!(names(&home).iter().all(|name| !name.starts_with(".deskmate")), "what was left behind is swept: {:?}", names(&home));
}

#[test]
fn a_backup_does_not_hold_up_writers() {
    let place = Place::new();
    let home = place.home();
    let running = place.start(&home, &[]);
    std::thread::scope(|scope| {
        let backups = scope.spawn(|| {
            for number in 0..3 {
                place.json(&home, &["backup", place.path(&format!("b{number}")).to_str().unwrap()]);
            }
        });
        while !backups.is_finished() {
            let from = Instant::now();
            place.json(&home, &["call", "desk_new_claim_link"]);
            assert!(from.elapsed() < Duration::from_secs(5));
        }
    });
    running.stop();
    place.root(&home);
}

fn postgres() -> Option<PgSchema> {
    match Backend::postgres()? {
        Backend::Postgres(server) => Some(PgSchema::new(&server)),
        Backend::Sqlite => None,
    }
}

#[test]
fn a_desk_moves_to_postgresql_and_back() {
    let Some(schema) = postgres() else { return };
    let place = Place::new();
    let home = place.home();
    place.filled(&home, &[]);
    add_rows(&home);
    std::fs::write(home.join("deskmate.yaml"), "# mine\nlog: {level: warn}\n").unwrap();
    let running = place.start(&home, &[]);
    let refused = place.run(&home, &["move", "--to", &schema.url()]);
    assert_eq!(refused.status.code(), Some(5), "{}", text(&refused));
    assert!(text(&refused).contains("deskmate stop"), "{}", text(&refused));
    running.stop();
    let root = place.root(&home);
    let moved = place.json(&home, &["move", "--to", &schema.url(), "--switch"]);
    assert_eq!(moved["root"], root);
    let settings = std::fs::read_to_string(home.join("deskmate.yaml")).unwrap();
    assert!(settings.starts_with("# mine\nlog: {level: warn}\ndatabase_url: \"postgres://"), "{settings}");
    assert_eq!(place.root(&home), root, "this is the store on PostgreSQL now");

    let back = format!("sqlite:{}", place.path("back.db").display());
    let moved = place.json(&home, &["move", "--to", &back, "--switch"]);
    assert_eq!((moved["root"].as_str(), &moved["from"]), (Some(root.as_str()), &"postgres".into()));
    assert_eq!(place.root(&home), root);
    assert_eq!(names(&place.path("")).iter().filter(|name| name.starts_with("back.db")).count(), 1, "it stands alone");
    assert_eq!(rows(&place.path("back.db")), 450 + 225);
    place.start(&home, &[]).stop();
    place.root(&home);
}

#[test]
fn a_move_needs_an_empty_target_and_cleans_up_after_itself() {
    let place = Place::new();
    let (home, other) = (place.home(), place.path("other"));
    place.filled(&home, &[]);
    place.filled(&other, &[]);
    let before = place.root(&other);
    let taken = format!("sqlite:{}", other.join("desk.db").display());
    let refused = place.run(&home, &["move", "--to", &taken]);
    assert_eq!(refused.status.code(), Some(5), "{}", text(&refused));
    assert_eq!(place.root(&other), before);

    // A source that does not fit its own record is not moved, and the new file goes again.
    let connection = rusqlite::Connection::open(home.join("desk.db")).unwrap();
    connection.execute("update event set actor = 'somebody' where seq = 2", []).unwrap();
    drop(connection);
    let fresh = place.path("fresh.db");
    let refused = place.run(&home, &["move", "--to", &format!("sqlite:{}", fresh.display())]);
    assert!(text(&refused).contains("event 2"), "{}", text(&refused));
    assert!(!fresh.exists());
    assert!(!place.run(&home, &["backup", place.path("b").to_str().unwrap()]).status.success());
    assert!(!place.path("b").exists());
}

#[test]
fn a_failed_move_leaves_postgresql_empty() {
    let Some(schema) = postgres() else { return };
    let place = Place::new();
    let (home, broken) = (place.home(), place.path("broken"));
    place.filled(&home, &[]);
    place.filled(&broken, &[]);
    rusqlite::Connection::open(broken.join("desk.db")).unwrap().execute("delete from event where seq = 1", []).unwrap();
    let refused = place.run(&broken, &["move", "--to", &schema.url()]);
    assert!(text(&refused).contains("not sound"), "{}", text(&refused));
    assert_eq!(place.json(&home, &["move", "--to", &schema.url()])["root"], place.root(&home));
    let refused = place.run(&home, &["move", "--to", &schema.url()]);
    assert!(text(&refused).contains("not empty"), "{}", text(&refused));
}

#[test]
fn a_copy_that_was_not_finished_is_no_desk() {
    let place = Place::new();
    let (home, half) = (place.home(), place.path("half.db"));
    place.filled(&home, &[]);
    let to = format!("sqlite:{}", half.display());
    place.json(&home, &["move", "--to", &to]);
    rusqlite::Connection::open(&half).unwrap().execute("insert into desk (key, value) values ('moving', 'x')", []).unwrap();
    let refused = place.run(&home, &["up", "--database-url", &to]);
    assert!(text(&refused).contains("not finished"), "{}", text(&refused));
    // The next attempt begins anew.
    place.json(&home, &["move", "--to", &to]);
    assert!(Db::open_reader(&Options::new(to, deskmate_core::MIGRATIONS)).is_ok());
}

#[test]
fn a_backup_of_a_desk_on_postgresql_is_the_same_kind_of_file() {
    let Some(schema) = postgres() else { return };
    let place = Place::new();
    let home = place.home();
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("deskmate.yaml"), format!("database_url: \"{}\"\nlog: {{level: warn}}\n", schema.url())).unwrap();
    let running = place.start(&home, &[]);
    for _ in 0..5 {
        place.json(&home, &["call", "desk_new_claim_link"]);
    }
    let file = place.path("desk.backup");
    let saved = place.json(&home, &["backup", file.to_str().unwrap()]);
    running.stop();
    assert_eq!(saved["root"], place.root(&home));
    let other = place.path("other");
    place.json(&other, &["restore", file.to_str().unwrap()]);
    let settings = std::fs::read_to_string(other.join("deskmate.yaml")).unwrap();
    assert!(settings.starts_with("# database_url:") && settings.ends_with("log: {level: warn}\n"), "{settings}");
    assert_eq!(place.root(&other), saved["root"].as_str().unwrap());
    place.start(&other, &[]).stop();
}
