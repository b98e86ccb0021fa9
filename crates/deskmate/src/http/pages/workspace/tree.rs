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
    for step in steps {
        let (from, to) = (step.from.as_deref(), step.to.as_deref());
        match step.action.as_str() {
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
            "replace" => {
                put(&mut before, to.or(from), None);
                put(&mut after, to.or(from), Some((Tone::Warning, "changed")));
            }
            "restore" => put(&mut after, to, Some((Tone::Good, "restored"))),
            _ => put(&mut before, from, Some((Tone::Alarm, "goes"))),
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
