//! The data directory, the server that holds it, and how the desk stands.

use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use deskmate_core::{World, parse_time};
use serde_json::Value;

use super::super::busy::busy;
use super::super::client::{As, Client};
use super::super::{Failure, Global};
use super::{Check, Checks};
use crate::config;
use crate::home::{Holder, Home};
use crate::world::{AHEAD_TOLD, Machine, wall};

/// The longest path that a socket can have.
const SOCKET_PATH_MAX: usize = 103;
/// Below this the desk could soon not write any more.
const FREE_BYTES_MIN: u64 = 100 << 20;
/// A clock that is before this was never set.
const CLOCK_MIN: i64 = 1_700_000_000_000_000;

pub(super) fn checks(global: &Global, checks: &mut Checks) -> Result<(), Failure> {
    let client = Client::new(global)?.with(As::Nobody);
    let home = client.home().clone();
    checks.add([directory(&home)])?;
    checks.add(space(&home))?;
    checks.look(|| match config::load(&global.given()).and_then(|settings| settings.check_folders().map(|()| settings)) {
        Ok(settings) => Check::ok("settings", format!("they can be used; the desk listens on {}", settings.listen)),
        Err(error) => Check::problem("settings", error.to_string()).fix("mend what it names: a server would not start"),
    })?;
    if Machine::new(0).now() < CLOCK_MIN {
        checks.add([Check::problem("clock", "it was never set").fix("set the machine's clock: tokens expire by it")])?;
    }
    let sockets = [home.socket(), home.http_socket()];
    if let Some(long) = sockets.iter().find(|path| path.as_os_str().len() > SOCKET_PATH_MAX) {
        let said = format!("{} is longer than {SOCKET_PATH_MAX} bytes", long.display());
        return checks.add([Check::problem("sockets", said).fix("choose a data directory that is not so deep")]);
    }
    let Some(holder) = home.running() else {
        return checks.add([Check::ok("server", "none runs; a client that needs one starts it, and so does `deskmate up`")]);
    };
    checks.add([server(&holder)])?;
    let deaf = sockets.iter().find_map(|path| UnixStream::connect(path).err().map(|error| format!("{}: {error}", path.display())));
    if let Some(deaf) = deaf {
        let fix = format!("`deskmate stop`, then `deskmate up`; {} tells more", home.log_file().display());
        return checks.add([Check::problem("sockets", deaf).fix(fix)]);
    }
    checks.add([Check::ok("sockets", "both answer")])?;
    checks.add(client.get("/healthz").ok().and_then(|health| ahead(&health, wall())))?;
    let sign = busy("looking");
    let status = client.get("/api/desk_status");
    drop(sign);
    match status {
        Ok(status) => checks.add(standing(&status)),
        Err(error) => checks.add([Check::problem("desk", error.text()).fix(format!("{} tells more", home.log_file().display()))]),
    }
}

fn directory(home: &Home) -> Check {
    let path = home.path().display();
    let found = match std::fs::metadata(home.path()) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Check::warning("data directory", format!("{path} is not there yet")).fix("`deskmate up` makes it");
        }
        Err(error) => return Check::problem("data directory", format!("{path}: {error}")).fix("name another with --home, or ask as the desk's own account"),
    };
    if !found.is_dir() {
        return Check::problem("data directory", format!("{path} is no folder")).fix("name another with --home");
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Check::problem("data directory", format!("{path} belongs to another account")).fix("run this as that account, or name another with --home");
    }
    if found.mode() & 0o022 != 0 {
        return Check::problem("data directory", format!("others can write in {path}")).fix(format!("chmod 700 {path}"));
    }
    Check::ok("data directory", format!("{path}, for its owner to change"))
}

fn space(home: &Home) -> Option<Check> {
    let figures = rustix::fs::statvfs(home.path()).ok()?;
    let free = figures.f_bavail.saturating_mul(figures.f_frsize);
    if free < FREE_BYTES_MIN {
        return Some(Check::problem("disk", format!("only {} MiB are free", free >> 20)).fix("make room: the desk refuses what it cannot write"));
    }
    Some(Check::ok("disk", format!("{} GiB are free", free >> 30)))
}

fn server(holder: &Holder) -> Check {
    let (ours, url) = (env!("CARGO_PKG_VERSION"), holder.url.as_deref().unwrap_or("not listening yet"));
    if holder.version == ours {
        return Check::ok("server", format!("version {ours}, process {}, {url}", holder.pid));
    }
    let said = format!("the server is version {}, this program is {ours}", holder.version);
    Check::warning("server", said).fix("restart the server with the newer of both; one in the background is replaced by itself")
}

/// The desk's time never goes back, so it is ahead where the clock was set back, or something was told while it was ahead.
fn ahead(health: &Value, wall: i64) -> Option<Check> {
    let desk = parse_time("time", health.get("time")?.as_str()?).ok()?;
    let seconds = (desk.saturating_sub(wall) > AHEAD_TOLD).then(|| (desk - wall) / 1_000_000)?;
    let said = format!("the desk's time is {seconds} s ahead of it, because something was recorded while it was ahead, or it was set back");
    Some(Check::warning("clock", said).fix("set it if it is behind; otherwise what expires, expires by the desk's time until the clock has caught up"))
}

fn standing(status: &Value) -> Vec<Check> {
    let text = |name: &str| status.get(name).and_then(Value::as_str).unwrap_or_default();
    let agents = status.get("agents").and_then(Value::as_i64).unwrap_or(0);
    let mode = match text("mode") {
        "open" => Check::ok("mode", "open: agents on this machine only say their names, and are marked as unverified"),
        mode => Check::ok("mode", format!("{mode}: {agents} registered agent{}", if agents == 1 { "" } else { "s" })),
    };
    let owner = if status.get("claimed").and_then(Value::as_bool) == Some(true) {
        Check::ok("owner", "somebody has claimed this desk")
    } else {
        Check::warning("owner", "nobody has claimed this desk, so nothing can be decided").fix("`deskmate claim` prints a link")
    };
    vec![mode, owner]
}
