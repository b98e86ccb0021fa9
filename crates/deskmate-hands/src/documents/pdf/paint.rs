//! Writes pages into the file.

use krilla::Document;
use krilla::color::luma;
use krilla::geom::{PathBuilder, Point, Rect, Transform};
use krilla::metadata::Metadata;
use krilla::page::PageSettings;
use krilla::paint::{Fill, Stroke};
use krilla::surface::Surface;
use krilla::text::{GlyphId, KrillaGlyph};
use parley::layout::Run;

use super::flow::{MARGIN, Mark, PAGE_HEIGHT, PAGE_WIDTH, Page};
use super::fonts::Fonts;
use super::text::{Laid, Look, set, wrap};
use crate::documents::DocumentError;
use crate::documents::blocks::{Side, Span};

/// How much thicker letters are drawn for which there is no bold font, as a share of their size.
const EMBOLDEN: f32 = 0.03;

/// The file with these pages. It has no date and no random id.
pub(super) fn paint(pages: Vec<Page>, fonts: &mut Fonts, title: Option<String>) -> Result<Vec<u8>, DocumentError> {
    let mut document = Document::new();
    if let Some(title) = title.filter(|title| !title.is_empty()) {
        document.set_metadata(Metadata::new().title(title));
    }
    let count = pages.len();
    for (number, marks) in (1_usize..).zip(pages) {
        let settings = PageSettings::from_wh(PAGE_WIDTH, PAGE_HEIGHT).ok_or_else(|| DocumentError::Unwritable("the page's size".to_owned()))?;
        let mut page = document.start_page_with(settings);
        let mut surface = page.surface();
        for mark in marks {
            match mark {
                Mark::Fill { x, y, width, height, shade } => rectangle(&mut surface, (x, y, width, height), shade),
                Mark::Line { laid, line, x, y } => draw(&mut surface, fonts, &laid, line, (x, y)),
            }
        }
        footer(&mut surface, fonts, &format!("{number} / {count}"));
        surface.finish();
        page.finish();
    }
    document.finish().map_err(|error| DocumentError::Unwritable(error.to_string()))
}

fn footer(surface: &mut Surface<'_>, fonts: &mut Fonts, text: &str) {
    let mut laid = set(fonts, &[Span { text: text.to_owned(), ..Span::default() }], Look { size: 8.5, bold: false });
    wrap(&mut laid, PAGE_WIDTH, Side::Start);
    let x = (PAGE_WIDTH - laid.layout.width()) / 2.0;
    draw(surface, fonts, &laid, 0, (x, PAGE_HEIGHT - MARGIN * 0.6));
}

fn rectangle(surface: &mut Surface<'_>, (x, y, width, height): (f32, f32, f32, f32), shade: u8) {
    let mut path = PathBuilder::new();
    let Some(rect) = Rect::from_xywh(x, y, width, height) else { return };
    path.push_rect(rect);
    if let Some(path) = path.finish() {
        surface.set_fill(Some(Fill { paint: luma::Color::new(shade).into(), ..Fill::default() }));
        surface.set_stroke(None);
        surface.draw_path(&path);
    }
}

/// Draws a line of a text whose upper left corner is given.
fn draw(surface: &mut Surface<'_>, fonts: &mut Fonts, laid: &Laid, line: usize, (x, y): (f32, f32)) {
    let Some(line) = laid.layout.get(line) else { return };
    let metrics = line.metrics();
    let baseline = y + metrics.baseline - metrics.block_min_coord;
    let mut x = x + metrics.offset;
    for run in line.runs() {
        x += draw_run(surface, fonts, &laid.text, &run, Point::from_xy(x, baseline));
    }
}

/// Draws letters of one font. Says how far they reach.
fn draw_run(surface: &mut Surface<'_>, fonts: &mut Fonts, text: &str, run: &Run<'_, ()>, start: Point) -> f32 {
    let size = run.font_size();
    let mut glyphs: Vec<KrillaGlyph> = Vec::new();
    let mut reach = 0.0;
    for cluster in run.visual_clusters() {
        let range = cluster.text_range();
        if cluster.is_ligature_continuation() {
            // Its letters belong to the sign that was drawn before.
            if let Some(last) = glyphs.last_mut() {
                last.text_range = last.text_range.start.min(range.start)..last.text_range.end.max(range.end);
            }
            continue;
        }
        for glyph in cluster.glyphs() {
            if glyph.id == 0 {
                fonts.lacks(text.get(range.clone()).unwrap_or_default());
            }
            let id = GlyphId::new(glyph.id);
            glyphs.push(KrillaGlyph::new(id, glyph.advance / size, glyph.x / size, glyph.y / size, 0.0, range.clone(), None));
            reach += glyph.advance;
        }
    }
    // The writer takes these parts of the text without asking whether they are there.
    glyphs.retain(|glyph| text.get(glyph.text_range.clone()).is_some());
    let Some(font) = fonts.embedded(run.font()) else { return reach };
    if glyphs.is_empty() {
        return reach;
    }
    let synthesis = run.synthesis();
    surface.set_fill(Some(Fill::default()));
    surface.set_stroke(synthesis.embolden().then(|| Stroke { width: size * EMBOLDEN, ..Stroke::default() }));
    match synthesis.skew() {
        Some(degrees) => {
            let slant = degrees.to_radians().tan();
            surface.push_transform(&Transform::from_row(1.0, 0.0, -slant, 1.0, slant * start.y, 0.0));
            surface.draw_glyphs(start, &glyphs, font, text, size, false);
            surface.pop();
        }
        None => surface.draw_glyphs(start, &glyphs, font, text, size, false),
    }
    reach
}
