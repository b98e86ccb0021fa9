//! The files that pages load. Their address changes with what is in them, so that browsers keep them for ever and never
//! use an old one.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use deskmate_core::hex;
use sha2::{Digest, Sha256};

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Name, kind and content of each.
const FILES: &[(&str, &str, &str)] = &[
    ("desk.css", "text/css; charset=utf-8", include_str!("assets/desk.css")),
    ("desk.svg", "image/svg+xml", include_str!("assets/desk.svg")),
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
    let Some((_, kind, text)) = FILES.iter().find(|(known, _, _)| *known == name) else { return StatusCode::NOT_FOUND.into_response() };
    ([(CONTENT_TYPE, *kind), (CACHE_CONTROL, "public, max-age=31536000, immutable")], *text).into_response()
}
