//! What a machine or an account cannot test is said, and not passed over in silence.

use std::fs::OpenOptions;
use std::io::Write;

/// Says that something was not tested, and why. Where `DESKMATE_SKIPPED` names a file it also gets the line: `./test` shows it in
/// the end, and output of tests that pass is not shown.
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a test prints for people, and the test command names the file in the environment")]
pub fn skipped(why: &str) {
    println!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("DESKMATE_SKIPPED").filter(|path| !path.is_empty()) {
        note(&path, why);
    }
}

fn note(path: &std::ffi::OsStr, why: &str) {
    let file = OpenOptions::new().create(true).append(true).open(path);
    // One write, so that tests at the same time do not mix their lines.
    let noted = file.and_then(|mut file| file.write_all(format!("{why}\n").as_bytes()));
    assert!(noted.is_ok(), "{}: {noted:?}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_skipped_is_written_down_line_by_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("skipped");
        note(path.as_os_str(), "one; run as root");
        note(path.as_os_str(), "two");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "one; run as root\ntwo\n");
    }
}
