//! What shows that somebody is there: their passkeys, which are made here, named and taken away, and their passphrase.

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::super::Shared;
use super::shell::{self, Page, Place};
use super::ui::{empty, field, said, time};
use super::visit::{Fault, Visit};

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/passkeys", get(serve))
}

#[derive(Deserialize)]
struct Passkeys {
    passkeys: Vec<Passkey>,
    passphrase: bool,
}

#[derive(Deserialize)]
struct Passkey {
    passkey: String,
    note: String,
    host: String,
    created_at: String,
}

async fn serve(visit: Visit) -> Result<Response, Fault> {
    let Passkeys { passkeys, passphrase } = visit.ask("desk_passkey_list", json!({})).await?;
    let body = html! {
        div.alone {
            h1 { "Your passkeys" }
            p { "A passkey shows that you are there, in place of a passphrase: with your finger, your face or a key that you touch." @if passphrase { " Your passphrase goes on working." } }
            @if passkeys.is_empty() {
                (empty("You have none yet", html! { p { "Make one on the device that you decide with most." } }))
            } @else {
                table {
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Works at" } th scope="col" { "Since" } th scope="col" { span.unseen { "What to do" } } } }
                    tbody {
                        @for passkey in &passkeys {
                            tr id={ "passkey-" (passkey.passkey) } {
                                td { @if passkey.note.is_empty() { "A passkey" } @else { (said(&passkey.note)) } }
                                td { (passkey.host) }
                                td { (time(&passkey.created_at)) }
                                td {
                                    form data-call="desk_passkey_remove" data-done="The passkey was taken away" data-confirm="Take this passkey away? It shows nothing any more." {
                                        input type="hidden" name="passkey" value=(passkey.passkey);
                                        button.quiet { "Take away" }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            form data-add-passkey {
                (field("note", "What to call the new one", html! { input id="note" name="note" maxlength="100" placeholder="This laptop"; }))
                button { "Make a passkey" }
            }
            (passphrase_form(passphrase))
            p.hint data-no-passkey hidden { "Passkeys need a name: open the desk as " code { "deskmate.localhost" } " or under its own domain, not by its address." }
        }
    };
    shell::show(&visit, Page { title: "Your passkeys", place: Place::Other, topics: "credential person", body }).await
}

/// Where a passphrase is set: the first one of somebody who came with a passkey, or a new one.
fn passphrase_form(has_one: bool) -> Markup {
    html! {
        section.part id="passphrase" {
            h2 { "Your passphrase or PIN" }
            @if !has_one { p { "You have none. The command line and the extension ask for one, and it shows that you are there when no passkey is at hand." } }
            form data-call="desk_passphrase_set" data-done="The passphrase is set" data-reset {
                (field("new-passphrase", if has_one { "A new one in its place" } else { "Passphrase or PIN" }, html! { input id="new-passphrase" name="passphrase" type="password" autocomplete="new-password" required minlength="6"; }))
                (field("same-passphrase", "The same again", html! { input id="same-passphrase" type="password" autocomplete="new-password" required minlength="6" data-same="new-passphrase"; }))
                button { @if has_one { "Change the passphrase" } @else { "Set the passphrase" } }
            }
        }
    }
}
