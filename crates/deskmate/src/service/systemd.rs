//! systemd: a unit of the user's own, or one of the system with its own account.

use std::path::{Path, PathBuf};

use deskmate_core::Result;

use super::{Account, NAME, Run, Service, Steps, user_settings};

pub(super) fn steps(service: &Service) -> Result<Steps> {
    let unit = format!("{NAME}.service");
    let ctl = |rest: &[&str]| {
        let own = ["systemctl", "--user"];
        let words = if service.account == Account::Own { own.as_slice() } else { &["systemctl"] };
        Run::new(&[words, rest].concat())
    };
    let (path, prepare) = match &service.account {
        Account::Own => (user_settings()?.join("systemd").join("user").join(&unit), Vec::new()),
        Account::Separate(name) => (PathBuf::from("/etc/systemd/system").join(&unit), account(name, &service.home.display().to_string())),
    };
    Ok(Steps {
        manager: "systemd",
        file: Some((path, self::unit(service))),
        prepare,
        answers: ctl(&["show", "--property=Version"]),
        enable: vec![ctl(&["daemon-reload"]), ctl(&["enable", "--now", &unit])],
        restart: vec![ctl(&["restart", &unit])],
        disable: vec![Run { may_fail: true, ..ctl(&["disable", "--now", &unit]) }],
        forget: vec![ctl(&["daemon-reload"])],
        state: vec![("active", ctl(&["is-active", &unit])), ("enabled", ctl(&["is-enabled", &unit]))],
    })
}

/// Makes the account, which may be there already, and its directory.
fn account(name: &str, home: &str) -> Vec<Run> {
    vec![
        Run::or_not(&["useradd", "--system", "--user-group", "--home-dir", home, "--shell", "/usr/sbin/nologin", name]),
        Run::new(&["install", "-d", "-m", "0700", "-o", name, "-g", name, home]),
    ]
}

/// The unit's text.
pub(super) fn unit(service: &Service) -> String {
    let words = [service.program.display().to_string()].into_iter().chain(service.arguments());
    let command = words.map(|word| quote(&word)).collect::<Vec<_>>().join(" ");
    let (more, wanted_by) = match &service.account {
        Account::Own => (String::new(), "default.target"),
        Account::Separate(name) => (protection(name, service), "multi-user.target"),
    };
    format!(
        "[Unit]\n\
         Description=Deskmate, one desk for people and their AI agents\n\
         After=network.target\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={command}\n\
         Restart=on-failure\n\
         RestartSec=2\n\
         UMask=0077\n\
         NoNewPrivileges=yes\n\
         LockPersonality=yes\n\
         RestrictRealtime=yes\n\
         RestrictSUIDSGID=yes\n\
         {more}\
         \n\
         [Install]\n\
         WantedBy={wanted_by}\n"
    )
}

/// What a service with its own account is kept from. One of the user's own starts agents in the user's name, so it
/// must be able to do what the user can.
fn protection(name: &str, service: &Service) -> String {
    let home = service.home.display();
    let roots: String = service.roots.iter().map(|root| granted(root)).collect();
    // Nothing lies in an empty home but what is put there.
    let homes = if service.roots.iter().any(|root| is_hidden(root)) { "tmpfs" } else { "yes" };
    format!(
        "User={name}\n\
         Group={name}\n\
         ProtectSystem=strict\n\
         ReadWritePaths={home}\n\
         {roots}\
         ProtectHome={homes}\n\
         PrivateTmp=yes\n\
         PrivateDevices=yes\n\
         ProtectClock=yes\n\
         ProtectControlGroups=yes\n\
         ProtectHostname=yes\n\
         ProtectKernelLogs=yes\n\
         ProtectKernelModules=yes\n\
         ProtectKernelTunables=yes\n\
         RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n\
         RestrictNamespaces=yes\n\
         CapabilityBoundingSet=\n\
         SystemCallArchitectures=native\n"
    )
}

/// The line of a root, as it is read again. A folder that is away, on a disk for example, does not keep the desk from starting.
const ROOT: &str = "ReadWritePaths=-";

/// What gives the service a folder.
fn granted(root: &Path) -> String {
    let root_word = word(root);
    let seen = if is_hidden(root) { format!("BindPaths=-{root_word}\n") } else { String::new() };
    format!("{ROOT}{root_word}\n{seen}")
}

/// Whether a folder lies where `ProtectHome` hides everything.
fn is_hidden(root: &Path) -> bool {
    ["/home", "/root", "/run/user"].iter().any(|homes| root.starts_with(homes))
}

/// The roots that a unit was given.
pub(super) fn roots(unit: &str) -> Vec<PathBuf> {
    unit.lines().filter_map(|line| line.strip_prefix(ROOT)).map(unword).collect()
}

/// A path in a setting: quotes, backslashes and percent signs mean something there.
fn word(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

/// The path again.
fn unword(word: &str) -> PathBuf {
    let word = word.strip_prefix('"').and_then(|word| word.strip_suffix('"')).unwrap_or(word);
    let mut path = String::new();
    let mut rest = word.chars();
    while let Some(one) = rest.next() {
        path.push(if matches!(one, '\\' | '%') { rest.next().unwrap_or(one) } else { one });
    }
    path.into()
}

/// A word of `ExecStart`: percent and dollar signs mean something there.
fn quote(word: &str) -> String {
    let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:@+,".contains(c));
    if plain {
        return word.to_owned();
    }
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}
