//! Reservations of paths: who is about to change which files, so that others keep off. They bind nobody's file system;
//! they are what actors tell each other.

use deskmate_db::{Row, Tx, args};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::party::{self, called, check_said, lease_time, me, sees_all, trust};
use super::paths::{Pattern, normalise};
use super::rows::{fitting, size_of_all};
use crate::call::{Cx, Page, PageIn};
use crate::limits::{PATHS_MAX, RESERVATIONS_MAX, RESERVED_PATHS_MAX, TITLE_CHARS_MAX};
use crate::record::{Event, Kind};
use crate::{Code, Error, Result, format_time, lease};

/// Paths were reserved.
pub(super) const RESERVED: Kind = Kind { name: "paths.reserved", says: "An actor reserved paths of a project for a while." };
/// Paths were released.
pub(super) const RELEASED: Kind = Kind { name: "paths.released", says: "An actor released paths, or a person did it for them." };
/// A holder gave no sign of life.
pub(super) const EXPIRED: Kind = Kind { name: "paths.expired", says: "The holder of a reservation did not renew it in time; it has ended." };

/// How a reservation shares its paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Nobody else may reserve any of them: for changing.
    #[default]
    Exclusive,
    /// Others may share them, and nobody may have them exclusively: for reading what must stay as it is.
    Shared,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
        }
    }
}

/// A reservation that stands.
struct Held {
    id: String,
    project: String,
    holder_kind: String,
    holder: String,
    verified: bool,
    mode: Mode,
    paths: Vec<String>,
    reason: Option<String>,
    created_at: i64,
    expires_at: i64,
}

/// The columns of a reservation `r` with its lease `l`. The lease goes with the reservation, so that one that ended has none.
macro_rules! held {
    ($tail:literal) => {
        concat!(
            "select r.id, r.project, r.holder_kind, r.holder, r.verified, r.mode, r.paths, r.reason, r.created_at, l.expires_at \
             from reservation r join lease l on l.subject = 'paths:' || r.id where r.paths is not null and l.expires_at > $1 ",
            $tail
        )
    };
}

pub(super) const HELD: &str = held!("and r.released_at is null and r.project = $2 and (r.created_at, r.id) > ($3, $4) order by r.created_at, r.id limit $5");
pub(super) const EXPIRED_NOW: &str = "select r.id, r.holder from reservation r left join lease l on l.subject = 'paths:' || r.id \
     where r.released_at is null and coalesce(l.expires_at, 0) <= $1 order by r.project, r.created_at, r.id limit $2";
const HELD_BY_ID: &str = held!("and r.id = $2");

impl Held {
    fn read(row: &Row) -> Result<Self> {
        let (mode, paths): (String, String) = (row.get(5)?, row.get(6)?);
        let paths = serde_json::from_str(&paths).map_err(|error| Error::new(Code::Internal, format!("a reservation is unreadable: {error}")))?;
        Ok(Self {
            id: row.get(0)?,
            project: row.get(1)?,
            holder_kind: row.get(2)?,
            holder: row.get(3)?,
            verified: row.get(4)?,
            mode: if mode == "shared" { Mode::Shared } else { Mode::Exclusive },
            paths,
            reason: row.get(7)?,
            created_at: row.get(8)?,
            expires_at: row.get(9)?,
        })
    }

    /// The first path of this reservation that one of the others can mean as well.
    fn meets(&self, others: &[Pattern]) -> Option<&String> {
        self.paths.iter().find(|own| {
            let own = Pattern::new(own);
            others.iter().any(|other| own.overlaps(other))
        })
    }
}

fn subject(id: &str) -> String {
    format!("paths:{id}")
}

/// All reservations that stand in a project.
fn held_in(tx: &mut Tx<'_>, project: &str, now: i64) -> Result<Vec<Held>> {
    let bound = i64::try_from(RESERVATIONS_MAX).unwrap_or(i64::MAX);
    tx.query(HELD, args![now, project, 0_i64, "", bound])?.iter().map(Held::read).collect()
}

fn normalise_all(paths: &[String]) -> Result<Vec<String>> {
    if paths.is_empty() || paths.len() > PATHS_MAX {
        return Err(Error::invalid("paths", format!("must be 1 to {PATHS_MAX} paths or globs")));
    }
    let mut spelled = paths.iter().map(|path| normalise("paths", path)).collect::<Result<Vec<_>>>()?;
    spelled.sort();
    spelled.dedup();
    Ok(spelled)
}

/// Reserve files that you are about to change, so that others keep off. A reservation ends by itself; renew it while you
/// work and release it when you are done. If somebody holds any of them, the refusal names who and until when.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReservePaths {
    /// Files or globs relative to the project, for example `src/main.rs` or `docs/**`; a directory ends in `/`.
    paths: Vec<String>,
    /// `exclusive` if not given.
    mode: Option<Mode>,
    /// How long it stands without a renewal: 5 to 86400, 600 if not given.
    lease_seconds: Option<u32>,
    /// What for, for the others.
    reason: Option<String>,
    /// Which project; `default` if not given.
    project: Option<String>,
}

/// A reservation.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReservationOut {
    /// Its id.
    reservation_id: String,
    /// The project.
    project: String,
    /// Who holds it, from the holder's credential.
    holder: String,
    /// What a reader may make of the holder, for example `unverified, claims to be code`.
    trust: String,
    /// How it shares its paths.
    mode: Mode,
    /// The paths and globs.
    paths: Vec<String>,
    /// What for, in the holder's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Since when.
    created_at: String,
    /// Until when, unless it is renewed.
    expires_at: String,
}

impl From<Held> for ReservationOut {
    fn from(held: Held) -> Self {
        Self {
            trust: trust(&held.holder_kind, &held.holder, held.verified),
            reservation_id: held.id,
            project: held.project,
            holder: held.holder,
            mode: held.mode,
            paths: held.paths,
            reason: held.reason.filter(|reason| !reason.is_empty()),
            created_at: format_time(held.created_at),
            expires_at: format_time(held.expires_at),
        }
    }
}

pub(super) fn reserve(cx: &mut Cx<'_, '_>, input: ReservePaths) -> Result<ReservationOut> {
    let (me, now) = (me(cx)?, cx.now());
    let (ttl, project, paths) = (lease_time(input.lease_seconds)?, party::project(input.project)?, normalise_all(&input.paths)?);
    if let Some(reason) = &input.reason {
        check_said("reason", reason, TITLE_CHARS_MAX)?;
    }
    let mode = input.mode.unwrap_or_default();
    let standing = held_in(cx.tx, &project, now)?;
    check_room(&standing, paths.len())?;
    let wanted: Vec<Pattern> = paths.iter().map(|path| Pattern::new(path)).collect();
    for other in standing.iter().filter(|other| other.holder != me && (mode == Mode::Exclusive || other.mode == Mode::Exclusive)) {
        if let Some(path) = other.meets(&wanted) {
            let refusal = format!("{} holds {path} ({}) until {}", called(cx, &other.holder)?, other.mode.name(), format_time(other.expires_at));
            return Err(Error::conflict(refusal).hint("wait until then, ask the holder, or take other files"));
        }
    }
    let id = cx.new_id();
    let held = lease::acquire(cx.tx, &subject(&id), &me, ttl, now)?.ok_or_else(|| Error::conflict("the reservation exists already"))?;
    let held = Held {
        id,
        project,
        holder_kind: cx.actor.kind.name().to_owned(),
        holder: me,
        verified: cx.actor.verified,
        mode,
        paths,
        reason: Some(input.reason.unwrap_or_default()),
        created_at: now,
        expires_at: held.expires_at,
    };
    insert(cx, &held)?;
    Ok(held.into())
}

fn check_room(standing: &[Held], more: usize) -> Result<()> {
    let paths: usize = standing.iter().map(|held| held.paths.len()).sum();
    if standing.len() >= RESERVATIONS_MAX || paths + more > RESERVED_PATHS_MAX {
        let full = format!("{} reservations of {paths} paths stand in this project; at most {RESERVATIONS_MAX} of {RESERVED_PATHS_MAX} may", standing.len());
        return Err(Error::limited(full, 60_000).hint("a directory or a glob covers many files as one path"));
    }
    Ok(())
}

fn insert(cx: &mut Cx<'_, '_>, held: &Held) -> Result<()> {
    cx.tx.execute(
        "insert into reservation (id, project, holder_kind, holder, verified, mode, paths, reason, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        args![
            held.id,
            held.project,
            held.holder_kind,
            held.holder,
            held.verified,
            held.mode.name(),
            json!(held.paths).to_string(),
            held.reason,
            held.created_at
        ],
    )?;
    cx.emit(
        Event::new(RESERVED, subject(&held.id))
            .fact("reservation", held.id.as_str())
            .fact("project", held.project.as_str())
            .fact("mode", held.mode.name())
            .fact("paths", held.paths.len())
            .fact("expires_at", held.expires_at)
            .payload(json!({ "paths": held.paths, "reason": held.reason })),
    )
}

/// Release paths that you reserved: a whole reservation by its id, or single paths as you reserved them. A person may
/// release anybody's reservation by its id.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleasePaths {
    /// The reservation to end.
    reservation_id: Option<String>,
    /// Paths to let go, spelled as they were reserved; in all your reservations of the project.
    paths: Option<Vec<String>>,
    /// With `paths`: which project; `default` if not given.
    project: Option<String>,
}

/// What was released.
#[derive(Serialize, JsonSchema)]
pub(super) struct Released {
    /// Reservations that ended.
    ended: Vec<String>,
    /// The paths that were let go.
    paths: Vec<String>,
}

pub(super) fn release(cx: &mut Cx<'_, '_>, input: ReleasePaths) -> Result<Released> {
    let (me, now) = (me(cx)?, cx.now());
    let mut released = Released { ended: Vec::new(), paths: Vec::new() };
    match (input.reservation_id, input.paths) {
        (Some(id), None) => {
            let held = find_held(cx, &id, &me)?;
            let paths = held.paths.clone();
            let_go(cx, &held, &paths, &mut released)?;
        }
        (None, Some(paths)) => {
            let (project, paths) = (party::project(input.project)?, normalise_all(&paths)?);
            for held in held_in(cx.tx, &project, now)?.into_iter().filter(|held| held.holder == me) {
                let_go(cx, &held, &paths, &mut released)?;
            }
            if released.paths.is_empty() {
                return Err(Error { field: Some("paths".to_owned()), ..Error::not_found("you hold none of these paths") });
            }
        }
        _ => return Err(Error::invalid("reservation_id", "give either reservation_id or paths")),
    }
    Ok(released)
}

/// A reservation of the caller; people reach everybody's.
fn find_held(cx: &mut Cx<'_, '_>, id: &str, me: &str) -> Result<Held> {
    let (id, now) = (party::id("reservation_id", id)?, cx.now());
    let held = cx.tx.optional(HELD_BY_ID, args![now, id])?.map(|row| Held::read(&row)).transpose()?;
    let none = || Error { field: Some("reservation_id".to_owned()), ..Error::not_found(format!("no reservation {id} stands")) };
    let held = held.ok_or_else(none)?;
    if held.holder != me && !sees_all(cx) {
        return Err(Error::forbidden(format!("{} holds this reservation", called(cx, &held.holder)?)));
    }
    Ok(held)
}

fn let_go(cx: &mut Cx<'_, '_>, held: &Held, paths: &[String], released: &mut Released) -> Result<()> {
    let now = cx.now();
    let (gone, kept): (Vec<&String>, Vec<&String>) = held.paths.iter().partition(|path| paths.contains(path));
    if gone.is_empty() {
        return Ok(());
    }
    if kept.is_empty() {
        end(cx.tx, &held.id, now)?;
        released.ended.push(held.id.clone());
    } else {
        cx.tx.execute("update reservation set paths = $2 where id = $1", args![held.id, json!(kept).to_string()])?;
    }
    released.paths.extend(gone.iter().map(|path| (*path).clone()));
    cx.emit(
        Event::new(RELEASED, subject(&held.id))
            .fact("reservation", held.id.as_str())
            .fact("paths", gone.len())
            .fact("left", kept.len())
            .payload(json!({ "paths": gone }))
            .audience([held.holder.as_str()]),
    )
}

fn end(tx: &mut Tx<'_>, id: &str, now: i64) -> Result<()> {
    tx.execute("update reservation set released_at = $2 where id = $1", args![id, now])?;
    lease::forget(tx, &subject(id))
}

/// Renew a reservation that you hold, so that it stands longer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RenewPaths {
    /// The reservation's id.
    reservation_id: String,
    /// How long it stands from now on; as long as before if not given.
    lease_seconds: Option<u32>,
}

pub(super) fn renew(cx: &mut Cx<'_, '_>, input: RenewPaths) -> Result<ReservationOut> {
    let (me, now) = (me(cx)?, cx.now());
    let ttl = input.lease_seconds.map(|seconds| lease_time(Some(seconds))).transpose()?;
    let held = find_held(cx, &input.reservation_id, &me)?;
    let standing = lease::check(cx.tx, &subject(&held.id), &me, None, now)?;
    let renewed = lease::renew(cx.tx, &standing.subject, &me, standing.fence, ttl, now)?;
    Ok(Held { expires_at: renewed.expires_at, ..held }.into())
}

/// List the reservations that stand in a project, oldest first.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListReservations {
    /// Which project; `default` if not given.
    project: Option<String>,
    /// Only those that can mean this file or glob as well.
    path: Option<String>,
    /// How many; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of reservations.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reservations {
    /// The reservations.
    reservations: Vec<ReservationOut>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: ListReservations) -> Result<Reservations> {
    me(cx)?;
    let (project, now) = (party::project(input.project)?, cx.now());
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let path = input.path.as_deref().map(|path| Ok::<_, Error>([Pattern::new(&normalise("path", path)?)])).transpose()?;
    let after = page.after.clone().unwrap_or_default();
    // A project has a bounded number of reservations, so that the few that fit can be picked here.
    let mut found = held_in(cx.tx, &project, now)?;
    found.retain(|held| (held.created_at, &held.id) > (after.0, &after.1) && path.as_ref().is_none_or(|path| held.meets(path).is_some()));
    let sizes: Vec<i64> = found.iter().map(|held| size_of_all(&held.paths) + 1024).collect();
    let page = PageIn { limit: fitting(&sizes).min(page.limit), after: None };
    let found = Page::cut(found, &page, |held| (held.created_at, held.id.clone()));
    Ok(Reservations { reservations: found.items.into_iter().map(Into::into).collect(), next_cursor: found.next_cursor })
}

/// Ends reservations that were not renewed in time, and tells the record. They count for nothing before that; this
/// makes it seen by whoever waits. Answers how many there were.
pub fn sweep_reservations(cx: &mut Cx<'_, '_>, limit: u32) -> Result<u32> {
    let now = cx.now();
    let rows = cx.tx.query(EXPIRED_NOW, args![now, limit])?;
    let mut swept = 0;
    for row in rows {
        let (id, holder): (String, String) = (row.get(0)?, row.get(1)?);
        end(cx.tx, &id, now)?;
        cx.emit(Event::new(EXPIRED, subject(&id)).fact("reservation", id.as_str()).fact("holder", holder.as_str()).audience([holder]))?;
        swept += 1;
    }
    Ok(swept)
}
