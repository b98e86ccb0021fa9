//! Looks: listing, reading, searching.

use data_encoding::BASE64;
use deskmate_core::workspace::{FoundEntries, FoundEntry, FoundMatch, FoundMatches, FoundText, FoundTrash, Part, SearchAsk, TrashEntry, What};
use deskmate_core::{Code, Error, Result};
use deskmate_hands::files::{self, Identity, Kind, ListSpec, SearchSpec, Watch};
use serde::Serialize;
use serde_json::Value;

use super::fault;

/// Does one look. Blocks.
pub(super) fn run(root: &files::Root, path: &str, what: &What, watch: &Watch<'_>) -> Result<Value> {
    match what {
        What::Info => value(&entry(path.to_owned(), &root.stat(path).map_err(fault)?)),
        What::List(ask) => {
            let spec = ListSpec {
                path: path.to_owned(),
                depth: ask.depth as usize,
                hidden: ask.hidden,
                ignored: ask.ignored,
                include: Vec::new(),
                after: ask.after.clone(),
                limit: ask.limit as usize,
            };
            let listing = files::list(root, &spec, watch).map_err(fault)?;
            let (more, left_out) = (listing.next.is_some(), listing.unnamed + listing.unreadable + listing.too_deep);
            let entries = listing.entries.into_iter().map(|one| entry(one.path, &one.identity)).collect();
            value(&FoundEntries { entries, more, left_out })
        }
        What::Read(ask) => {
            let part = match ask.part {
                Part::From(offset) => files::Part::Bytes { offset, length: u64::MAX },
                Part::Head(count) => files::Part::Head(u64::from(count)),
                Part::Tail(count) => files::Part::Tail(u64::from(count)),
                Part::Lines(from, to) => files::Part::Lines { from: u64::from(from), to: u64::from(to) },
            };
            value(&text(files::read(root, path, part, ask.max_bytes).map_err(fault)?))
        }
        What::Search(ask) => {
            let spec = SearchSpec {
                path: path.to_owned(),
                hidden: ask.hidden,
                ignored: ask.ignored,
                limit: ask.limit as usize,
                after: ask.after.clone(),
                ..SearchSpec::default()
            };
            value(&search(root, ask, spec, watch)?)
        }
        What::Trash(ask) => {
            let after = ask.after.as_ref().map(|(at, id)| (*at, id.as_str()));
            let (entries, more, unnamed) = files::newest_trash(root, after, ask.limit as usize, watch).map_err(fault)?;
            // Each page looks at all of it; what has no name is told with the first.
            let left_out = if after.is_none() { unnamed } else { 0 };
            value(&FoundTrash { entries: entries.into_iter().map(trashed).collect(), more, left_out })
        }
    }
}

/// By name (a part of it, or a glob), or by a text in files, of which only those with the name are read.
fn search(root: &files::Root, ask: &SearchAsk, spec: SearchSpec, watch: &Watch<'_>) -> Result<FoundMatches> {
    let name = ask.name.as_deref().unwrap_or_default();
    let is_glob = name.contains(['*', '?', '[', '{']);
    let Some(text) = ask.text.as_deref().filter(|text| !text.is_empty()) else {
        let spec = SearchSpec { include: if is_glob { vec![name.to_owned()] } else { Vec::new() }, any_case: true, ..spec };
        let found = files::search_names(root, if is_glob { "" } else { name }, &spec, watch).map_err(fault)?;
        let entries = found.entries.into_iter().map(|entry| FoundMatch { path: entry.path, line: None, text: None }).collect();
        return Ok(FoundMatches { entries, more: found.truncated, left_out: found.left_out });
    };
    let include = match name {
        "" => Vec::new(),
        glob if is_glob => vec![glob.to_owned()],
        part => vec![format!("*{part}*")],
    };
    let found = files::search_content(root, text, &SearchSpec { include, ..spec }, watch).map_err(fault)?;
    let entries = found.hits.into_iter().map(|hit| FoundMatch { path: hit.path, line: Some(hit.line), text: Some(hit.text) }).collect();
    Ok(FoundMatches { entries, more: found.truncated, left_out: found.left_out })
}

pub(super) fn value<T: Serialize>(found: &T) -> Result<Value> {
    serde_json::to_value(found).map_err(|error| Error::new(Code::Internal, format!("what was found cannot be written: {error}")))
}

pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Folder => "folder",
        Kind::Link => "link",
        Kind::Other => "other",
    }
}

fn entry(path: String, identity: &Identity) -> FoundEntry {
    FoundEntry { path, kind: kind(identity.kind).to_owned(), size: identity.size, mtime: identity.mtime_ns / 1_000 }
}

fn trashed(one: files::Trashed) -> TrashEntry {
    let path = one.from.unwrap_or_default();
    TrashEntry { id: one.id, path, deleted_at: one.at_us.unwrap_or(0), kind: kind(one.identity.kind).to_owned(), size: one.identity.size }
}

/// Text as text, cut at the end of a character; anything else in base64.
fn text(content: files::Content) -> FoundText {
    let (path, size) = (Some(content.path), content.identity.size);
    let mut bytes = content.bytes;
    let as_text = if content.binary {
        None
    } else {
        match std::str::from_utf8(&bytes) {
            Ok(_) => Some(bytes.len()),
            Err(error) if error.error_len().is_none() && content.truncated => Some(error.valid_up_to()),
            Err(_) => None,
        }
    };
    if let Some(length) = as_text {
        bytes.truncate(length);
    }
    let read_bytes = bytes.len() as u64;
    // Also where all that was asked for is here: whoever reads on wants to know whether there is more.
    let truncated = content.truncated || content.offset.saturating_add(read_bytes) < size;
    match as_text.and_then(|_| String::from_utf8(bytes.clone()).ok()) {
        Some(text) => FoundText { path, size, read_bytes, truncated, text: Some(text), data_base64: None },
        None => FoundText { path, size, read_bytes, truncated, text: None, data_base64: Some(BASE64.encode(&bytes)) },
    }
}
