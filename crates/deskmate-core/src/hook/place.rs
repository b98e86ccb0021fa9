//! Where an act reaches: inside the project or not, to what looks like a secret, or to what nobody gets back. Only names are
//! looked at; what a link on the disk points to is for the machine to know.

use super::shell::{ShellAct, Target, Verb};

/// Folders and files that hold secrets, by a part of their path.
const SECRET_PARTS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".htpasswd",
    ".git-credentials",
    ".deskmate",
    ".docker",
    ".password-store",
    ".vault-token",
    "shadow",
    "gshadow",
    "sudoers",
    "keychain",
    "keyrings",
    ".mozilla",
    "cookies.sqlite",
    "login.keychain",
];
/// Beginnings of names of files that hold secrets.
const SECRET_BEGINS: &[&str] = &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials", "secrets", ".credentials", "service-account", "service_account"];
/// Endings of such names.
const SECRET_ENDS: &[&str] = &[".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks", ".keystore", ".ppk", ".asc", ".gpg"];
/// Names that a pattern may stand for.
const SECRET_NAMES: &[&str] = &[
    ".env",
    ".env.local",
    ".env.production",
    "id_rsa",
    "id_ed25519",
    "server.pem",
    "private.key",
    "credentials",
    "credentials.json",
    "secrets.yaml",
    ".netrc",
    ".npmrc",
    ".git-credentials",
    "store.p12",
];
/// What a machine needs to work.
const VITAL: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/var",
    "/Users",
    "/System",
    "/Library",
    "/Applications",
];

/// Whether a path is the project or beneath it.
fn is_beneath(path: &str, project: &str) -> bool {
    project != "/" && (path == project || path.strip_prefix(project).is_some_and(|rest| rest.starts_with('/')))
}

/// Whether every place that a target may be is inside the project.
pub(super) fn is_inside(target: &Target, project: Option<&str>) -> bool {
    match (&target.places, project) {
        (Some(places), Some(project)) => places.iter().all(|place| is_beneath(place, project)),
        _ => false,
    }
}

/// Whether a path looks as if it held secrets.
pub(super) fn is_secret(path: &str) -> bool {
    path.split('/').any(|part| {
        let name = part.to_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|end| name.ends_with(end));
        let is_example = ends(&[".example", ".sample", ".template", ".dist"]);
        let is_environment = (name == ".env" || name.starts_with(".env.") || name == ".envrc") && !is_example;
        let is_named = SECRET_PARTS.contains(&name.as_str()) || ends(SECRET_ENDS);
        let begins = SECRET_BEGINS.iter().any(|begin| name.starts_with(begin)) && !ends(&[".pub", ".rs", ".md"]);
        let is_pattern = name.contains(['*', '?', '[']);
        // A pattern for everything is a look around; a narrower one may be after just such a file.
        let may_be = is_pattern && name.chars().any(|char| char != '*') && SECRET_NAMES.iter().any(|secret| fits(&name, secret));
        is_environment || is_named || begins || may_be
    })
}

/// Whether what a search goes by is after what looks like a secret. A whole kind of files is no such thing (`*.json`), unless all of them
/// look like one (`*.pem`): without it the search goes through them, too.
pub(super) fn seeks_secret(filter: &str) -> bool {
    let is_kind = |before: &str, kind: &str| (before.is_empty() || before.ends_with('/')) && kind.chars().all(|char| char.is_ascii_alphanumeric());
    match filter.rsplit_once("*.") {
        Some((before, kind)) if is_kind(before, kind) => is_secret(&format!("{before}x.{kind}")),
        _ => is_secret(filter),
    }
}

/// Whether a pattern of the shell stands for a name, among others.
fn fits(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    globset::Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(name))
}

/// Whether an act takes away what nobody gets back: the machine, the home directory, a folder around the project, a disk.
pub(super) fn destroys(act: &ShellAct, project: Option<&str>) -> bool {
    let is_disk =
        |place: &String| ["/dev/sd", "/dev/nvme", "/dev/vd", "/dev/hd", "/dev/disk", "/dev/mmcblk", "/dev/mapper"].iter().any(|disk| place.starts_with(disk));
    let formats = act.program.starts_with("mkfs") || act.program == "wipefs";
    let is_write = act.verb == Verb::FileWrite && act.targets.iter().filter_map(|target| target.places.as_ref()).flatten().any(is_disk);
    if formats || is_write {
        return true;
    }
    let takes = act.verb == Verb::FileDelete || matches!(act.program.as_str(), "chmod" | "chown" | "chgrp");
    takes && act.is_recursive && act.targets.iter().any(|target| is_vital(target, project))
}

fn is_vital(target: &Target, project: Option<&str>) -> bool {
    // The home directory, by its signs.
    let shown = target.shown.trim_end_matches("/*").trim_end_matches('/');
    if matches!(shown, "~" | "${HOME}" | "${HOME…}") || (shown.is_empty() && target.shown.starts_with('/')) {
        return true;
    }
    target.places.iter().flatten().any(|place| {
        let place = place.strip_suffix("/*").unwrap_or(place);
        let place = if place.is_empty() { "/" } else { place };
        let is_around = project.is_some_and(|project| project != place && is_beneath(project, place));
        let is_a_home = matches!(place.split('/').collect::<Vec<_>>().as_slice(), ["", "home" | "Users", _]);
        VITAL.contains(&place) || is_around || is_a_home
    })
}

#[cfg(test)]
mod tests {
    use super::super::shell::acts;
    use super::*;

    fn lost(line: &str) -> bool {
        acts(line, Some("/home/ada/work/p")).iter().any(|act| destroys(act, Some("/home/ada/work/p")))
    }

    #[test]
    fn what_nobody_gets_back_is_known() {
        for line in [
            "rm -rf /",
            "rm -rf /*",
            "rm -rf ~",
            "rm -rf ~/",
            "rm -rf $HOME",
            "rm -rf \"$HOME\"/*",
            "rm -rf /etc",
            "rm -rf ..",
            "rm -rf ../..",
            "rm -rf /home/ada",
            "cd / && rm -rf *",
            "rm -rf /usr/",
            "rm -rf //",
            "rm -rf /./",
            "find / -delete",
            "chmod -R 777 /",
            "dd if=/dev/zero of=/dev/sda",
            "mkfs.ext4 /dev/sdb",
            "echo x > /dev/sda",
            "sh -c 'rm -rf /'",
        ] {
            assert!(lost(line), "{line}");
        }
        for line in ["rm -rf target", "rm -rf ./node_modules", "rm f", "rm -rf /home/ada/work/p/x", "rm -rf /home/ada/other/x", "ls /", "chmod +x f"] {
            assert!(!lost(line), "{line}");
        }
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for path in [".env", "/p/.env.local", "/home/a/.ssh/config", "/p/id_rsa", "/p/server.pem", "/p/.e*", "/p/*.key", "/p/id_*", "/etc/shadow", "/p/.ENV"] {
            assert!(is_secret(path), "{path}");
        }
        for path in ["/p/.env.example", "/p/src/main.rs", "/p/*", "/p/**/*.rs", "/p/environment.md", "/p/id_rsa.pub", "/p/src/secrets.rs", "/p/keyboard.ts"] {
            assert!(!is_secret(path), "{path}");
        }
    }

    #[test]
    fn a_whole_kind_of_files_is_no_secret() {
        for filter in [".env", "a/.env", "*/.ssh/*.json", "*.pem", "**/*.key", ".e*", "cred*.json", "*.{json,rs}"] {
            assert!(seeks_secret(filter), "{filter}");
        }
        for filter in ["*.json", "**/*.yaml", "./src/*.rs", "*"] {
            assert!(!seeks_secret(filter), "{filter}");
        }
    }

    #[test]
    fn inside_is_beneath_the_project_in_every_case() {
        let target = |places: &[&str]| Target { shown: String::new(), places: Some(places.iter().map(|place| (*place).to_owned()).collect()) };
        assert!(is_inside(&target(&["/p", "/p/a"]), Some("/p")));
        assert!(!is_inside(&target(&["/p/a", "/q"]), Some("/p")));
        assert!(!is_inside(&target(&["/pa"]), Some("/p")));
        assert!(!is_inside(&target(&["/a"]), Some("/")), "the whole machine is no project");
        assert!(!is_inside(&Target { shown: "x".to_owned(), places: None }, Some("/p")));
        assert!(!is_inside(&target(&["/p"]), None));
    }
}
