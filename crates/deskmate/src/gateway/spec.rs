//! A mount as its client needs it: with its secrets, which are looked up when it is used and are nowhere else.

use std::time::Duration;

use deskmate_core::call::{Actor, Cx, Surface};
use deskmate_core::gateway::{self, Mount, SECRET};
use deskmate_core::{Error, Result, secret};

use crate::app::App;
use crate::upstream::{Spec, Transport};

/// The program that is started. The desk's own connectors are this program, wherever it lies.
fn program(command: &str, args: &[String]) -> String {
    let is_own = command == "deskmate" && args.first().is_some_and(|word| word == "connector");
    let own = std::env::current_exe().ok().filter(|_| is_own).and_then(|path| path.into_os_string().into_string().ok());
    own.unwrap_or_else(|| command.to_owned())
}

/// A mount that is served, and how it is reached.
pub(super) async fn of(app: &App, name: &str) -> Result<(Mount, Spec)> {
    let (desk, name) = (app.desk.clone(), name.to_owned());
    app.desk.db.read(move |tx| read(&mut desk.cx(tx, Actor::system(), Surface::System), &name)).await
}

/// The same within a transaction of the desk's own.
pub(crate) fn read(cx: &mut Cx<'_, '_>, name: &str) -> Result<(Mount, Spec)> {
    let mount = gateway::mount_of(cx, name)?;
    let mut hidden = Vec::new();
    let mut value = |text: &String| -> Result<String> {
        let Some((before, name)) = text.split_once(SECRET) else { return Ok(text.clone()) };
        let secret = secret::resolve(cx, name.trim())?;
        hidden.push(secret.to_string());
        Ok(format!("{before}{}", secret.as_str()))
    };
    let transport = match (&mount.command, &mount.url) {
        (Some(command), _) => Transport::Stdio {
            command: program(command, &mount.args),
            args: mount.args.clone(),
            env: mount.env.iter().map(|(name, text)| Ok((name.clone(), value(text)?))).collect::<Result<_>>()?,
            cwd: mount.cwd.as_ref().map(Into::into),
        },
        (None, Some(url)) => {
            Transport::Http { url: url.clone(), headers: mount.headers.iter().map(|(name, text)| Ok((name.clone(), value(text)?))).collect::<Result<_>>()? }
        }
        (None, None) => return Err(Error::conflict(format!("the mount {} has neither a command nor an address", mount.name))),
    };
    let mut spec = Spec::new(&mount.name, transport);
    spec.shared = mount.shared;
    spec.hidden = hidden;
    spec.bounds.call = Duration::from_secs(u64::from(mount.timeout_seconds));
    spec.bounds.call_total = spec.bounds.call_total.max(spec.bounds.call);
    Ok((mount, spec))
}
