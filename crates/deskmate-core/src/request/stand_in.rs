//! Who decides in the place of others: stand-ins whom people name for a while, and those to whom policy sends what nobody answered.
//! Neither gives anybody a role. A person has one vote, and a place that is taken is taken once.

use std::collections::BTreeSet;

use deskmate_db::args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::{check_fresh, find_person};
use super::model::Request;
use crate::call::{Cx, Page, PageIn};
use crate::limits::STAND_IN;
use crate::policy::{self, Decision};
use crate::record::{Event, Kind};
use crate::{Error, Result, format_time, parse_time};

/// Somebody stands in.
pub(super) const NAMED: Kind = Kind { name: "stand_in.named", says: "A person named somebody who decides in their place for a while." };
/// Nobody does any more.
pub(super) const ENDED: Kind = Kind { name: "stand_in.ended", says: "A person ended that somebody decides in their place." };

/// Name somebody who decides in your place until a moment: where you are named as an approver their approval counts for yours, and
/// what is given to you is told to them too. They need a role of their own that covers the domain, and have one vote.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Name {
    /// The person's name or id.
    stand_in: String,
    /// Until when, for example `2026-11-15T09:30:00Z`; at most 90 days ahead.
    until: String,
}

/// Who stands in for whom.
#[derive(Serialize, JsonSchema)]
pub(super) struct StandInOut {
    /// Whose place it is, by id.
    person: String,
    /// Who decides in it, by id.
    stand_in: String,
    /// Until when.
    until: String,
    /// Since when.
    since: String,
}

pub(super) fn name(cx: &mut Cx<'_, '_>, input: Name) -> Result<StandInOut> {
    check_fresh(cx, "naming a stand-in, who then decides in your place,")?;
    let until = parse_time("until", &input.until)?;
    let now = cx.now();
    let longest = i64::try_from(STAND_IN.as_micros()).unwrap_or(i64::MAX);
    if until <= now || until > now.saturating_add(longest) {
        return Err(Error::invalid("until", "must be in the future, and at most 90 days ahead"));
    }
    let found = find_person(cx, &input.stand_in)?.filter(super::access::Person::decides_anywhere);
    let found = found.ok_or_else(|| Error::invalid("stand_in", "nobody of this name decides here").hint("`deskmate person list` shows who does"))?;
    let person = cx.actor.id.clone();
    if found.id == person {
        return Err(Error::invalid("stand_in", "is yourself"));
    }
    cx.tx.execute(
        "insert into stand_in (person, stand_in, until_at, named_at) values ($1, $2, $3, $4) on conflict (person) do update set stand_in = excluded.stand_in, \
         until_at = excluded.until_at, named_at = excluded.named_at",
        args![person, found.id, until, now],
    )?;
    let event = Event::new(NAMED, format!("person:{person}")).fact("person", person.as_str()).fact("stand_in", found.id.as_str());
    cx.emit(event.fact("until_at", until).fact("named_at", now).audience([person.as_str(), found.id.as_str()]))?;
    Ok(StandInOut { person, stand_in: found.id, until: format_time(until), since: format_time(now) })
}

/// End that somebody decides in your place; an owner also ends it for others.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    /// Whose stand-in, by the person's name or id; yours if not given.
    person: Option<String>,
}

pub(super) fn end(cx: &mut Cx<'_, '_>, input: End) -> Result<StandInOut> {
    let me = cx.actor.id.clone();
    let person = match input.person {
        None => me.clone(),
        Some(named) => find_person(cx, &named)?.map(|person| person.id).ok_or_else(|| Error::not_found(format!("there is nobody called {named}")))?,
    };
    if person != me && cx.actor.role != Some(crate::call::Role::Owner) {
        return Err(Error::forbidden("only an owner ends what somebody else named"));
    }
    let row = cx.tx.optional("select person, stand_in, until_at, named_at from stand_in where person = $1", args![person])?;
    let row = row.ok_or_else(|| Error::not_found("nobody stands in"))?;
    let ended = StandInOut { person: row.get(0)?, stand_in: row.get(1)?, until: format_time(row.get(2)?), since: format_time(row.get(3)?) };
    cx.tx.execute("delete from stand_in where person = $1", args![person])?;
    let event = Event::new(ENDED, format!("person:{person}")).fact("person", person.as_str()).fact("stand_in", ended.stand_in.as_str());
    cx.emit(event.audience([person.as_str(), ended.stand_in.as_str()]))?;
    Ok(ended)
}

/// List who stands in for whom.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// How many; 50 if not given, at most 200.
    limit: Option<u32>,
    /// Where the previous page ended.
    cursor: Option<String>,
}

/// A page of stand-ins.
#[derive(Serialize, JsonSchema)]
pub(super) struct StandIns {
    /// Who stands in for whom now.
    stand_ins: Vec<StandInOut>,
    /// Give this as `cursor` for the next page. Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

pub(super) fn list(cx: &mut Cx<'_, '_>, input: List) -> Result<StandIns> {
    let page = PageIn::new(input.limit, input.cursor.as_deref())?;
    let after = page.after.as_ref().map_or("", |(_, person)| person.as_str());
    let now = cx.now();
    let rows = cx.tx.query(
        "select person, stand_in, until_at, named_at from stand_in where person > $1 and until_at > $2 order by person limit $3",
        args![after, now, page.look_ahead()],
    )?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push(StandInOut { person: row.get(0)?, stand_in: row.get(1)?, until: format_time(row.get(2)?), since: format_time(row.get(3)?) });
    }
    let page = Page::cut(found, &page, |row| (0, row.person.clone()));
    Ok(StandIns { stand_ins: page.items, next_cursor: page.next_cursor })
}

/// Who stands in for a person now.
pub(super) fn of(cx: &mut Cx<'_, '_>, person: &str) -> Result<Option<String>> {
    let now = cx.now();
    Ok(cx.tx.optional("select stand_in from stand_in where person = $1 and until_at > $2", args![person, now])?.map(|row| row.get(0)).transpose()?)
}

/// To whom a request goes that nobody answered, once that time has come. `None` before it, or where policy says nothing.
pub(super) fn escalated_to(cx: &mut Cx<'_, '_>, request: &Request) -> Result<Option<Vec<String>>> {
    let authority = policy::current(cx)?.settings(&request.domain).authority.clone();
    let Some(seconds) = authority.escalate_seconds else { return Ok(None) };
    if cx.now() < request.created_at.saturating_add(i64::from(seconds) * 1_000_000) {
        return Ok(None);
    }
    let mut people = Vec::new();
    for named in &authority.escalate_to {
        people.extend(find_person(cx, named)?.map(|person| person.id).filter(|id| !people.contains(id)));
    }
    Ok(Some(people))
}

/// The places of those who are named for a request, and who may take them.
pub(super) struct Seats {
    named: Vec<String>,
    /// Who stands in, and in whose place.
    stand_ins: Vec<(String, String)>,
}

impl Seats {
    /// `None`: everybody decides whose role covers the domain.
    pub(super) fn of(cx: &mut Cx<'_, '_>, request: &Request, decision: &Decision) -> Result<Option<Self>> {
        if decision.needs.approvers.is_empty() {
            return Ok(None);
        }
        let mut named: Vec<String> = Vec::new();
        for name in &decision.needs.approvers {
            let id = find_person(cx, name)?.map_or_else(|| name.clone(), |person| person.id);
            if !named.contains(&id) {
                named.push(id);
            }
        }
        let mut stand_ins = Vec::new();
        for seat in &named {
            // Whoever asked does not decide, and nobody does it in their place.
            if !request.is_asked_by(seat)
                && let Some(stand_in) = of(cx, seat)?
            {
                stand_ins.push((stand_in, seat.clone()));
            }
        }
        for late in escalated_to(cx, request)?.unwrap_or_default() {
            if !named.contains(&late) {
                named.push(late);
            }
        }
        Ok(Some(Self { named, stand_ins }))
    }

    /// Whether a person takes one of the places.
    pub(super) fn admits(&self, person: &str) -> bool {
        self.named.iter().any(|named| named == person) || self.stand_ins.iter().any(|(stand_in, _)| stand_in == person)
    }

    /// Everybody whom they are for.
    pub(super) fn everybody(&self) -> impl Iterator<Item = &String> {
        self.named.iter().chain(self.stand_ins.iter().map(|(stand_in, _)| stand_in))
    }

    /// How many places people take: each their own, or else one in which they stand in and that nobody took.
    pub(super) fn taken(&self, people: &[String]) -> usize {
        let mut free: BTreeSet<&str> = self.named.iter().map(String::as_str).collect();
        let own = people.iter().filter(|person| free.remove(person.as_str())).count();
        let mut more = 0;
        for person in people.iter().filter(|person| !self.named.contains(person)) {
            if let Some((_, seat)) = self.stand_ins.iter().find(|(stand_in, seat)| stand_in == person && free.contains(seat.as_str())) {
                free.remove(seat.as_str());
                more += 1;
            }
        }
        own + more
    }
}

#[cfg(test)]
mod tests {
    use super::Seats;

    fn seats(named: &[&str], stand_ins: &[(&str, &str)]) -> Seats {
        let own = |text: &&str| (*text).to_owned();
        Seats { named: named.iter().map(own).collect(), stand_ins: stand_ins.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect() }
    }

    #[test]
    fn a_place_is_taken_once_and_a_person_takes_one() {
        let of = |people: &[&str]| -> Vec<String> { people.iter().map(|person| (*person).to_owned()).collect() };
        let both = seats(&["a", "b"], &[("s", "a"), ("s", "b")]);
        assert_eq!(both.taken(&of(&["s"])), 1, "one person is one vote, whoever they stand in for");
        assert_eq!(both.taken(&of(&["s", "a"])), 2);
        assert_eq!(both.taken(&of(&["a", "b", "s"])), 2);
        let one = seats(&["a", "b"], &[("s", "a")]);
        assert_eq!(one.taken(&of(&["s", "a"])), 1, "the place is taken by who it is for");
        assert_eq!(one.taken(&of(&["s", "b"])), 2);
        assert_eq!(one.taken(&of(&["x"])), 0);
        let named = seats(&["a", "s"], &[("s", "a")]);
        assert_eq!(named.taken(&of(&["s"])), 1, "who has a place of their own takes that");
    }
}
