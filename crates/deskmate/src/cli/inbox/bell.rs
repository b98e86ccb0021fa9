//! Whether something came in since the last look at the list.

use serde_json::Value;

use super::text::part;

/// What was seen so far.
#[derive(Default)]
pub(super) struct Bell {
    /// What was asked for: the answer to another question is no news.
    asked: Option<Value>,
    /// When the newest of all that was seen was made.
    newest: String,
}

impl Bell {
    /// Takes a page in. Where something newer than all before came in, whether or not it is on this page, answers when the newest
    /// before it was made.
    pub(super) fn hears(&mut self, asked: &Value, page: &Value) -> Option<String> {
        let is_new = self.asked.as_ref() != Some(asked);
        let newest = requests(page).iter().map(|request| part(request, "created_at")).chain([part(page, "newest_at")]).max().unwrap_or_default();
        if is_new {
            (self.asked, self.newest) = (Some(asked.clone()), newest);
            return None;
        }
        (newest > self.newest).then(|| std::mem::replace(&mut self.newest, newest))
    }
}

/// The requests of a page.
pub(super) fn requests(page: &Value) -> &[Value] {
    page.get("requests").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(made: &[u8], newest: Option<u8>) -> Value {
        let at = |second: u8| format!("2026-11-15T09:30:{second:02}.000000Z");
        let requests: Vec<Value> = made.iter().map(|second| json!({ "request": second.to_string(), "created_at": at(*second) })).collect();
        json!({ "requests": requests, "newest_at": newest.map(at) })
    }

    #[test]
    fn it_rings_for_what_is_new_and_for_nothing_else() {
        let (mut bell, inbox, other) = (Bell::default(), json!({ "view": "inbox" }), json!({ "view": "all" }));
        assert_eq!(bell.hears(&inbox, &page(&[], None)), None, "the first look tells nothing new");
        assert!(bell.hears(&inbox, &page(&[5], Some(5))).is_some());
        assert_eq!(bell.hears(&inbox, &page(&[5], Some(5))), None);
        assert!(bell.hears(&inbox, &page(&[5], Some(7))).is_some(), "what is not on the first page came in as well");
        assert_eq!(bell.hears(&inbox, &page(&[3], Some(3))), None, "what moves up is not new");
        assert_eq!(bell.hears(&other, &page(&[9, 8], None)), None, "nor is what another view shows");
        assert_eq!(bell.hears(&other, &page(&[9, 4], None)), None);
        assert!(bell.hears(&other, &page(&[11, 9], None)).is_some());
    }
}
