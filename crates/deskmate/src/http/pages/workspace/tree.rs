//! A plan as two trees: what it touches as it lies now, and as it will lie.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::ui::{Tone, badge, said};
use super::plan::Step;

/// A folder or a file, and what is in it.
#[derive(Default)]
struct Node<'s> {
    inside: BTreeMap<&'s str, Node<'s>>,
    mark: Option<(Tone, &'static str)>,
}

impl<'s> Node<'s> {
    fn put(&mut self, path: &'s str, mark: Option<(Tone, &'static str)>) {
        let place = path.split('/').filter(|part| !part.is_empty()).fold(self, |node, part| node.inside.entry(part).or_default());
        place.mark = mark.or(place.mark);
    }
}

/// Both trees of some steps.
pub(super) fn before_and_after(steps: &[Step]) -> Markup {
    let (mut before, mut after) = (Node::default(), Node::default());
    // What is known not to be done changes nothing.
    for step in steps.iter().filter(|step| step.blocked.is_none()) {
        let (from, to) = (step.from.as_deref(), step.to.as_deref());
        match step.undoes.as_deref().unwrap_or(&step.action) {
            "replace" => {
                put(&mut before, to.or(from), None);
                put(&mut after, to.or(from), Some((Tone::Warning, "changed")));
            }
            "trash" if step.undoes.is_some() => put(&mut after, to, Some((Tone::Good, "restored"))),
            _ if step.undoes.is_some() => {
                put(&mut before, from, if to.is_none() { Some((Tone::Alarm, "goes")) } else { None });
                put(&mut after, to, None);
            }
            "move" | "undo" => {
                put(&mut before, from, None);
                put(&mut after, to, None);
            }
            "copy" => {
                put(&mut before, from, None);
                put(&mut after, from, None);
                put(&mut after, to, Some((Tone::Good, "copy")));
            }
            "write" | "make_folder" => put(&mut after, to, Some((Tone::Good, "new"))),
            "restore" => put(&mut after, to, Some((Tone::Good, "restored"))),
            _ => put(&mut before, step.was.as_deref().or(from), Some((Tone::Alarm, "goes"))),
        }
    }
    html! {
        div.trees {
            section { h4 { "Before" } (shown(&before)) }
            section { h4 { "After" } (shown(&after)) }
        }
    }
}

fn put<'s>(tree: &mut Node<'s>, path: Option<&'s str>, mark: Option<(Tone, &'static str)>) {
    if let Some(path) = path {
        tree.put(path, mark);
    }
}

fn shown(node: &Node<'_>) -> Markup {
    html! {
        @if node.inside.is_empty() { p.hint { "Nothing that it touches." } } @else { (inside(node)) }
    }
}

fn inside(node: &Node<'_>) -> Markup {
    html! {
        ul.tree {
            @for (name, child) in &node.inside {
                li {
                    @if child.inside.is_empty() { (said(name)) } @else { strong { (said(name)) "/" } }
                    @if let Some((tone, word)) = child.mark { " " (badge(tone, word)) }
                    @if !child.inside.is_empty() { (inside(child)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Both trees as text, without what makes them a page.
    fn trees(steps: Value) -> (String, String) {
        let steps: Vec<Step> = serde_json::from_value(steps).unwrap();
        let page = before_and_after(&steps).into_string();
        let (before, after) = page.split_once("<h4>After</h4>").unwrap();
        (before.to_owned(), after.to_owned())
    }

    #[test]
    fn what_stays_is_in_both_trees_and_what_is_blocked_in_none() {
        let (before, after) = trees(json!([
            { "number": 1, "action": "undo", "undoes": "replace", "to": "notes/list" },
            { "number": 2, "action": "undo", "undoes": "copy", "from": "notes/copy" },
            { "number": 3, "action": "undo", "undoes": "trash", "to": "notes/plain" },
            { "number": 4, "action": "undo", "undoes": "move", "from": "notes/there", "to": "notes/here" },
            { "number": 5, "action": "move", "from": "notes/gone", "to": "notes/nowhere", "blocked": "it is gone" },
            { "number": 6, "action": "purge", "from": "7-old", "was": "notes/old" },
        ]));
        for (name, is_before, is_after) in [
            ("list", true, true),
            ("copy", true, false),
            ("plain", false, true),
            ("there", true, false),
            ("here", false, true),
            ("gone", false, false),
            ("nowhere", false, false),
            ("old", true, false),
        ] {
            let held = |tree: &str| tree.contains(&format!(">{name}</bdi>"));
            assert_eq!((held(&before), held(&after)), (is_before, is_after), "{name}: {before} {after}");
        }
    }
}
