//! Personal data: addresses, telephone numbers, accounts and cards. What has a check digit is believed only with it.

use super::kind::Kind;
use super::scan::{Scan, Span};
use super::{ids, names};

/// Endings of files that stand after an `@` in their names.
const FILES: &[&str] = &["png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "js", "ts", "css", "json", "md", "rs", "py", "go", "zip", "gz", "html", "pdf"];
/// How many digits are in one telephone number at most, and how many groups they come in.
const PHONE_DIGITS_MAX: usize = 15;
const GROUPS_MAX: usize = 8;

/// What a key says about the number under it.
pub(super) fn announced(key: &str) -> Option<Kind> {
    let key: String = key.chars().take(64).filter(char::is_ascii_alphabetic).map(|letter| letter.to_ascii_lowercase()).collect();
    let ends = |words: &[&str]| words.iter().any(|word| key.ends_with(word));
    if ends(&["ssn", "socialsecurity", "socialsecuritynumber"]) {
        Some(Kind::Ssn)
    } else if ends(&["phone", "phonenumber", "telephone", "mobile", "mobilenumber", "cellphone", "fax", "whatsapp"]) {
        Some(Kind::Phone)
    } else if ends(&["bsn", "burgerservicenummer"]) {
        Some(Kind::NlBsn)
    } else if ends(&["nino", "nationalinsurance", "nationalinsurancenumber"]) {
        Some(Kind::UkNino)
    } else if ends(&["aadhaar", "aadhar", "aadhaarnumber"]) {
        Some(Kind::InAadhaar)
    } else {
        names::is_key(&key).then_some(Kind::Name)
    }
}

/// Whether a text is what its key says.
pub(super) fn fits(kind: Kind, text: &str) -> bool {
    if kind == Kind::Name {
        return names::is_one(text);
    }
    if ids::KINDS.contains(&kind) {
        return ids::is_one(kind, text);
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b' ' | b'-' | b'.' | b'(' | b')' | b'+' | b'/'));
    is_number && if kind == Kind::Ssn { digits == 9 } else { (7..=PHONE_DIGITS_MAX).contains(&digits) }
}

/// Finds the kinds that are asked for.
pub(super) fn find(scan: &Scan<'_>, kinds: &[Kind], spans: &mut Vec<Span>) {
    if kinds.contains(&Kind::Email) {
        spans.extend(scan.text.match_indices('@').filter_map(|(at, _)| email(scan, at)));
    }
    if kinds.contains(&Kind::Name) {
        names::find(scan, spans);
    }
    let wants = |kind: Kind| kinds.contains(&kind);
    if ![Kind::Iban, Kind::Card, Kind::Ssn, Kind::Phone].into_iter().chain(ids::KINDS).any(wants) {
        return;
    }
    let mut at = 0;
    while let Some(start) = scan.text.as_bytes().get(at..).and_then(|rest| rest.iter().position(u8::is_ascii_digit)).map(|found| at + found) {
        at = scan.run(start, usize::MAX, |byte| byte.is_ascii_digit());
        let number = Number::read(scan, start, at);
        let found = (wants(Kind::Iban)).then(|| iban(scan, start)).flatten();
        let found = found.or_else(|| wants(Kind::Card).then(|| number.card(scan)).flatten());
        let found = found.or_else(|| wants(Kind::Ssn).then(|| number.ssn(scan)).flatten());
        let found = found.or_else(|| ids::find(scan, start, at, kinds));
        let found = found.or_else(|| wants(Kind::Phone).then(|| number.phone(scan)).flatten());
        if let Some(span) = found {
            at = at.max(span.end);
            spans.push(span);
        }
    }
}

fn is_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || ('\u{c0}'..='\u{24f}').contains(&letter)
}

fn email(scan: &Scan<'_>, at: usize) -> Option<Span> {
    let head = scan.text.get(..at)?;
    let local = head.chars().rev().take(64).take_while(|letter| is_letter(*letter) || "._%+-'".contains(*letter)).map(char::len_utf8).sum::<usize>();
    let local = scan.part(at - local, at).trim_start_matches(['.', '-', '\'', '%']);
    let tail = scan.text.get(at + 1..)?;
    let domain = tail.chars().take(253).take_while(|letter| is_letter(*letter) || matches!(letter, '.' | '-')).map(char::len_utf8).sum::<usize>();
    let domain = scan.part(at + 1, at + 1 + domain).trim_end_matches(['.', '-']);
    let (host, last) = domain.rsplit_once('.')?;
    let is_domain = last.chars().count() >= 2
        && !last.contains(|letter: char| letter.is_ascii_digit() || letter == '-')
        && !host.is_empty()
        && !host.starts_with(['.', '-']);
    let is_file = FILES.contains(&last.to_ascii_lowercase().as_str());
    // The account under which everybody reaches a repository is nobody's address.
    let is_somebody = !local.is_empty() && local != "git" && !local.ends_with('.');
    (is_domain && !is_file && is_somebody && !is_in_url(scan, at - local.len())).then(|| scan.span(at - local.len(), at + 1 + domain.len(), Kind::Email))
}

/// Whether this stands before the host of a URL: that is a name or a password, and is looked for as such.
fn is_in_url(scan: &Scan<'_>, at: usize) -> bool {
    let start = scan.run_back(at, 256, |byte| !byte.is_ascii_whitespace() && !matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<'));
    start.checked_sub(3).is_some_and(|scheme| scan.is_at(scheme, "://"))
}

/// Groups of digits that stand together.
struct Number {
    /// Where each begins and ends.
    all: [(usize, usize); GROUPS_MAX],
    count: usize,
}

impl Number {
    /// Reads on from the first group, over one sign between two, or a space and a bracket.
    fn read(scan: &Scan<'_>, start: usize, end: usize) -> Self {
        let mut number = Self { all: [(start, end); GROUPS_MAX], count: 1 };
        let mut last = end;
        while let Some(group) = number.all.get_mut(number.count) {
            let gap = scan.run(last, 2, |byte| matches!(byte, b' ' | b'-' | b'.' | b'/' | b'(' | b')'));
            let stop = scan.run(gap, PHONE_DIGITS_MAX + 1, |byte| byte.is_ascii_digit());
            if gap == last || stop == gap {
                break;
            }
            *group = (gap, stop);
            number.count += 1;
            last = stop;
            if stop - gap > PHONE_DIGITS_MAX {
                break;
            }
        }
        number
    }

    fn groups(&self) -> &[(usize, usize)] {
        self.all.get(..self.count).unwrap_or_default()
    }

    fn start(&self) -> usize {
        self.groups().first().map_or(0, |group| group.0)
    }

    /// The first groups, if they have these lengths and the same single sign between them, and no digit or letter is near.
    fn fits(&self, scan: &Scan<'_>, lengths: &[usize], signs: &[u8]) -> Option<(usize, usize)> {
        let groups = self.groups().get(..lengths.len())?;
        let (start, end) = (groups.first()?.0, groups.last()?.1);
        let is_shaped = groups.iter().zip(lengths).all(|((from, to), length)| to - from == *length);
        let mut between = groups.windows(2).map(|pair| match pair {
            [(_, one), (other, _)] if other - one == 1 => scan.byte(*one),
            _ => None,
        });
        let sign = scan.byte(groups.first()?.1);
        let is_even = between.all(|found| found.is_some_and(|found| signs.contains(&found) && Some(found) == sign));
        (is_shaped && is_even && is_alone(scan, start, end)).then_some((start, end))
    }

    fn card(&self, scan: &Scan<'_>) -> Option<Span> {
        let (from, to) = *self.groups().first()?;
        let shapes: [&[usize]; 7] = [&[4, 4, 4, 4], &[4, 4, 4, 4, 3], &[4, 4, 4, 4, 2], &[4, 4, 4, 4, 1], &[4, 6, 5], &[4, 6, 4], &[4, 4, 5]];
        // Most numbers are no card at the first look.
        let (start, end) = match to - from {
            13..=19 if is_alone(scan, from, to) => (from, to),
            4 if self.count >= 3 => shapes.iter().find_map(|shape| self.fits(scan, shape, b" -"))?,
            _ => return None,
        };
        let digits: Vec<u8> = scan.part(start, end).bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
        (is_issued(&digits) && luhn(&digits)).then(|| scan.span(start, end, Kind::Card))
    }

    fn ssn(&self, scan: &Scan<'_>) -> Option<Span> {
        let (from, to) = *self.groups().first()?;
        if !matches!((to - from, self.count), (3, 3..) | (9, _)) {
            return None;
        }
        let told = || is_after(scan, self.start(), &["ssn", "social security", "social security number", "social security no"]);
        let with_words = || self.fits(scan, &[3, 2, 4], b" .").or_else(|| self.fits(scan, &[9], b"")).filter(|_| told());
        let (start, end) = self.fits(scan, &[3, 2, 4], b"-").or_else(with_words)?;
        let digits: String = scan.part(start, end).chars().filter(char::is_ascii_digit).collect();
        let (area, rest) = digits.split_at_checked(3)?;
        let (group, serial) = rest.split_at_checked(2)?;
        let is_given = area != "000" && area != "666" && !area.starts_with('9') && group != "00" && serial != "0000";
        is_given.then(|| scan.span(start, end, Kind::Ssn))
    }

    fn phone(&self, scan: &Scan<'_>) -> Option<Span> {
        let start = self.start();
        let end = self.groups().last()?.1;
        let digits = self.groups().iter().map(|(from, to)| to - from).sum::<usize>();
        let bracket = if scan.before(start) == Some(b'(') { start - 1 } else { start };
        if scan.before(bracket) == Some(b'+') {
            let plus = bracket - 1;
            let least = if self.groups().len() == 1 { 10 } else { 8 };
            let is_free = !scan.before(plus).is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b')'));
            let is_country = scan.byte(start).is_some_and(|digit| digit != b'0');
            let is_number = is_free && is_country && (least..=PHONE_DIGITS_MAX).contains(&digits) && is_alone_after(scan, end);
            return is_number.then(|| scan.span(plus, end, Kind::Phone));
        }
        if let Some((from, to)) = self.american(scan) {
            return Some(scan.span(from, to, Kind::Phone));
        }
        if !(7..=PHONE_DIGITS_MAX).contains(&digits) {
            return None;
        }
        let told =
            is_after(scan, bracket, &["phone", "telephone", "tel", "mobile", "cell", "fax", "whatsapp", "phone number", "call", "mobil", "telefon", "handy"]);
        (told && is_alone_after(scan, end)).then(|| scan.span(bracket, end, Kind::Phone))
    }

    /// `(415) 555-2671`, `415-555-2671`, `415.555.2671`, each also after a 1.
    fn american(&self, scan: &Scan<'_>) -> Option<(usize, usize)> {
        let is_one = self.groups().first().is_some_and(|(from, to)| scan.part(*from, *to) == "1");
        let groups = if is_one { self.groups().get(1..)? } else { self.groups() };
        let [(area, area_end), (office, office_end), (line, line_end), rest @ ..] = groups else { return None };
        let is_shaped = [area_end - area, office_end - office, line_end - line] == [3, 3, 4] && rest.is_empty();
        let is_given = [area, office].into_iter().all(|at| scan.byte(*at).is_some_and(|digit| digit >= b'2'));
        let is_bracketed = scan.before(*area) == Some(b'(') && scan.byte(*area_end) == Some(b')');
        let (one, two) = (scan.byte(*area_end), scan.byte(*office_end));
        let is_even = one == two && *office - *area_end == 1 && *line - *office_end == 1 && matches!(one, Some(b'-' | b'.'));
        let from = if is_one {
            self.start()
        } else if is_bracketed {
            area - 1
        } else {
            *area
        };
        let is_apart = is_alone(scan, from, *line_end);
        (is_shaped && is_given && (is_bracketed || is_even) && is_apart).then_some((from, *line_end))
    }
}

/// Whether no digit, letter or sign that goes on with a number touches it.
pub(super) fn is_alone(scan: &Scan<'_>, start: usize, end: usize) -> bool {
    let before = scan.before(start);
    let is_joined = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#'))
        || (before.is_some_and(|byte| matches!(byte, b'-' | b'.' | b'/' | b','))
            && start.checked_sub(1).is_some_and(|at| scan.before(at).is_some_and(|byte| byte.is_ascii_alphanumeric())));
    !is_joined && is_alone_after(scan, end)
}

fn is_alone_after(scan: &Scan<'_>, end: usize) -> bool {
    let goes_on = scan.byte(end + 1).is_some_and(|byte| byte.is_ascii_alphanumeric());
    scan.byte(end).is_none_or(|after| match after {
        b'-' | b'.' | b'/' => !goes_on,
        b'_' => false,
        _ => !after.is_ascii_alphanumeric(),
    })
}

/// Whether one of these words stands right before, with at most a colon or so between.
pub(super) fn is_after(scan: &Scan<'_>, at: usize, words: &[&str]) -> bool {
    let head = scan.text.get(scan.text.floor_char_boundary(at.saturating_sub(40))..at).unwrap_or_default().to_ascii_lowercase();
    let head = head.trim_end_matches([' ', ':', '.', '=', '#', '"', '\'', '(', '\t']);
    let head = head.strip_suffix(" is").unwrap_or(head);
    words.iter().any(|word| head.strip_suffix(word).is_some_and(|rest| !rest.ends_with(|letter: char| letter.is_ascii_alphanumeric())))
}

/// Whether somebody issues cards with such numbers.
fn is_issued(digits: &[u8]) -> bool {
    let begins = |count: usize| digits.iter().take(count).fold(0_u32, |number, digit| number * 10 + u32::from(*digit));
    let length = digits.len();
    match begins(4) {
        4000..=4999 => matches!(length, 13 | 16 | 19),
        5100..=5599 | 2221..=2720 => length == 16,
        3400..=3499 | 3700..=3799 => length == 15,
        6011 | 6440..=6599 | 3528..=3589 | 6200..=6299 => (16..=19).contains(&length),
        3000..=3059 | 3600..=3699 | 3800..=3999 => length == 14,
        _ => false,
    }
}

fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| {
            let digit = u32::from(*digit);
            if place % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
        })
        .sum();
    sum.is_multiple_of(10) && digits.iter().any(|digit| Some(digit) != digits.first())
}

/// How long the account numbers of each country are.
const IBAN_LENGTHS: &str = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 \
GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 \
NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30";

/// An account number whose two check digits begin at a place.
fn iban(scan: &Scan<'_>, digits: usize) -> Option<Span> {
    let start = digits.checked_sub(2)?;
    let country = scan.part(start, digits);
    if country.len() != 2 || !country.bytes().all(|byte| byte.is_ascii_alphabetic()) || !scan.begins(start) {
        return None;
    }
    let country = country.to_ascii_uppercase();
    let length: usize = IBAN_LENGTHS.split_whitespace().find_map(|entry| entry.strip_prefix(country.as_str())?.parse().ok())?;
    let mut number = Vec::with_capacity(length);
    let mut at = start;
    while number.len() < length {
        match scan.byte(at)? {
            byte if byte.is_ascii_alphanumeric() => number.push(byte.to_ascii_uppercase()),
            // One space between two groups.
            b' ' if scan.before(at) != Some(b' ') => {}
            _ => return None,
        }
        at += 1;
    }
    let is_whole = !scan.byte(at).is_some_and(|byte| byte.is_ascii_alphanumeric());
    let moved = number.iter().skip(4).chain(number.iter().take(4));
    let rest = moved.fold(0_u32, |rest, byte| match byte {
        b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
        letter => (rest * 100 + u32::from(letter - b'A') + 10) % 97,
    });
    (is_whole && rest == 1).then(|| scan.span(start, at, Kind::Iban))
}
