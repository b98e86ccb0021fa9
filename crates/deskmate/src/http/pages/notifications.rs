//! How people are told outside of the desk: the ways of whoever is signed in, the channels of everybody, and what did not arrive.

use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::json;

use super::account::Shown;
use super::people::TABS;
use super::shell::{self, Page, Place};
use super::ui::{Tone, badge, choice, empty, field, said, spaced, tabs, time};
use super::visit::{Fault, People, Visit};

const EXAMPLE: &str = "notifications:\n  outlets:\n    - name: mail\n      kind: email\n      host: smtp.example.org\n      from: desk@example.org\n      user: desk\n      password: secret:mail\n  desktop: {}";

const RISKS: [(&str, &str); 4] = [("", "Every risk"), ("medium", "Medium and above"), ("high", "High and above"), ("critical", "Only what is critical")];
const DETAILS: [(&str, &str); 3] = [
    ("none", "Only who asks for what kind of act, and how risky it is"),
    ("redacted", "Also titles, without personal data"),
    ("full", "Also titles, with personal data"),
];
const EVERY: [(&str, &str); 3] = [("", "At once"), ("day", "Once a day"), ("week", "Once a week")];
const DAYS: [(&str, &str); 8] = [
    ("", "No day"),
    ("monday", "Monday"),
    ("tuesday", "Tuesday"),
    ("wednesday", "Wednesday"),
    ("thursday", "Thursday"),
    ("friday", "Friday"),
    ("saturday", "Saturday"),
    ("sunday", "Sunday"),
];

#[derive(Deserialize)]
struct Subscriptions {
    subscriptions: Vec<Subscription>,
    outlets: Vec<Outlet>,
}

#[derive(Deserialize)]
struct Outlet {
    outlet: String,
    kind: String,
    target: String,
    address: String,
    addresses: Vec<String>,
    decide_links: bool,
}

#[derive(Deserialize)]
struct Subscription {
    name: String,
    person: String,
    outlet: String,
    address: Option<String>,
    events: Vec<String>,
    kinds: Vec<String>,
    domains: Vec<String>,
    least_risk: Option<String>,
    others: bool,
    reminders: bool,
    zone: String,
    quiet_hours: Option<Hours>,
    digest: Option<Digest>,
    urgent_passes: bool,
    details: String,
    batch_seconds: u32,
    decide_links: bool,
    on: bool,
    disabled_at: Option<String>,
    delivered_at: Option<String>,
    failed_at: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Hours {
    from: String,
    to: String,
}

#[derive(Deserialize)]
struct Digest {
    every: String,
    at: String,
    on: Option<String>,
}

#[derive(Deserialize)]
struct Notifications {
    dead: i64,
    channels: Vec<Channel>,
    notifications: Vec<Notification>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Channel {
    channel: String,
    kind: String,
    target: String,
    configured: bool,
    tells: bool,
    delivered_at: Option<String>,
    disabled_at: Option<String>,
    failed_at: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Notification {
    notification: String,
    channel: String,
    state: String,
    urgent: bool,
    count: i64,
    opened_at: String,
    finished_at: Option<String>,
    error: Option<String>,
    #[serde(default)]
    permanent: bool,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    topic: String,
    event: String,
    agent: Option<String>,
    title: Option<String>,
}

/// Who is told outside of the desk, and how that went.
pub(super) async fn serve(visit: Visit, Query(shown): Query<Shown>) -> Result<Response, Fault> {
    let Subscriptions { subscriptions, outlets } = visit.ask("desk_subscription_list", json!({})).await?;
    let (notifications, next) = shown.ask::<Notification>(&visit, "desk_notification_list", "notifications").await?;
    let given_up: Notifications = visit.ask("desk_notification_list", json!({ "limit": 50, "state": "failed" })).await?;
    let people = visit.people().await?;
    let telling: Vec<&Channel> = given_up.channels.iter().filter(|channel| channel.tells).collect();
    let body = html! {
        h1.unseen { "Notifications" }
        (tabs(&TABS, "/people/notifications"))
        div.alone {
            h2 { "How you are told" }
            @if outlets.is_empty() && telling.is_empty() {
                (empty("No channel is set up", html! {
                    p { "The desk tells you in an open tab. To be told elsewhere, an owner names an outlet or a channel in " code { "deskmate.yaml" } " and starts the desk again:" }
                    pre.block { (EXAMPLE) }
                }))
            }
            ul.cards id="subscriptions" { @for subscription in &subscriptions { (subscribed(subscription, &outlets)) } }
            @if !outlets.is_empty() {
                @if subscriptions.is_empty() { p.hint { "You are told in no way of your own yet." } }
                details.create id="new-subscription" {
                    summary data-key="n" { "Be told in another way " kbd { "n" } }
                    (form(None, &outlets))
                }
            }
            @if given_up.dead > 0 { (dead_letters(&given_up, &people)) }
            @if !telling.is_empty() {
                section.part {
                    h2 { "Channels for everybody" }
                    ul.cards id="channels" { @for channel in telling { (channelled(channel)) } }
                }
            }
            @if !notifications.is_empty() {
                section.part {
                    h2 { "What was told" }
                    (shown.around("/people/notifications", next.as_deref(), html! { ul.cards id="notifications" { @for notification in &notifications { (told(notification, &people)) } } }))
                }
            }
        }
    };
    shell::show(&visit, Page { title: "Notifications", place: Place::People, topics: "notification subscription job request", body }).await
}

fn subscribed(one: &Subscription, outlets: &[Outlet]) -> Markup {
    let kind = outlets.iter().find(|outlet| outlet.outlet == one.outlet).map_or("", |outlet| outlet.kind.as_str());
    let name = html! { input type="hidden" name="name" value=(one.name); };
    html! {
        li.card id={ "subscription-" (one.name) } {
            h3 { (said(&one.name)) }
            p { (spaced(kind)) @if let Some(address) = &one.address { " · " (said(address)) } " · " (when(one)) }
            p.badges {
                @if let Some(at) = &one.disabled_at { (badge(Tone::Alarm, "off")) span.deadline { "since " (time(at)) ", because its receiver said that it is gone" } }
                @else if one.on { (badge(Tone::Good, "on")) }
                @else { (badge(Tone::Quiet, "its outlet is no longer configured")) }
                @if one.decide_links { (badge(Tone::Warning, "links that decide")) }
                @if let Some(at) = &one.delivered_at { span.deadline { "last arrived " (time(at)) } }
                @if let Some(at) = &one.failed_at { span.deadline { "last failed " (time(at)) @if let Some(error) = &one.error { ": " (said(error)) } } }
            }
            div.acts {
                @if one.on { form data-call="desk_subscription_test" data-done="The test arrived" { (name) button.quiet { "Send me a test" } } }
                @if one.disabled_at.is_some() {
                    form data-call="desk_notification_enable" data-done="It is on again" {
                        input type="hidden" name="channel" value={ "person/" (one.person) "/" (one.name) };
                        button { "Turn it on again" }
                    }
                }
                details id={ "change-" (one.name) } {
                    summary { "Change" }
                    (form(Some(one), outlets))
                }
                form data-call="desk_subscription_remove" data-done="You are no longer told in this way" data-confirm="No longer be told in this way? What is on its way is dropped." { (name) button.quiet { "Remove" } }
            }
        }
    }
}

/// A channel by its name, or a person's own way by theirs.
fn way(people: &People, channel: &str) -> Markup {
    match channel.strip_prefix("person/").and_then(|own| own.split_once('/')) {
        Some((person, name)) => html! { (said(name)) " of " (said(people.name(person))) },
        None => said(channel),
    }
}

/// When and about what, in a few words.
fn when(one: &Subscription) -> String {
    let mut words = vec![match &one.digest {
        None => "at once".to_owned(),
        Some(digest) if digest.every == "week" => format!("each {} at {}", digest.on.as_deref().unwrap_or("monday"), digest.at),
        Some(digest) => format!("each day at {}", digest.at),
    }];
    words.extend(one.quiet_hours.as_ref().map(|hours| format!("quiet {} to {}", hours.from, hours.to)));
    words.extend(one.least_risk.as_ref().map(|risk| format!("from {risk} risk on")));
    if one.quiet_hours.is_some() || one.digest.is_some() {
        words.push(one.zone.clone());
    }
    words.join(", ")
}

fn flag(id: &str, name: &str, label: &str, is_set: bool) -> Markup {
    html! { div.field { label for=(id) { input id=(id) name=(name) type="checkbox" data-as="json" checked[is_set]; " " (label) } } }
}

/// The form of a new way, or of one that is there.
fn form(one: Option<&Subscription>, outlets: &[Outlet]) -> Markup {
    let own = one.map_or("new", |one| one.name.as_str());
    let id = |part: &str| format!("{part}-of-{own}");
    let list = |values: Option<&Vec<String>>| values.map(|values| values.join(", ")).unwrap_or_default();
    let (hours, digest) = (one.and_then(|one| one.quiet_hours.as_ref()), one.and_then(|one| one.digest.as_ref()));
    let labels: Vec<(String, String)> =
        outlets.iter().map(|outlet| (outlet.outlet.clone(), format!("{} ({}, {})", outlet.outlet, outlet.kind, outlet.target))).collect();
    let options: Vec<(&str, &str)> = labels.iter().map(|(name, label)| (name.as_str(), label.as_str())).collect();
    let chosen = one.map_or("", |one| one.outlet.as_str());
    let bounded: Vec<&Outlet> = outlets.iter().filter(|outlet| !outlet.addresses.is_empty()).collect();
    html! {
        form data-call="desk_subscription_set" data-done="Kept" data-reset {
            @if let Some(one) = one { input type="hidden" name="name" value=(one.name); }
            (field(&id("outlet"), "By which outlet", choice(&id("outlet"), "outlet", &options, chosen)))
            @if one.is_none() { (field(&id("name"), "What to call it; the outlet's name if empty", html! { input id=(id("name")) name="name" maxlength="128" autocomplete="off"; })) }
            (field(&id("address"), "Where to: an e-mail address, a topic of ntfy, the number of a chat of Telegram", html! {
                input id=(id("address")) name="address" maxlength="254" value=[one.and_then(|one| one.address.as_ref())] autocomplete="off";
            }))
            @if outlets.iter().all(|outlet| outlet.address == "no") { p.hint { "These outlets lead to one place: leave it empty." } }
            @for outlet in bounded { p.hint { (outlet.outlet) " takes only " code { (outlet.addresses.join(", ")) } } }
            (field(&id("digest"), "When", choice(&id("digest"), "digest.every", &EVERY, digest.map_or("", |digest| digest.every.as_str()))))
            (field(&id("at"), "A digest comes at", html! { input id=(id("at")) name="digest.at" type="time" value=[digest.map(|digest| &digest.at)]; }))
            (field(&id("on"), "A weekly one on", choice(&id("on"), "digest.on", &DAYS, digest.and_then(|digest| digest.on.as_deref()).unwrap_or_default())))
            (field(&id("from"), "Quiet from", html! { input id=(id("from")) name="quiet_hours.from" type="time" value=[hours.map(|hours| &hours.from)]; }))
            (field(&id("to"), "Quiet until", html! { input id=(id("to")) name="quiet_hours.to" type="time" value=[hours.map(|hours| &hours.to)]; }))
            (field(&id("zone"), "In the time zone", html! { input id=(id("zone")) name="zone" placeholder="Europe/Berlin" value=(one.map_or("UTC", |one| one.zone.as_str())) data-zone[one.is_none()]; }))
            (flag(&id("urgent"), "urgent_passes", "What is urgent comes through all the same. An agent can call a request urgent.", one.is_some_and(|one| one.urgent_passes)))
            (field(&id("risk"), "How risky a request has to be", choice(&id("risk"), "least_risk", &RISKS, one.and_then(|one| one.least_risk.as_deref()).unwrap_or_default())))
            (field(&id("events"), "About what, with commas between: requests, handoffs, edits, policies, trust, outcomes, security, pauses; all if empty", html! {
                input id=(id("events")) name="events" data-as="list" value=(list(one.map(|one| &one.events))) autocomplete="off";
            }))
            (field(&id("kinds"), "Which kinds of requests: proposal, approval, handoff, edit, promotion, policy, plan, tool_call, deploy; all if empty", html! {
                input id=(id("kinds")) name="kinds" data-as="list" value=(list(one.map(|one| &one.kinds))) autocomplete="off";
            }))
            (field(&id("domains"), "Which domains, with a trailing * as a wildcard; all if empty", html! {
                input id=(id("domains")) name="domains" data-as="list" value=(list(one.map(|one| &one.domains))) placeholder="crm.*" autocomplete="off";
            }))
            (flag(&id("others"), "others", "Also what you cannot decide", one.is_some_and(|one| one.others)))
            (flag(&id("reminders"), "reminders", "Tell again what nobody decided", one.is_none_or(|one| one.reminders)))
            (field(&id("details"), "How much a message shows", choice(&id("details"), "details", &DETAILS, one.map_or("none", |one| one.details.as_str()))))
            (field(&id("batch"), "Seconds between two messages at least", html! {
                input id=(id("batch")) name="batch_seconds" type="number" min="0" max="86400" value=(one.map_or(60, |one| one.batch_seconds)) data-as="json";
            }))
            @if outlets.iter().any(|outlet| outlet.decide_links) || one.is_some_and(|one| one.decide_links) {
                (flag(&id("links"), "decide_links", "Links that decide without signing in: once, for half an hour, never what is of high risk. Whoever reads your messages can use them.", one.is_some_and(|one| one.decide_links)))
            }
            button { @if one.is_some() { "Change" } @else { "Be told so" } }
        }
    }
}

fn dead_letters(given_up: &Notifications, people: &People) -> Markup {
    html! {
        section.part id="dead" {
            h2 { "What did not arrive " span.count { (given_up.dead) } }
            p.hint { "These were tried and given up. Put right what was wrong, and send them round again; or dismiss what nobody needs any more." }
            ul.cards { @for notification in &given_up.notifications {
                li.card id={ "dead-" (notification.notification) } {
                    p.badges {
                        (badge(Tone::Alarm, if notification.permanent { "refused" } else { "gave up" }))
                        span { "through " (way(people, &notification.channel)) " · " (notification.count) (if notification.count == 1 { " event" } else { " events" }) " · " (time(notification.finished_at.as_deref().unwrap_or(&notification.opened_at))) }
                    }
                    @if let Some(error) = &notification.error { p.meta { (said(error)) } }
                    div.acts {
                        form data-call="desk_notification_retry" data-done="It is sent round again" { input type="hidden" name="notification" value=(notification.notification); button.quiet { "Send again" } }
                        form data-call="desk_notification_dismiss" data-done="Dismissed" { input type="hidden" name="notification" value=(notification.notification); button.quiet { "Dismiss" } }
                    }
                }
            } }
            @if given_up.next_cursor.is_some() { p.hint { "There are more; " code { "deskmate notify dead" } " lists them all." } }
        }
    }
}

fn channelled(channel: &Channel) -> Markup {
    let hidden = html! { input type="hidden" name="channel" value=(channel.channel); };
    html! {
        li.card id={ "channel-" (channel.channel) } {
            h3 { (said(&channel.channel)) }
            p { (spaced(&channel.kind)) " · " (said(&channel.target)) }
            p.badges {
                @if let Some(at) = &channel.disabled_at { (badge(Tone::Alarm, "off")) span.deadline { "since " (time(at)) ", because its receiver said that it is gone" } }
                @else if !channel.configured { (badge(Tone::Quiet, "no longer configured")) }
                @else { (badge(Tone::Good, "on")) }
                @if let Some(at) = &channel.delivered_at { span.deadline { "last arrived " (time(at)) } }
                @if let Some(at) = &channel.failed_at { span.deadline { "last failed " (time(at)) @if let Some(error) = &channel.error { ": " (said(error)) } } }
            }
            div.acts {
                @if channel.configured {
                    form data-call="desk_notification_test" data-done="A test is on its way" { (hidden) button.quiet { "Send a test" } }
                }
                @if channel.disabled_at.is_some() {
                    form data-call="desk_notification_enable" data-done="It is on again" { (hidden) button { "Turn it on again" } }
                }
            }
        }
    }
}

fn told(notification: &Notification, people: &People) -> Markup {
    html! {
        li.card id={ "notification-" (notification.notification) } {
            p.badges {
                (badge(if notification.state == "delivered" { Tone::Good } else { Tone::of_state(&notification.state) }, &notification.state))
                @if notification.urgent { (badge(Tone::Warning, "urgent")) }
                span { "through " (way(people, &notification.channel)) " · " (time(notification.finished_at.as_deref().unwrap_or(&notification.opened_at))) }
            }
            ul {
                @for item in notification.items.iter().take(5) {
                    li { (spaced(&item.topic)) ": " (said(item.title.as_deref().unwrap_or(&item.event))) @if let Some(agent) = &item.agent { " of " (said(agent)) } }
                }
            }
            @if notification.count > 5 { p.meta { "and " (notification.count - 5) " more" } }
            @if let Some(error) = &notification.error { p.meta { (said(error)) } }
        }
    }
}
