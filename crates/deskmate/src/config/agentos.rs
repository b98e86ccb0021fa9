//! What the environment of an AgentOS server says, as far as it means something here. A value that cannot be understood stops the start:
//! there it counted as the loosest one.

use deskmate_core::policy::{Document, PolicyMode};

use super::{ConfigError, FILE, LogLevel, Result, env};

const POLICY_MODE: &str = "AGENTOS_POLICY_MODE";
const LOG_LEVEL: &str = "AGENTOS_LOG_LEVEL";
/// Variables without an effect on a server, and why.
const WITHOUT_EFFECT: [(&str, &str); 2] = [
    ("AGENTOS_API_KEY", "agents run on servers of this desk, and no cloud of others is asked, so there is no use for its key; take it out of the environment"),
    ("AGENTOS_DATA_DIR", "`deskmate import agentos` reads that directory; the server keeps its data where DESKMATE_HOME says"),
];

/// How much is logged, if it says so.
pub(super) fn log_level() -> Result<Option<LogLevel>> {
    let Some(name) = env(LOG_LEVEL) else { return Ok(None) };
    let level = match name.as_str() {
        "error" => LogLevel::Error,
        "warn" => LogLevel::Warn,
        "info" => LogLevel::Info,
        "debug" => LogLevel::Debug,
        _ => return Err(ConfigError(format!("{LOG_LEVEL}: {name:?} is not a level: write error, warn, info or debug"))),
    };
    Ok(Some(level))
}

/// Puts the policy mode that it names into the draft, where what loosens something waits for an owner.
pub(super) fn policy_mode(draft: Option<Document>) -> Result<Option<Document>> {
    with_mode(draft, env(POLICY_MODE).as_deref())
}

fn with_mode(draft: Option<Document>, named: Option<&str>) -> Result<Option<Document>> {
    let mode = match named {
        None => return Ok(draft),
        Some("strict") => PolicyMode::Strict,
        Some("permissive") => PolicyMode::Permissive,
        Some(other) => return Err(ConfigError(format!("{POLICY_MODE}: {other:?} is not a mode: write strict or permissive"))),
    };
    let mut draft = draft.unwrap_or_default();
    if draft.mode.is_some_and(|own| own != mode) {
        return Err(ConfigError(format!("{POLICY_MODE} and policy_mode in {FILE} say different things: take one of them away")));
    }
    draft.mode = Some(mode);
    Ok(Some(draft))
}

/// What is set and does nothing here, for whoever starts the server.
pub(crate) fn without_effect() -> Vec<String> {
    WITHOUT_EFFECT.into_iter().filter(|(name, _)| env(name).is_some()).map(|(name, why)| format!("{name} has no effect: {why}")).collect()
}

/// The same for whoever starts a client. A server that was there before has an environment of its own, and does not read the client's.
pub(crate) fn unread(was_there: bool) -> Vec<String> {
    let of_a_start = [POLICY_MODE, LOG_LEVEL].into_iter().filter(|name| was_there && env(name).is_some());
    let mut told: Vec<String> = of_a_start.map(|name| format!("{name} has no effect: the server runs already, and reads it only when it starts")).collect();
    told.extend(without_effect());
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_that_is_misspelt_or_contradicted_stops_the_start() {
        for wrong in ["permisive", "Strict", "off", " strict"] {
            assert!(with_mode(None, Some(wrong)).is_err(), "{wrong}");
        }
        let strict = Document { mode: Some(PolicyMode::Strict), ..Document::default() };
        assert!(with_mode(Some(strict.clone()), Some("permissive")).is_err());
        assert_eq!(with_mode(Some(strict.clone()), Some("strict")).unwrap(), Some(strict));
        assert_eq!(with_mode(None, Some("permissive")).unwrap().unwrap().mode, Some(PolicyMode::Permissive));
        assert_eq!(with_mode(None, None).unwrap(), None);
    }
}
