//! Surfaces as files: a change of a surface shows in review. `UPDATE=1 cargo test` writes them anew.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Compares with a file in `tests/snapshots`.
pub(crate) fn check(name: &str, text: &str) {
    check_at(&format!("tests/snapshots/{name}"), text);
}

/// Compares a document.
pub(crate) fn check_json(name: &str, value: &Value) {
    check(name, &(serde_json::to_string_pretty(value).expect("JSON") + "\n"));
}

/// Compares with a file named from this crate's folder.
#[expect(clippy::disallowed_methods, reason = "tests are told by their environment to write")]
pub(crate) fn check_at(path: &str, text: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        std::fs::write(&path, text).expect("the file can be written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{} is not current: run UPDATE=1 cargo test -p deskmate and look at the difference", path.display());
}
