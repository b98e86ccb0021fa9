//! People, what they may do, and invitations.

use axum::Router;
use axum::extract::Query;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::Shared;
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, choice, field, more, part, said, spaced, tabs, time};
use super::visit::{Fault, Visit};
use super::{account, notifications};

/// How many people a page begins with, and how many more it shows at once.
const ROWS: usize = 100;
const ROWS_MAX: usize = 2_000;

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/people", get(serve))
        .route("/people/you", get(account::you))
        .route("/people/approvals", get(account::approvals))
        .route("/people/notifications", get(notifications::serve))
}

pub(super) const TABS: [(&str, &str); 4] = [
    ("/people", "People"),
    ("/people/you", "Your sessions and tokens"),
    ("/people/approvals", "Standing approvals"),
    ("/people/notifications", "Notifications"),
];

/// Roles, with what each may do.
const ROLES: [(&str, &str); 4] = [
    ("viewer", "Viewer: looks on"),
    ("member", "Member: works along, decides nothing"),
    ("approver", "Approver: decides in their domains"),
    ("owner", "Owner: decides and configures everything"),
];

/// What the address of the page says.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
struct Shown {
    rows: String,
}

#[derive(Deserialize)]
struct Invitations {
    invitations: Vec<Invitation>,
}

#[derive(Deserialize)]
struct Person {
    person: String,
    name: String,
    role: String,
    domains: Vec<String>,
    state: String,
    created_at: String,
    locked_until: Option<String>,
}

#[derive(Deserialize)]
struct Invitation {
    credential: String,
    name: String,
    role: String,
    expires_at: String,
}

async fn serve(visit: Visit, Query(shown): Query<Shown>) -> Result<Response, Fault> {
    let wanted = shown.rows.parse().unwrap_or(ROWS).clamp(ROWS, ROWS_MAX);
    let (people, has_more) = visit.gather::<Person>("desk_person_list", "people", json!({}), wanted).await?;
    let Invitations { invitations } = visit.ask("desk_person_list", json!({ "limit": 1 })).await?;
    let is_owner = visit.you.role == "owner";
    let body = html! {
        h1.unseen { "People" }
        (tabs(&TABS, "/people"))
        div.alone {
            h2 { "People" }
            @if is_owner { (invite()) } @else { p.hint { "Owners invite people and change what they may do." } }
            ul.cards id="people" { @for person in &people { (card(&visit, person, is_owner)) } }
            @if has_more && wanted < ROWS_MAX { (more(&ui::address("/people", &[("rows", &(wanted + ROWS).to_string())]))) }
            @else if has_more { p.hint { "There are more people than are shown; " code { "deskmate person list" } " has them all." } }
            @if !invitations.is_empty() { (part("Invitations that are open", invited(&invitations, is_owner))) }
            @if people.len() == 1 && invitations.is_empty() && is_owner {
                p.hint { "You are alone here. Invite somebody who decides while you are away; a policy that asks for two people needs two." }
            }
        }
        (once())
    };
    shell::show(&visit, Page { title: "People", place: Place::People, topics: "person credential", body }).await
}

fn domains(id: &str, now: &[String]) -> Markup {
    field(
        id,
        "Domains that an approver decides, with commas between; * is all, nothing is none",
        html! { input id=(id) name="domains" value=(now.join(", ")) data-as="list" placeholder="crm.deals, billing"; },
    )
}

fn invite() -> Markup {
    html! {
        details.create id="invite" {
            summary data-key="n" { "Invite somebody " kbd { "n" } }
            form data-call="desk_person_invite" data-done="Invited" data-once="/join?code={code}" data-reset {
                (field("invite-name", "Their name", html! { input id="invite-name" name="name" required maxlength="128" autocomplete="off"; }))
                (field("invite-role", "What they may do", choice("invite-role", "role", &ROLES, "member")))
                (domains("invite-domains", &[]))
                (field("invite-days", "For how many days the link works", html! { input id="invite-days" name="expires_in_days" type="number" min="1" max="90" value="7" data-as="json"; }))
                button { "Make the link" }
            }
        }
    }
}

fn card(visit: &Visit, person: &Person, is_owner: bool) -> Markup {
    let id = &person.person;
    let is_you = *id == visit.you.id;
    html! {
        li.card id={ "person-" (id) } {
            h3 { (said(&person.name)) @if is_you { " (you)" } }
            p.badges {
                (badge(if person.role == "owner" { Tone::Good } else { Tone::Quiet }, &person.role))
                @if person.state != "active" { (badge(Tone::Alarm, &person.state)) }
                @if let Some(until) = &person.locked_until { span.badge.alarm { "signing in is locked until " (time(until)) } }
                span.deadline { "since " (time(&person.created_at)) }
            }
            @if person.role == "approver" {
                p.meta {
                    @if person.domains.is_empty() { "Decides in no domain yet." } @else { "Decides in " (said(&person.domains.join(", "))) "." }
                }
            }
            @if is_owner { (change(person, is_you)) }
        }
    }
}

fn change(person: &Person, is_you: bool) -> Markup {
    let id = &person.person;
    let is_active = person.state == "active";
    html! {
        div.acts {
            details id={ "change-" (id) } {
                summary { "Change" }
                form data-call="desk_person_change" data-done="Changed" data-changed data-reset {
                    input type="hidden" name="person" value=(id);
                    (field(&format!("role-{id}"), "What they may do", choice(&format!("role-{id}"), "role", &ROLES, &person.role)))
                    (domains(&format!("domains-{id}"), &person.domains))
                    button { "Change" }
                }
            }
            @if !is_you {
            form data-call="desk_person_change" data-done=(if is_active { "Kept out" } else { "Let in again" })
                data-confirm=[is_active.then_some("Keep this person out? Their sessions and tokens stop working at once; you can let them in again.")] {
                input type="hidden" name="person" value=(id);
                input type="hidden" name="active" value=(!is_active) data-as="json";
                @if is_active { button.alarm { "Keep out" } } @else { button.quiet { "Let in again" } }
            }
            }
        }
    }
}

fn invited(invitations: &[Invitation], is_owner: bool) -> Markup {
    html! {
        ul.cards {
            @for invitation in invitations {
                li.card id={ "invitation-" (invitation.credential) } {
                    p { strong { (said(&invitation.name)) } " as " (spaced(&invitation.role)) ", until " (time(&invitation.expires_at)) }
                    @if is_owner {
                        form data-call="desk_token_revoke" data-done="The invitation is taken back" {
                            input type="hidden" name="credential" value=(invitation.credential);
                            button.quiet { "Take it back" }
                        }
                    }
                }
            }
        }
        p.hint { "A link is shown once, when it is made. Who lost theirs needs a new one: take it back and invite them again." }
    }
}

/// The dialog for what is shown once: a link, a token or a code. The script fills and empties it.
pub(super) fn once() -> Markup {
    html! {
        dialog id="once" aria-labelledby="once-title" data-keep {
            h2 id="once-title" { "Copy it now" }
            p { "It is shown only here, and nobody can show it again." }
            label for="once-value" { "Link, token or code" }
            textarea id="once-value" readonly rows="3" {}
            p { "It works until " time id="once-until" {} "." }
            div.row { button type="button" data-copy="once-value" { "Copy" } button.quiet type="button" data-close { "Close" } }
        }
    }
}
