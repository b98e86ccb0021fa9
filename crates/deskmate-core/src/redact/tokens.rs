//! Secrets that are known by their form: what they begin with, and what goes on after it.
//!
//! One automaton finds every beginning and every word that may announce a secret in a single pass; what stands there is looked
//! at only then.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::context::{self, Announces};
use super::kind::Kind;
use super::scan::{Scan, Span};

/// How much of a token is looked at to tell whether it is one: of the first in a run of characters, and of others in it.
const LOOKED_AT: usize = 16 * 1024;
const LOOKED_AT_AGAIN: usize = 256;

/// A form of tokens.
struct Form {
    begins: &'static str,
    kind: Kind,
    /// How many characters follow at least.
    least: usize,
    /// What they look like.
    is: fn(&str) -> bool,
}

const fn form(begins: &'static str, kind: Kind, least: usize, is: fn(&str) -> bool) -> Form {
    Form { begins, kind, least, is }
}

const FORMS: &[Form] = &[
    form("dma_", Kind::DeskmateToken, 40, base32),
    form("dmp_", Kind::DeskmateToken, 40, base32),
    form("dmr_", Kind::DeskmateToken, 40, base32),
    form("dms_", Kind::DeskmateToken, 40, base32),
    form("dmi_", Kind::DeskmateToken, 40, base32),
    form("dmc_", Kind::DeskmateToken, 40, base32),
    form("dml_", Kind::DeskmateToken, 40, base32),
    form("DESKMATE-SECRET-KEY-1-", Kind::DeskmateToken, 40, varied),
    form("sk-ant-", Kind::AnthropicKey, 20, varied),
    form("AKIA", Kind::AwsKey, 16, aws),
    form("ASIA", Kind::AwsKey, 16, aws),
    form("ABIA", Kind::AwsKey, 16, aws),
    form("ACCA", Kind::AwsKey, 16, aws),
    form("ghp_", Kind::GithubToken, 36, plain),
    form("gho_", Kind::GithubToken, 36, plain),
    form("ghu_", Kind::GithubToken, 36, plain),
    form("ghs_", Kind::GithubToken, 36, plain),
    form("ghr_", Kind::GithubToken, 36, plain),
    form("github_pat_", Kind::GithubToken, 22, varied),
    form("glpat-", Kind::GitlabToken, 20, varied),
    form("gldt-", Kind::GitlabToken, 20, varied),
    form("glrt-", Kind::GitlabToken, 20, varied),
    form("glcbt-", Kind::GitlabToken, 20, varied),
    form("glptt-", Kind::GitlabToken, 20, varied),
    form("glft-", Kind::GitlabToken, 20, varied),
    form("glimt-", Kind::GitlabToken, 20, varied),
    form("glagent-", Kind::GitlabToken, 20, varied),
    form("gloas-", Kind::GitlabToken, 20, varied),
    form("glsoat-", Kind::GitlabToken, 20, varied),
    form("xoxb-", Kind::SlackToken, 16, varied),
    form("xoxp-", Kind::SlackToken, 16, varied),
    form("xoxa-", Kind::SlackToken, 16, varied),
    form("xoxr-", Kind::SlackToken, 16, varied),
    form("xoxs-", Kind::SlackToken, 16, varied),
    form("xoxc-", Kind::SlackToken, 16, varied),
    form("xoxd-", Kind::SlackToken, 16, varied),
    form("xoxe-", Kind::SlackToken, 16, varied),
    form("xoxe.", Kind::SlackToken, 16, varied),
    form("xapp-", Kind::SlackToken, 16, varied),
    form("hooks.slack.com/services/", Kind::SlackToken, 20, varied),
    form("AIza", Kind::GoogleKey, 35, varied),
    form("GOCSPX-", Kind::GoogleKey, 20, varied),
    form("ya29.", Kind::GoogleKey, 20, varied),
    form("sk_live_", Kind::StripeKey, 10, varied),
    form("sk_test_", Kind::StripeKey, 10, varied),
    form("rk_live_", Kind::StripeKey, 10, varied),
    form("rk_test_", Kind::StripeKey, 10, varied),
    form("whsec_", Kind::StripeKey, 24, varied),
    form("npm_", Kind::NpmToken, 36, plain),
    form("pypi-AgE", Kind::PypiToken, 50, varied),
    form("sk-", Kind::OpenaiKey, 20, openai),
    form("AGE-SECRET-KEY-1", Kind::PrivateKey, 50, varied),
    form("PRIVATE+KEY+", Kind::PrivateKey, 30, varied),
    form("eyJ", Kind::Jwt, 20, jwt),
];

/// What the automaton looks for: first the forms, then the words that announce something.
fn automaton() -> Option<&'static AhoCorasick> {
    static AUTOMATON: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let built = AUTOMATON.get_or_init(|| {
        let words = FORMS.iter().map(|form| form.begins).chain(context::ANNOUNCES.iter().map(|(word, _)| *word));
        let kind = Some(aho_corasick::AhoCorasickKind::DFA);
        AhoCorasick::builder().ascii_case_insensitive(true).match_kind(MatchKind::Standard).kind(kind).build(words).ok()
    });
    built.as_ref()
}

/// How long the shortest token of any form is.
#[cfg(test)]
pub(super) fn shortest() -> usize {
    FORMS.iter().map(|form| form.begins.len() + form.least).min().unwrap_or_default()
}

/// Finds secrets by their form and by what announces them.
pub(super) fn find(scan: &Scan<'_>, spans: &mut Vec<Span>) {
    let Some(automaton) = automaton() else {
        // It is built from constants, and a test builds it; without it nothing could be told, so nothing passes.
        spans.push(scan.span(0, scan.text.len(), Kind::Unclear));
        return;
    };
    let mut state = Walk::default();
    for found in automaton.find_overlapping_iter(scan.text) {
        let pattern = found.pattern().as_usize();
        match FORMS.get(pattern) {
            Some(form) => spans.extend(state.token(scan, form, found.start(), found.end())),
            None => {
                if let Some((_, announces)) = context::ANNOUNCES.get(pattern - FORMS.len()) {
                    state.announced(scan, *announces, found.start(), found.end(), spans);
                }
            }
        }
    }
}

/// What a walk through a text remembers, so that no part of it is walked twice.
#[derive(Default)]
struct Walk {
    /// Where the run of characters that tokens are made of ends, in which the last beginning stood.
    run_end: usize,
    /// The same without points at the end, which are a sentence's and none of a token's.
    run_stop: usize,
    context: context::Walk,
}

impl Walk {
    fn token(&mut self, scan: &Scan<'_>, form: &Form, start: usize, end: usize) -> Option<Span> {
        if !scan.begins(start) || !scan.is_at(start, form.begins) {
            return None;
        }
        let mut most = LOOKED_AT_AGAIN;
        if end > self.run_end {
            self.run_end = scan.run(end, usize::MAX, is_token);
            self.run_stop = scan.run_back(self.run_end, self.run_end - end, |byte| byte == b'.');
            most = LOOKED_AT;
        }
        let stop = self.run_stop.max(end);
        let looked = scan.part(end, stop.min(end + most));
        (looked.len() >= form.least && (form.is)(looked)).then(|| scan.span(start, stop, form.kind))
    }

    fn announced(&mut self, scan: &Scan<'_>, announces: Announces, start: usize, end: usize, spans: &mut Vec<Span>) {
        self.context.look(scan, announces, start, end, spans);
    }
}

/// What tokens are made of, of whatever kind: a longer one is taken out whole.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'/' | b'=')
}

fn distinct(text: &str) -> usize {
    let mut seen = [false; 256];
    text.bytes().take(64).filter(|byte| seen.get_mut(usize::from(*byte)).is_some_and(|seen| !std::mem::replace(seen, true))).count()
}

/// Not the same few characters over and over, as in an example.
fn varied(text: &str) -> bool {
    distinct(text) >= 7 && text.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Letters and digits only, as far as such a token is long at least.
fn plain(text: &str) -> bool {
    text.bytes().take(36).all(|byte| byte.is_ascii_alphanumeric()) && varied(text)
}

fn base32(text: &str) -> bool {
    text.bytes().take(40).all(|byte| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte)) && distinct(text) >= 7
}

/// Sixteen capital letters and digits, and then something else.
fn aws(text: &str) -> bool {
    let is = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    text.bytes().take(16).all(is) && !text.as_bytes().get(16).is_some_and(u8::is_ascii_alphanumeric) && distinct(text) >= 5
}

fn openai(text: &str) -> bool {
    let has = |is: fn(&u8) -> bool| text.bytes().any(|byte| is(&byte));
    let begins = ["proj-", "svcacct-", "admin-", "or-v1-"].iter().any(|begins| text.starts_with(begins));
    let solid = text.bytes().take(20).all(|byte| byte.is_ascii_alphanumeric() || (begins && matches!(byte, b'-' | b'_')));
    solid && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && distinct(text) >= 10
}

/// A header that is an object, a body that is one, and a signature; or the five parts of an encrypted one.
fn jwt(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').take(5).collect();
    let solid = |part: &&str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    match parts.as_slice() {
        [header, body, ..] => header.len() >= 10 && [header, body].into_iter().all(solid) && (body.starts_with("eyJ") || parts.len() == 5),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_automaton_is_built() {
        assert!(super::automaton().is_some());
    }
}
