//! What a person has at the desk: sessions, tokens and standing approvals.

use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::people::{TABS, once};
use super::shell::{self, Page, Place};
use super::ui::{self, Tone, badge, choice, empty, field, said, short, tabs, time};
use super::visit::{Fault, People, Visit};

/// What can be paired, with what it gets.
const PAIRED: [(&str, &str); 2] = [
    ("extension", "A browser extension: acts as you; deciding asks for your passphrase"),
    ("program", "A program: works with files, for 90 days, and decides nothing"),
];

#[derive(Deserialize)]
struct Sessions {
    sessions: Vec<Session>,
}

#[derive(Deserialize)]
struct Session {
    session: String,
    name: Option<String>,
    created_at: String,
    expires_at: String,
    this_one: bool,
}

#[derive(Deserialize)]
struct Tokens {
    tokens: Vec<Token>,
}

#[derive(Deserialize)]
struct Token {
    credential: String,
    note: Option<String>,
    scopes: Vec<String>,
    created_at: String,
    expires_at: String,
}

/// One's own sessions and tokens.
pub(super) async fn you(visit: Visit) -> Result<Response, Fault> {
    let Sessions { sessions } = visit.ask("desk_session_list", json!({})).await?;
    let Tokens { tokens } = visit.ask("desk_token_list", json!({})).await?;
    let body = html! {
        h1.unseen { "Your sessions and tokens" }
        (tabs(&TABS, "/people/you"))
        div.alone {
            h2 { "Where you are signed in" }
            ul.cards id="sessions" {
                @for session in &sessions {
                    li.card id={ "session-" (session.session) } {
                        p {
                            @if session.this_one { strong { "This browser" } " · " }
                            @if let Some(name) = &session.name { strong { (said(name)) } " · " }
                            "since " (time(&session.created_at)) " · until " (time(&session.expires_at))
                            " " span.meta { "id " code { (short(&session.session)) } }
                        }
                        @if !session.this_one {
                            form data-call="desk_session_revoke" data-done="The session is ended" {
                                input type="hidden" name="session" value=(session.session);
                                button.quiet { "End it" }
                            }
                        }
                    }
                }
            }
            section.part {
                h2 { "Tokens for your scripts" }
                p.hint { "A token acts as you within its scopes. It decides nothing, unless policy names it for that." }
                (new_token())
                @if tokens.is_empty() { p.hint { "You have none." } }
                ul.cards id="tokens" { @for token in &tokens { (tokened(token)) } }
            }
            section.part {
                h2 { "Pair a browser extension or a program" }
                p.hint { "A code connects it with you, once. It is then listed above, and can be ended there." }
                (new_pairing())
            }
        }
        (once())
    };
    shell::show(&visit, Page { title: "Your sessions and tokens", place: Place::People, topics: "credential person", body }).await
}

fn new_token() -> Markup {
    html! {
        details.create id="new-token" {
            summary data-key="n" { "Make a token " kbd { "n" } }
            form data-call="desk_token_create" data-done="The token is made" data-once="{token}" data-reset {
                (field("token-note", "What it is for", html! { input id="token-note" name="note" required maxlength="200" autocomplete="off"; }))
                (field("token-scopes", "Scopes, with commas between: a toolset or an operation, with :read if it should only look", html! {
                    input id="token-scopes" name="scopes" data-as="list" required value="bridge:read" autocomplete="off";
                }))
                p.hint { "For example " code { "bridge" } ", " code { "bridge:read" } ", " code { "desk_record_list:read" } ", " code { "*:read" } "." }
                (field("token-days", "For how many days", html! { input id="token-days" name="expires_in_days" type="number" min="1" max="365" value="30" data-as="json"; }))
                button { "Make the token" }
            }
        }
    }
}

fn new_pairing() -> Markup {
    html! {
        details.create id="new-pairing" {
            summary { "Make a code" }
            form data-call="desk_pairing_start" data-done="The code is made" data-once="{code}" data-large data-reset {
                (field("pairing-kind", "What is paired", choice("pairing-kind", "kind", &PAIRED, "extension")))
                (field("pairing-name", "How it is listed", html! { input id="pairing-name" name="name" required maxlength="128" autocomplete="off"; }))
                button { "Make the code" }
            }
        }
    }
}

fn tokened(token: &Token) -> Markup {
    html! {
        li.card id={ "token-" (token.credential) } {
            p { strong { (said(token.note.as_deref().unwrap_or("A token"))) } " " code { (said(&token.scopes.join(", "))) } }
            p.meta { "since " (time(&token.created_at)) " · until " (time(&token.expires_at)) }
            form data-call="desk_token_revoke" data-done="The token is revoked" data-confirm="Revoke this token? Scripts that use it are refused at once." {
                input type="hidden" name="credential" value=(token.credential);
                button.quiet { "Revoke" }
            }
        }
    }
}

/// What the address of a list says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Shown {
    rows: String,
    cursor: String,
}

impl Shown {
    /// As many rows of an operation's list as the address asks for, with the cursor of what follows.
    pub(super) async fn ask<T: DeserializeOwned>(&self, visit: &Visit, operation: &str, list: &str) -> Result<(Vec<T>, Option<String>), Fault> {
        visit.gather_from(operation, list, json!({}), ui::rows(&self.rows), &self.cursor).await
    }

    /// A list with the ways to its other pages.
    pub(super) fn around(&self, path: &str, next: Option<&str>, list: Markup) -> Markup {
        let from = |rows: String, cursor: Option<&str>| ui::address(path, &[("rows", &rows), ("cursor", cursor.unwrap_or(&self.cursor))]);
        html! {
            @if !self.cursor.is_empty() { (ui::back_to_first(path)) }
            (list)
            (ui::onward(ui::rows(&self.rows), next, from))
        }
    }
}

#[derive(Deserialize)]
struct Approval {
    standing_approval: String,
    request: String,
    agent: String,
    domain: String,
    pattern: Value,
    person: String,
    created_at: String,
    expires_at: String,
    revoked_at: Option<String>,
}

/// What lets acts pass without a person for a while.
pub(super) async fn approvals(visit: Visit, Query(shown): Query<Shown>) -> Result<Response, Fault> {
    let people = visit.people().await?;
    let (standing, next) = shown.ask::<Approval>(&visit, "desk_standing_approval_list", "standing_approvals").await?;
    let body = html! {
        h1.unseen { "Standing approvals" }
        (tabs(&TABS, "/people/approvals"))
        div.alone {
            h2 { "Standing approvals" }
            p.hint { "Acts like these pass without a person until the approval ends." }
            @if standing.is_empty() {
                (empty("There is none", html! { p { "In the inbox, " q { "Approve more like it" } " gives one for a few hours." } }))
            }
            (shown.around("/people/approvals", next.as_deref(), html! { ul.cards id="approvals" { @for approval in &standing { (approved(&people, approval)) } } }))
        }
    };
    shell::show(&visit, Page { title: "Standing approvals", place: Place::People, topics: "standing_approval person", body }).await
}

fn approved(people: &People, approval: &Approval) -> Markup {
    html! {
        li.card id={ "approval-" (approval.standing_approval) } {
            p {
                strong { (said(&approval.agent)) } " in " (said(&approval.domain))
                @if let Some(at) = &approval.revoked_at { " " (badge(Tone::Quiet, "ended")) " " (time(at)) } @else { ", until " (time(&approval.expires_at)) }
            }
            (ui::value(&approval.pattern))
            p.meta { "given by " (said(people.name(&approval.person))) " " (time(&approval.created_at)) " with " a href={ "/requests/" (approval.request) } { "this request" } }
            @if approval.revoked_at.is_none() {
                form data-call="desk_standing_approval_revoke" data-done="Acts like it need a person again" {
                    input type="hidden" name="standing_approval" value=(approval.standing_approval);
                    button.quiet { "End it" }
                }
            }
        }
    }
}
