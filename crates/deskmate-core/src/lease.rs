//! The one kind of lease: task claims, reservations and jobs all hold what they hold by it.
//!
//! A lease has a holder, a fence that grows with every new holder, and a time at which it ends unless the holder
//! gives a sign of life. Whoever acts under a lease shows its fence; after it was lost, that fence fits no longer.
//!
//! Table: `lease`.

use deskmate_db::{Engine, Row, Tx, args};

use crate::{Code, Error, Result};

/// A lease that stands, or stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What is held, for example `task:ID`.
    pub subject: String,
    /// Who holds it.
    pub holder: String,
    /// Which holding this is, counted from 1.
    pub fence: i64,
    /// When it ends without a sign of life.
    pub expires_at: i64,
}

const COLUMNS: &str = "select subject, holder, fence, expires_at from lease where subject = $1";

impl Lease {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self { subject: row.get(0)?, holder: row.get(1)?, fence: row.get(2)?, expires_at: row.get(3)? })
    }
}

/// The lease on a subject, if it stands now.
pub fn current(tx: &mut Tx<'_>, subject: &str, now: i64) -> Result<Option<Lease>> {
    let lease = tx.optional(COLUMNS, args![subject])?.map(|row| Lease::read(&row)).transpose()?;
    Ok(lease.filter(|lease| lease.expires_at > now))
}

/// Takes a lease if nobody holds it, or if its holder gave no sign of life in time. `None`: somebody else holds it.
pub fn acquire(tx: &mut Tx<'_>, subject: &str, holder: &str, ttl_us: i64, now: i64) -> Result<Option<Lease>> {
    let row = tx.optional(
        "insert into lease (subject, holder, fence, acquired_at, renewed_at, expires_at, ttl) values ($1, $2, 1, $3, $3, $4, $5) \
         on conflict (subject) do update set holder = excluded.holder, fence = lease.fence + 1, acquired_at = excluded.acquired_at, \
         renewed_at = excluded.renewed_at, expires_at = excluded.expires_at, ttl = excluded.ttl \
         where lease.expires_at <= $3 returning subject, holder, fence, expires_at",
        args![subject, holder, now, now.saturating_add(ttl_us), ttl_us],
    )?;
    row.map(|row| Lease::read(&row)).transpose()
}

/// Gives a sign of life. Refused if the lease was lost meanwhile.
pub fn renew(tx: &mut Tx<'_>, subject: &str, holder: &str, fence: i64, ttl_us: Option<i64>, now: i64) -> Result<Lease> {
    let row = tx.optional(
        "update lease set renewed_at = $4, ttl = coalesce($5, ttl), expires_at = $4 + coalesce($5, ttl) \
         where subject = $1 and holder = $2 and fence = $3 and expires_at > $4 returning subject, holder, fence, expires_at",
        args![subject, holder, fence, now, ttl_us],
    )?;
    row.map(|row| Lease::read(&row)).transpose()?.ok_or_else(lost)
}

/// Refuses whoever does not hold the lease now.
pub fn check(tx: &mut Tx<'_>, subject: &str, holder: &str, fence: Option<i64>, now: i64) -> Result<Lease> {
    let lease = current(tx, subject, now)?.filter(|lease| lease.holder == holder && fence.is_none_or(|fence| fence == lease.fence));
    lease.ok_or_else(lost)
}

fn lost() -> Error {
    Error::conflict("the lease was lost: it ran out or somebody else holds it now").hint("claim it again and look what happened meanwhile")
}

/// Ends a lease. The row stays, so that the next holder's fence is higher.
pub fn release(tx: &mut Tx<'_>, subject: &str, now: i64) -> Result<()> {
    tx.execute("update lease set expires_at = $2 where subject = $1 and expires_at > $2", args![subject, now])?;
    Ok(())
}

/// Forgets leases on subjects that are gone.
pub fn forget(tx: &mut Tx<'_>, subject: &str) -> Result<()> {
    tx.execute("delete from lease where subject = $1", args![subject])?;
    Ok(())
}

/// How far a clock may be from that of the database before servers take each other's leases for over.
const CLOCK_DIFFERENCE_MAX: i64 = 10_000_000;

/// Refuses a clock that is too far from the database's (PostgreSQL): every server tells by its own clock whether another
/// one's lease is over. On SQLite there is one server and one clock.
pub fn check_clock(tx: &mut Tx<'_>, now: i64) -> Result<()> {
    if tx.engine() == Engine::Sqlite {
        return Ok(());
    }
    let theirs: i64 = tx.one("select (extract(epoch from clock_timestamp()) * 1000000)::bigint", &[])?.get(0)?;
    let seconds = (now - theirs) / 1_000_000;
    if (now - theirs).abs() <= CLOCK_DIFFERENCE_MAX {
        return Ok(());
    }
    Err(Error::new(Code::Unavailable, format!("the time of this server is {seconds} s from the database's, and leases go by it"))
        .hint("let a time service set both clocks; where the desk's time is ahead of this machine's clock, the log says why"))
}
