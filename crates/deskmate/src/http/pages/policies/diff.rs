//! Two texts line by line.

use maud::{Markup, html};
use similar::{ChangeTag, TextDiff};

use crate::visible::visible;

/// How many equal lines stand around each difference.
const AROUND: usize = 3;

/// What differs between two texts, with a few lines around it.
pub(super) fn lines(old: &str, new: &str) -> Markup {
    let diff = TextDiff::from_lines(old, new);
    let groups = diff.grouped_ops(AROUND);
    if groups.is_empty() {
        return html! { p.hint { "Both say the same." } };
    }
    html! {
        pre.block.lines tabindex="0" {
            @for (number, group) in groups.iter().enumerate() {
                @if number > 0 { span.gap { "⋯\n" } }
                @for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                    @let text = visible(change.value().trim_end_matches(['\r', '\n']));
                    @match change.tag() {
                        ChangeTag::Equal => { span { "  " (text) "\n" } }
                        ChangeTag::Insert => { ins { "+ " (text) "\n" } }
                        ChangeTag::Delete => { del { "- " (text) "\n" } }
                    }
                }
            }
        }
    }
}
