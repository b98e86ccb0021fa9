//! A message on the desktop: a program is run with heading and text as arguments. There is no shell, and the program gets
//! only the part of the environment that a desktop needs.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use deskmate_core::notify::Message;

use crate::config;

/// How long the program may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Lines of a message.
const LINES: usize = 5;
/// What a program needs to find the desktop of its user.
const PASSED: &[&str] =
    &["PATH", "HOME", "USER", "LANG", "LC_ALL", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_SESSION_TYPE", "DBUS_SESSION_BUS_ADDRESS"];

/// Whether the program of a command can be found.
pub(crate) fn is_there(command: &[String]) -> bool {
    let Some(program) = command.first() else { return false };
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let paths = config::env("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// Shows a message.
pub(crate) async fn show(command: &[String], message: &Message) -> Result<(), String> {
    let Some((program, first)) = command.split_first() else { return Err("no program is configured".to_owned()) };
    let mut process = tokio::process::Command::new(program);
    process.args(first).arg(escaped(&message.title())).arg(escaped(&message.lines(LINES).join("\n")));
    process.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    for name in PASSED {
        if let Some(value) = config::env(name) {
            process.env(name, value);
        }
    }
    let mut child = process.spawn().map_err(|error| format!("{program}: {error}"))?;
    match tokio::time::timeout(TIMEOUT, child.wait()).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(format!("{program} ended with {status}")),
        Ok(Err(error)) => Err(format!("{program}: {error}")),
        Err(_) => Err(format!("{program} did not end within {} s", TIMEOUT.as_secs())),
    }
}

/// Desktops read some HTML in a message; here it is text.
fn escaped(text: &str) -> String {
    if cfg!(target_os = "macos") {
        return text.to_owned();
    }
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
