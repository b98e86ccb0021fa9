//! What this machine can enforce.

use super::{Namespaces, Network, SUPPORTED};
use serde::{Deserialize, Serialize};

/// The Landlock version that keeps files, truncation, signals and abstract sockets without help (Linux 6.12).
pub(super) const LANDLOCK_ALONE: u32 = 6;

/// The version that keeps ports (Linux 6.7).
const LANDLOCK_PORTS: u32 = 4;

/// What this machine can enforce, found out by trying it in a process that is thrown away.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The operating system and the processor.
    pub machine: String,
    /// The version of Landlock's interface; 0 when there is none.
    pub landlock: u32,
    /// Whether system calls can be filtered, on this processor.
    pub seccomp: bool,
    /// Why they cannot.
    pub seccomp_why: Option<String>,
    /// Whether an ordinary account may make namespaces and mount what a view of the file system needs.
    pub namespaces: bool,
    /// Why there are no namespaces.
    pub namespaces_why: Option<String>,
    /// Whether the desk runs as root, whom limits on processes do not bind.
    pub root: bool,
}

impl Report {
    /// What a run with this choice of namespaces would lack, in words; nothing when it can be confined fully.
    pub fn missing(&self, namespaces: Namespaces, network: Network) -> Vec<String> {
        let mut missing = Vec::new();
        if !SUPPORTED {
            missing.push(format!("programs are confined on Linux on x86-64 and 64-bit ARM only, and this is {}", self.machine));
            return missing;
        }
        if self.root {
            missing.push("the desk runs as root, whom limits do not bind; run it under an ordinary account".into());
        }
        if !self.seccomp {
            let why = self.seccomp_why.as_deref().unwrap_or("no reason is known");
            missing.push(format!("a filter for system calls (seccomp: {why}), without which the {} stays open", left_open(network)));
        }
        let why = || self.namespaces_why.clone().unwrap_or_else(|| "no reason is known".into());
        if self.landlock == 0 {
            missing.push("Landlock (Linux 5.13 or newer, with `landlock` among its security modules)".into());
        }
        if matches!(network, Network::Port(_)) && self.landlock > 0 && self.landlock < LANDLOCK_PORTS {
            missing.push(format!("Landlock version {LANDLOCK_PORTS} (Linux 6.7) instead of {}, to keep a program to one port", self.landlock));
        }
        if namespaces == Namespaces::Required && !self.namespaces {
            missing.push(format!("user namespaces for ordinary accounts ({})", why()));
        }
        if self.landlock > 0 && self.landlock < LANDLOCK_ALONE && !self.uses_namespaces(namespaces) {
            missing.push(format!(
                "user namespaces for ordinary accounts ({}), or Landlock version {LANDLOCK_ALONE} (Linux 6.12) instead of {}",
                if namespaces == Namespaces::Never { "they were not to be used".into() } else { why() },
                self.landlock
            ));
        }
        missing
    }

    /// Whether a run with this choice takes namespaces.
    pub(super) fn uses_namespaces(&self, choice: Namespaces) -> bool {
        self.namespaces && choice != Namespaces::Never
    }
}

fn left_open(network: Network) -> &'static str {
    match network {
        Network::None => "network",
        Network::Port(_) | Network::Allowed => "way to Unix sockets",
    }
}
