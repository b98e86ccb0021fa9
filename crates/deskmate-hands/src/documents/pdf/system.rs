//! Fonts of the system, for characters that the built-in ones lack. Nothing is looked for unless a text needs it, no file is
//! read beyond a bound, and only the signs that are used come into the document.
//!
//! Only folders that belong to the system are looked into: a font decides what readers see, so one that somebody put into
//! their own home is not taken.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use skrifa::raw::TableProvider;
use skrifa::{FontRef, MetadataProvider};

/// Where systems keep fonts for everybody.
const FOLDERS: [&str; 4] = ["/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts"];
/// How deep, and how many files, are looked at.
const DEPTH_MAX: usize = 6;
const FILES_MAX: usize = 20_000;
/// What is read of fonts: of one, and of all for one document.
const FONT_BYTES_MAX: u64 = 64 * 1024 * 1024;
const BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Words in a font's name that make it the later choice: the plain one fits any text.
const SPECIAL: [&str; 14] =
    ["bold", "italic", "oblique", "light", "thin", "black", "medium", "heavy", "condensed", "narrow", "mono", "serif", "hand", "display"];

/// The folders of this system that fonts are looked for in.
pub fn font_folders() -> Vec<PathBuf> {
    FOLDERS.iter().map(PathBuf::from).filter(|folder| folder.is_dir()).collect()
}

/// Fonts that have the wanted characters between them, at most so many; what none has stays in `wanted`.
pub(super) fn borrow(folders: &[PathBuf], wanted: &mut BTreeSet<char>, most: usize) -> Vec<Vec<u8>> {
    let mut borrowed = Vec::new();
    let mut left = BYTES_MAX;
    for path in candidates(folders) {
        if wanted.is_empty() || borrowed.len() >= most {
            break;
        }
        let Some(bytes) = read(&path, left) else { continue };
        left = left.saturating_sub(bytes.len() as u64);
        let had = wanted.len();
        take(&bytes, wanted);
        if wanted.len() < had {
            borrowed.push(bytes);
        }
    }
    borrowed
}

fn read(path: &Path, left: u64) -> Option<Vec<u8>> {
    let file = fs::File::open(path).ok()?;
    let size = file.metadata().ok().filter(fs::Metadata::is_file)?.len();
    if size > FONT_BYTES_MAX.min(left) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FONT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// What the first font of a file has is wanted no more.
fn take(bytes: &[u8], wanted: &mut BTreeSet<char>) {
    let Ok(font) = FontRef::from_index(bytes, 0) else { return };
    if may_be_embedded(&font) {
        let letters = font.charmap();
        wanted.retain(|letter| letters.map(*letter).is_none_or(|glyph| glyph.to_u32() == 0));
    }
}

/// Whether its letters are outlines, which pictures of emoji are not, and whoever made it lets documents carry it.
fn may_be_embedded(font: &FontRef<'_>) -> bool {
    let drawn = font.glyf().is_ok() || font.cff().is_ok() || font.cff2().is_ok();
    // Bit 1: not without the owner's permission. Bit 8: not as a part of the font. Bit 9: only as pictures.
    let allowed = font.os2().map_or(true, |about| about.fs_type() & 0x0302 == 0);
    drawn && allowed
}

/// The files that look like fonts: plain ones first, then by their paths, so that one machine always takes the same.
fn candidates(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<(PathBuf, usize)> = folders.iter().rev().map(|folder| (folder.clone(), 0)).collect();
    while let Some((folder, depth)) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path();
            // A link to a file is how some packages install theirs.
            let Ok(kind) = fs::metadata(&path) else { continue };
            if kind.is_dir() && depth < DEPTH_MAX && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push((path, depth + 1));
            } else if kind.is_file() && is_font(&path) && found.len() < FILES_MAX {
                found.push(path);
            }
        }
    }
    found.sort_by_cached_key(|path| (plainness(path), path.clone()));
    found
}

fn is_font(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["ttf", "otf", "ttc", "otc"].iter().any(|known| ending.eq_ignore_ascii_case(known)))
}

fn plainness(path: &Path) -> usize {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    SPECIAL.iter().filter(|word| name.contains(**word)).count()
}
