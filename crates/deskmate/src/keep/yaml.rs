//! The one line of `deskmate.yaml` that these commands change. Everything else in the file stays as it was written.

use std::io::Write;
use std::path::Path;

use deskmate_core::{Error, Result};
use tempfile::NamedTempFile;

use super::at;
use crate::config;

const NAME: &str = "database_url:";

/// The line that sets a URL.
pub(super) fn line(url: &str) -> String {
    format!("{NAME} {}", serde_json::Value::String(url.to_owned()))
}

/// The text with that setting as a comment; `None` if it has none.
pub(super) fn without_database_url(text: &str) -> Option<String> {
    text.lines().any(|line| line.starts_with(NAME)).then(|| rewrite(text, None))
}

/// Writes the setting into the file.
pub(super) fn set_database_url(path: &Path, url: &str) -> Result<()> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(at(path)(error)),
    };
    let changed = rewrite(&text, Some(url));
    if config::database_url(path, &changed).ok().flatten().as_deref() != Some(url) {
        let hint = format!("write this line into it: {}", line(url));
        return Err(Error::conflict(format!("{} is written in a way that cannot be changed safely", path.display())).hint(hint));
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut fresh = NamedTempFile::new_in(directory).map_err(at(directory))?;
    fresh.write_all(changed.as_bytes()).and_then(|()| fresh.as_file().sync_all()).map_err(at(path))?;
    fresh.persist(path).map(drop).map_err(|error| at(path)(error.error))
}

/// Replaces the setting, with the lines that go on under it, or turns it into a comment.
fn rewrite(text: &str, url: Option<&str>) -> String {
    let mut changed = String::new();
    let mut inside = false;
    let mut written = url.is_none();
    for row in text.lines() {
        let begins = row.starts_with(NAME);
        inside = begins || (inside && row.starts_with([' ', '\t']));
        match url {
            _ if !inside => changed.push_str(row),
            None => changed.extend(["# ", row]),
            Some(url) if begins && !written => {
                changed.push_str(&line(url));
                written = true;
            }
            Some(_) => continue,
        }
        changed.push('\n');
    }
    if let Some(url) = url.filter(|_| !written) {
        changed.push_str(&line(url));
        changed.push('\n');
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_one_setting_changes() {
        let text = "# mine\nlisten: 127.0.0.1:1\ndatabase_url: >-\n  postgres://a\n  b\nlog:\n  level: warn # loud\n";
        assert_eq!(rewrite(text, Some("sqlite:/x")), "# mine\nlisten: 127.0.0.1:1\ndatabase_url: \"sqlite:/x\"\nlog:\n  level: warn # loud\n");
        assert_eq!(rewrite("log: {}\n", Some("postgres://h/d?a=%20")), "log: {}\ndatabase_url: \"postgres://h/d?a=%20\"\n");
        assert_eq!(without_database_url("database_url: x\nlisten: y\n").unwrap(), "# database_url: x\nlisten: y\n");
        assert_eq!(without_database_url("listen: y\n"), None);
    }
}
