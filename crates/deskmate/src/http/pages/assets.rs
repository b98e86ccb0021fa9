//! The files that pages load. Their address changes with what is in them, so that browsers keep them for ever and never
//! use an old one.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use deskmate_core::hex;
use sha2::{Digest, Sha256};

pub(super) const SCRIPT: &str = "text/javascript; charset=utf-8";
pub(super) const STYLE: &str = "text/css; charset=utf-8";
const ICON: &str = "image/svg+xml";

/// Name, kind and content of each.
const FILES: &[(&str, &str, &str)] = &[
    ("desk.css", STYLE, include_str!("assets/desk.css")),
    ("desk.svg", ICON, include_str!("assets/desk.svg")),
    ("manifest.webmanifest", "application/manifest+json", include_str!("assets/manifest.webmanifest")),
    ("acts.js", SCRIPT, include_str!("assets/acts.js")),
    ("agents.js", SCRIPT, include_str!("assets/agents.js")),
    ("answers.js", SCRIPT, include_str!("assets/answers.js")),
    ("decide.js", SCRIPT, include_str!("assets/decide.js")),
    ("desk.js", SCRIPT, include_str!("assets/desk.js")),
    ("drafts.js", SCRIPT, include_str!("assets/drafts.js")),
    ("follow.js", SCRIPT, include_str!("assets/follow.js")),
    ("keys.js", SCRIPT, include_str!("assets/keys.js")),
    ("live.js", SCRIPT, include_str!("assets/live.js")),
    ("merge.js", SCRIPT, include_str!("assets/merge.js")),
    ("passkey.js", SCRIPT, include_str!("assets/passkey.js")),
    ("record.js", SCRIPT, include_str!("assets/record.js")),
    ("sign.js", SCRIPT, include_str!("assets/sign.js")),
    ("sketch.js", SCRIPT, include_str!("assets/sketch.js")),
    ("times.js", SCRIPT, include_str!("assets/times.js")),
    ("sign-in.js", SCRIPT, include_str!("assets/sign-in.js")),
    ("tools.js", SCRIPT, include_str!("assets/tools.js")),
    ("told.js", SCRIPT, include_str!("assets/told.js")),
    ("visible.js", SCRIPT, include_str!("assets/visible.js")),
];

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all = FILES.iter().fold(Sha256::new(), |digest, (_, _, text)| digest.chain_update(text));
    hex(&all.finalize()).chars().take(12).collect()
});

/// Where a file is.
pub(super) fn address(name: &str) -> String {
    format!("/assets/{}/{name}", *VERSION)
}

pub(super) async fn serve(Path((_, name)): Path<(String, String)>) -> Response {
    let for_ever = (CACHE_CONTROL, "public, max-age=31536000, immutable");
    if let Some(icon) = counted(&name) {
        return ([(CONTENT_TYPE, ICON), for_ever], icon).into_response();
    }
    let Some((_, kind, text)) = FILES.iter().find(|(known, _, _)| *known == name) else { return StatusCode::NOT_FOUND.into_response() };
    ([(CONTENT_TYPE, *kind), for_ever], *text).into_response()
}

/// The icon with how many wait on it, `desk-7.svg`: what a tab shows that is too narrow for its title.
fn counted(name: &str) -> Option<String> {
    let count: u8 = name.strip_prefix("desk-")?.strip_suffix(".svg")?.parse().ok().filter(|count| (1..=99).contains(count))?;
    let mark = format!(
        "<circle cx=\"21\" cy=\"11\" r=\"11\" fill=\"#b3261e\"/>\
         <text x=\"21\" y=\"17\" font-family=\"sans-serif\" font-size=\"16\" font-weight=\"bold\" text-anchor=\"middle\" fill=\"#fff\">{count}</text></svg>"
    );
    Some(include_str!("assets/desk.svg").trim_end().replace("</svg>", &mark))
}
