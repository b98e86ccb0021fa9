//! Sets text: chooses fonts, shapes, and breaks it into lines of a width.

use parley::{Alignment, AlignmentOptions, FontFamily, FontFamilyName, FontStyle, FontWeight, Layout, LineHeight, OverflowWrap, StyleProperty};

use super::fonts::{Fonts, MONO, SANS, SYSTEM, WIDEST};
use crate::documents::blocks::{Side, Span};

/// A font's share of a line's height.
const LINE: f32 = 1.35;

/// Text in lines.
pub(super) struct Laid {
    pub(super) text: String,
    pub(super) layout: Layout<()>,
}

impl Laid {
    /// How high a line is.
    pub(super) fn height(&self, line: usize) -> f32 {
        self.layout.get(line).map_or(0.0, |line| line.metrics().line_height)
    }
}

/// How a text looks apart from what its spans say.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) size: f32,
    pub(super) bold: bool,
}

impl Look {
    pub(super) const BODY: Self = Self { size: 10.5, bold: false };
}

/// Sets spans one after another, without a width yet.
pub(super) fn set(fonts: &mut Fonts, spans: &[Span], look: Look) -> Laid {
    let pieces: Vec<String> = spans.iter().map(|span| fonts.settable(&span.text)).collect();
    let text = pieces.concat();
    let mut builder = fonts.layouts.ranged_builder(&mut fonts.context, &text, 1.0, false);
    builder.push_default(StyleProperty::FontFamily(family(SANS)));
    builder.push_default(StyleProperty::FontSize(look.size));
    builder.push_default(StyleProperty::LineHeight(LineHeight::FontSizeRelative(LINE)));
    // A word that is longer than its line is broken rather than cut off.
    builder.push_default(StyleProperty::OverflowWrap(OverflowWrap::Anywhere));
    if look.bold {
        builder.push_default(StyleProperty::FontWeight(FontWeight::BOLD));
    }
    let mut start = 0;
    for (span, piece) in spans.iter().zip(&pieces) {
        let end = start + piece.len();
        if span.bold {
            builder.push(StyleProperty::FontWeight(FontWeight::BOLD), start..end);
        }
        if span.italic {
            builder.push(StyleProperty::FontStyle(FontStyle::Italic), start..end);
        }
        if span.code {
            builder.push(StyleProperty::FontFamily(family(MONO)), start..end);
            builder.push(StyleProperty::FontSize(look.size * 0.92), start..end);
        }
        start = end;
    }
    let layout = builder.build(&text);
    Laid { text, layout }
}

/// Breaks a text into lines that are at most this wide.
pub(super) fn wrap(laid: &mut Laid, width: f32, side: Side) {
    laid.layout.break_all_lines(Some(width));
    let alignment = match side {
        Side::Start => Alignment::Start,
        Side::Center => Alignment::Center,
        Side::End => Alignment::End,
    };
    laid.layout.align(alignment, AlignmentOptions::default());
}

fn family(first: &'static str) -> FontFamily<'static> {
    let names = [first, WIDEST].into_iter().chain(SYSTEM);
    FontFamily::List(names.map(FontFamilyName::named).collect::<Vec<_>>().into())
}
