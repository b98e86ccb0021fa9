//! National numbers of persons. One with a check digit is believed only with it; one without, or whose check one number in ten
//! passes, also needs the form in which people write it, or a word before it that names it.

use super::kind::Kind;
use super::personal::{is_after, is_alone};
use super::scan::{Scan, Span};

/// The longest of them.
const MOST: usize = 16;

const NINO_WORDS: &[&str] = &["national insurance number", "national insurance no", "national insurance", "nino", "ni number", "ni no"];
const BSN_WORDS: &[&str] = &["bsn", "bsn-nummer", "bsn nummer", "bsn number", "burgerservicenummer", "sofinummer", "citizen service number"];
const AADHAAR_WORDS: &[&str] = &["aadhaar", "aadhar", "aadhaar number", "aadhaar no", "aadhar number", "aadhar no", "uidai"];

/// Pairs of letters that no national insurance number begins with.
const NINO_NEVER: [&[u8]; 7] = [b"BG", b"GB", b"KN", b"NK", b"NT", b"TN", b"ZZ"];
/// The letter of a Spanish number, by its rest.
const DNI_LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";
/// What letters and digits in the odd places of an Italian number count, from `A` or `0`.
const CODICE_ODD: [u32; 26] = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
/// Letters that stand in for digits there, in their order.
const CODICE_DIGITS: &[u8; 10] = b"LMNPQRSTUV";
/// The letters of months there.
const CODICE_MONTHS: &[u8; 12] = b"ABCDEHLMPRST";

/// What Verhoeff's check multiplies, and what it permutes by.
const VERHOEFF: [[u8; 10]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    [1, 2, 3, 4, 0, 6, 7, 8, 9, 5],
    [2, 3, 4, 0, 1, 7, 8, 9, 5, 6],
    [3, 4, 0, 1, 2, 8, 9, 5, 6, 7],
    [4, 0, 1, 2, 3, 9, 5, 6, 7, 8],
    [5, 9, 8, 7, 6, 0, 4, 3, 2, 1],
    [6, 5, 9, 8, 7, 1, 0, 4, 3, 2],
    [7, 6, 5, 9, 8, 2, 1, 0, 4, 3],
    [8, 7, 6, 5, 9, 3, 2, 1, 0, 4],
    [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
];
const PERMUTED: [[u8; 10]; 8] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
    [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
    [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
    [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
    [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
    [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
    [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
];

/// The kinds that this finds.
pub(super) const KINDS: [Kind; 7] = [Kind::UkNino, Kind::DeTaxId, Kind::FrNir, Kind::EsDni, Kind::ItCodiceFiscale, Kind::NlBsn, Kind::InAadhaar];

/// Finds a number whose first digits stand here. How many they are tells most kinds apart before anything is read.
pub(super) fn find(scan: &Scan<'_>, start: usize, end: usize, kinds: &[Kind]) -> Option<Span> {
    let candidates: &[Kind] = match end - start {
        1 | 13 | 15 => &[Kind::FrNir],
        2 => &[Kind::DeTaxId, Kind::EsDni, Kind::UkNino, Kind::ItCodiceFiscale],
        3 | 9 => &[Kind::NlBsn],
        4 => &[Kind::InAadhaar, Kind::NlBsn],
        6 => &[Kind::UkNino, Kind::FrNir],
        7 | 8 => &[Kind::EsDni],
        11 => &[Kind::DeTaxId],
        12 => &[Kind::InAadhaar],
        _ => return None,
    };
    candidates.iter().filter(|kind| kinds.contains(kind)).find_map(|kind| one(scan, start, *kind, false))
}

/// Whether a whole text is a number of a kind, as the key above it says.
pub(super) fn is_one(kind: Kind, text: &str) -> bool {
    let text = text.trim();
    let scan = Scan::new(text);
    let first = text.bytes().position(|byte| byte.is_ascii_digit()).unwrap_or_default();
    one(&scan, first, kind, true).is_some_and(|span| span.start == 0 && span.end == text.len())
}

fn one(scan: &Scan<'_>, start: usize, kind: Kind, is_told: bool) -> Option<Span> {
    let told = |from: usize, words: &[&str]| is_told || is_after(scan, from, words);
    let (from, read) = match kind {
        Kind::UkNino => {
            let (from, read) = after_letters(scan, start, 2, &[2, 2, 2, 2, 1], b" ")?;
            (is_nino(read.bytes()) && (read.is_grouped || told(from, NINO_WORDS))).then_some((from, read))
        }
        Kind::DeTaxId => gather(scan, start, &[2, 3, 3, 3], b" ").filter(|read| is_german(read.bytes())).map(|read| (start, read)),
        Kind::FrNir => {
            let shapes: [&[usize]; 2] = [&[1, 2, 2, 2, 3, 3, 2], &[13, 2]];
            shapes.iter().find_map(|shape| gather(scan, start, shape, b" ")).filter(|read| is_nir(read.bytes())).map(|read| (start, read))
        }
        Kind::EsDni => {
            let foreigner = || after_letters(scan, start, 1, &[1, 7, 1], b"-").filter(|(_, read)| is_dni(read.bytes()));
            let shapes: [&[usize]; 2] = [&[8, 1], &[2, 3, 3, 1]];
            let own = shapes.iter().find_map(|shape| gather(scan, start, shape, b".-")).filter(|read| is_dni(read.bytes()));
            own.map(|read| (start, read)).or_else(foreigner)
        }
        Kind::ItCodiceFiscale => after_letters(scan, start, 6, &[6, 5, 5], b" ").filter(|(_, read)| is_codice(read.bytes())),
        Kind::NlBsn => {
            let shapes: [&[usize]; 2] = [&[3, 3, 3], &[4, 2, 3]];
            let read = shapes.iter().find_map(|shape| gather(scan, start, shape, b" ."))?;
            (is_bsn(read.bytes()) && told(start, BSN_WORDS)).then_some((start, read))
        }
        Kind::InAadhaar => {
            let read = gather(scan, start, &[4, 4, 4], b" -")?;
            (is_aadhaar(read.bytes()) && (read.is_grouped || told(start, AADHAAR_WORDS))).then_some((start, read))
        }
        _ => None,
    }?;
    Some(scan.span(from, read.end, kind))
}

/// What was read of a number, in capitals.
struct Read {
    signs: [u8; MOST],
    count: usize,
    end: usize,
    /// With a sign between its groups.
    is_grouped: bool,
}

impl Read {
    fn bytes(&self) -> &[u8] {
        self.signs.get(..self.count).unwrap_or_default()
    }
}

/// Reads groups of letters and digits with one sign between all of them, or none between any, if nothing touches them.
fn gather(scan: &Scan<'_>, start: usize, shape: &[usize], between: &[u8]) -> Option<Read> {
    let mut read = Read { signs: [0; MOST], count: 0, end: start, is_grouped: false };
    for (number, length) in shape.iter().enumerate() {
        let is_sign = scan.byte(read.end).is_some_and(|byte| between.contains(&byte));
        if number == 1 {
            read.is_grouped = is_sign;
        }
        if number > 0 && is_sign != read.is_grouped {
            return None;
        }
        read.end += usize::from(number > 0 && is_sign);
        for _ in 0..*length {
            let byte = scan.byte(read.end).filter(u8::is_ascii_alphanumeric)?;
            *read.signs.get_mut(read.count)? = byte.to_ascii_uppercase();
            read.count += 1;
            read.end += 1;
        }
    }
    // A group more, before or after, makes it another number.
    let is_sign = |byte: Option<u8>| byte.is_some_and(|byte| between.contains(&byte));
    let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
    let goes_on = is_sign(scan.byte(read.end)) && is_digit(scan.byte(read.end + 1));
    let comes_from = is_sign(scan.before(start)) && start.checked_sub(1).is_some_and(|at| is_digit(scan.before(at)));
    let is_whole = !read.is_grouped || !(goes_on || comes_from);
    (is_whole && is_alone(scan, start, read.end)).then_some(read)
}

/// The same where letters stand before the first digits, with or without a sign between.
fn after_letters(scan: &Scan<'_>, digits: usize, letters: usize, shape: &[usize], between: &[u8]) -> Option<(usize, Read)> {
    let gap = usize::from(scan.before(digits).is_some_and(|byte| between.contains(&byte)));
    let start = digits.checked_sub(letters + gap)?;
    let head = scan.part(start, start + letters);
    if head.len() != letters || !head.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    Some((start, gather(scan, start, shape, between)?))
}

/// The digits, if they are all digits.
fn digits(bytes: &[u8]) -> Option<Vec<u32>> {
    bytes.iter().map(|byte| byte.is_ascii_digit().then(|| u32::from(byte - b'0'))).collect()
}

fn is_nino(bytes: &[u8]) -> bool {
    let [first, second, numbers @ .., last] = bytes else { return false };
    let begins = first.is_ascii_uppercase()
        && second.is_ascii_uppercase()
        && !b"DFIQUV".contains(first)
        && !b"DFIOQUV".contains(second)
        && !NINO_NEVER.contains(&[*first, *second].as_slice());
    begins && numbers.len() == 6 && numbers.iter().all(u8::is_ascii_digit) && (b'A'..=b'D').contains(last)
}

/// One digit of the first ten stands there two or three times, the others once at most; the last is checked by ISO 7064.
fn is_german(bytes: &[u8]) -> bool {
    let Some(digits) = digits(bytes) else { return false };
    let [body @ .., check] = digits.as_slice() else { return false };
    let mut often = [0_u8; 10];
    for digit in body {
        if let Some(count) = usize::try_from(*digit).ok().and_then(|digit| often.get_mut(digit)) {
            *count += 1;
        }
    }
    let is_shaped = often.iter().filter(|count| **count > 1).count() == 1 && often.iter().all(|count| *count <= 3);
    let product = body.iter().fold(10, |product, digit| {
        let sum = (digit + product) % 10;
        (if sum == 0 { 10 } else { sum }) * 2 % 11
    });
    body.first().is_some_and(|first| *first != 0) && is_shaped && (11 - product) % 10 == *check
}

/// Sex, year, month, department (Corsica has letters), commune, order, and a key of two digits.
fn is_nir(bytes: &[u8]) -> bool {
    let mut plain = bytes.to_vec();
    if let Some([department, half]) = plain.get_mut(5..7).and_then(|pair| <&mut [u8; 2]>::try_from(pair).ok()) {
        match (*department, *half) {
            (b'2', b'A') => [*department, *half] = *b"19",
            (b'2', b'B') => [*department, *half] = *b"18",
            _ => {}
        }
    }
    let Some(digits) = digits(&plain) else { return false };
    let number = |from: usize, to: usize| digits.get(from..to).unwrap_or_default().iter().fold(0_u64, |number, digit| number * 10 + u64::from(*digit));
    let is_person = matches!(number(0, 1), 1..=4 | 7 | 8);
    let is_month = matches!(number(3, 5), 1..=12 | 20..=42 | 50..=99);
    is_person && is_month && number(5, 7) > 0 && number(10, 13) > 0 && 97 - number(0, 13) % 97 == number(13, 15)
}

/// Eight digits and their letter; foreigners have a letter in the place of the first.
fn is_dni(bytes: &[u8]) -> bool {
    let [first, middle @ .., letter] = bytes else { return false };
    let first = match first {
        b'X' => b'0',
        b'Y' => b'1',
        b'Z' => b'2',
        digit => *digit,
    };
    let Some(digits) = std::iter::once(first).chain(middle.iter().copied()).map(|byte| byte.is_ascii_digit().then(|| usize::from(byte - b'0'))).collect()
    else {
        return false;
    };
    let digits: Vec<usize> = digits;
    let rest = digits.iter().fold(0, |number, digit| number * 10 + digit) % 23;
    digits.len() == 8 && digits.iter().any(|digit| *digit != 0) && DNI_LETTERS.get(rest) == Some(letter)
}

fn is_codice(bytes: &[u8]) -> bool {
    // Where two people would have the same number, letters stand in for digits.
    let digit = |byte: u8| {
        if byte.is_ascii_digit() { Some(byte - b'0') } else { CODICE_DIGITS.iter().position(|letter| *letter == byte).and_then(|at| u8::try_from(at).ok()) }
    };
    let at = |place: usize| bytes.get(place).copied().unwrap_or_default();
    let day = digit(at(9)).zip(digit(at(10))).map(|(tens, ones)| tens * 10 + ones);
    let is_shaped = bytes.len() == MOST
        && (0..6).chain([8, 11, 15]).all(|place| at(place).is_ascii_uppercase())
        && [6, 7, 9, 10, 12, 13, 14].into_iter().all(|place| digit(at(place)).is_some())
        && CODICE_MONTHS.contains(&at(8))
        && day.is_some_and(|day| matches!(day, 1..=31 | 41..=71));
    let value = |byte: u8| usize::from(if byte.is_ascii_digit() { byte - b'0' } else { byte.saturating_sub(b'A') });
    let sum: u32 = bytes
        .iter()
        .take(MOST - 1)
        .enumerate()
        .map(|(place, byte)| if place % 2 == 0 { CODICE_ODD.get(value(*byte)).copied().unwrap_or(0) } else { u32::try_from(value(*byte)).unwrap_or(0) })
        .sum();
    is_shaped && sum % 26 == u32::from(at(15).saturating_sub(b'A'))
}

/// The test of eleven, in which the last digit counts down.
fn is_bsn(bytes: &[u8]) -> bool {
    let Some(digits) = digits(bytes) else { return false };
    let [body @ .., last] = digits.as_slice() else { return false };
    let sum: u32 = body.iter().zip((2..=9).rev()).map(|(digit, weight)| digit * weight).sum();
    body.len() == 8 && sum >= *last && (sum - last).is_multiple_of(11) && sum > 0
}

fn is_aadhaar(bytes: &[u8]) -> bool {
    let is_given = bytes.first().is_some_and(|first| (b'2'..=b'9').contains(first)) && bytes.iter().any(|byte| Some(byte) != bytes.first());
    let rest = bytes.iter().rev().zip(PERMUTED.iter().cycle()).try_fold(0_u8, |rest, (byte, permuted)| {
        let digit = permuted.get(usize::from(byte.checked_sub(b'0')?))?;
        VERHOEFF.get(usize::from(rest))?.get(usize::from(*digit)).copied()
    });
    is_given && rest == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a number with one check digit that finds every wrong digit, each other digit in any place is refused.
    #[test]
    fn one_wrong_digit_is_found() {
        type Check = fn(&[u8]) -> bool;
        let whole: [(&str, Check); 5] =
            [("86095742719", is_german), ("184127645108946", is_nir), ("12345678Z", is_dni), ("123456782", is_bsn), ("234123412346", is_aadhaar)];
        for (number, is) in whole {
            assert!(is(number.as_bytes()), "{number}");
            for at in 0..number.len() {
                for digit in b'0'..=b'9' {
                    let mut other = number.as_bytes().to_vec();
                    if other[at].is_ascii_digit() && other[at] != digit {
                        other[at] = digit;
                        assert!(!is(&other), "{number} with {} at {at}", char::from(digit));
                    }
                }
            }
        }
        assert!(is_codice(b"RSSMRA85T10A562S") && !is_codice(b"RSSMRA85T10A562T") && !is_codice(b"RSSMRA85T40A562S"));
    }
}
