//! The section `telemetry`: what the desk tells the machines that watch it. Both parts are off unless they are named, and
//! no variable of the environment turns them on.

use std::path::{Path, PathBuf};

use hyper::header::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::{ConfigError, Result, notifications};

/// The section as it is written.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TelemetrySection {
    /// Whether figures are served at `/metrics`, for Prometheus; false if not given. Reading them needs a person's
    /// credential.
    prometheus: bool,
    /// Where spans of calls are sent, for OpenTelemetry; nowhere if not given.
    #[schemars(with = "Option<OtlpSection>")]
    otlp: Option<Spanned<OtlpSection>>,
}

/// A collector that speaks OTLP over HTTP.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OtlpSection {
    /// Its address, for example `http://127.0.0.1:4318`; `/v1/traces` is added. https, or http to this machine.
    url: String,
    /// A file with headers that it asks for, such as `Authorization: Bearer …`, one on each line.
    #[serde(default)]
    headers_file: Option<PathBuf>,
    /// Certificates (PEM) that are believed instead of the system's.
    #[serde(default)]
    ca_file: Option<PathBuf>,
}

/// What is told to machines.
#[derive(Clone, Debug, Default)]
pub(crate) struct Telemetry {
    /// Whether `/metrics` is served.
    pub(crate) prometheus: bool,
    /// Where spans go.
    pub(crate) collector: Option<Collector>,
}

/// A collector of spans.
#[derive(Clone, Debug)]
pub(crate) struct Collector {
    pub(crate) url: hyper::Uri,
    /// What it asks for; never shown.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) ca_file: Option<PathBuf>,
    /// The files that the configuration names for it.
    pub(crate) files: Vec<PathBuf>,
}

const TRACES: &str = "/v1/traces";

pub(super) fn settle(section: TelemetrySection, home: &Path, at: &dyn Fn(serde_saphyr::Location) -> String) -> Result<Telemetry> {
    let collector = section.otlp.map(|otlp| {
        let place = at(otlp.referenced);
        collector(otlp.value, home).map_err(|what| ConfigError(format!("{place}: otlp: {what}")))
    });
    Ok(Telemetry { prometheus: section.prometheus, collector: collector.transpose()? })
}

fn collector(section: OtlpSection, home: &Path) -> std::result::Result<Collector, String> {
    let base = section.url.trim_end_matches('/');
    let whole = if base.ends_with(TRACES) { base.to_owned() } else { format!("{base}{TRACES}") };
    let url = notifications::address(&whole)?;
    let (headers_file, ca_file) = (section.headers_file.map(|file| home.join(file)), section.ca_file.map(|file| home.join(file)));
    let headers = headers_file.as_deref().map(headers).transpose()?.unwrap_or_default();
    if let Some(file) = ca_file.as_deref().filter(|file| !file.is_file()) {
        return Err(format!("ca_file: {} does not exist: name a PEM file", file.display()));
    }
    let files = headers_file.into_iter().chain(ca_file.clone()).collect();
    Ok(Collector { url, headers, ca_file, files })
}

/// Headers of a file. They are secrets: an error names the line and not what stands there.
fn headers(file: &Path) -> std::result::Result<Vec<(HeaderName, HeaderValue)>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("headers_file: {}: {error}", file.display()))?;
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let read = |(line, number): (&str, i32)| {
        let pair = line.split_once(':').and_then(|(name, value)| {
            let mut value = HeaderValue::from_str(value.trim()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value))
        });
        pair.ok_or_else(|| format!("headers_file: {}:{number} is not a header: write for example Authorization: Bearer …", file.display()))
    };
    lines.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(url: &str, headers_file: Option<PathBuf>) -> OtlpSection {
        OtlpSection { url: url.to_owned(), headers_file, ca_file: None }
    }

    #[test]
    fn the_address_is_one_that_spans_may_be_sent_to() {
        for (url, whole) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("https://collector.example.org/otlp", "https://collector.example.org/otlp/v1/traces"),
            ("https://collector.example.org/v1/traces", "https://collector.example.org/v1/traces"),
        ] {
            assert_eq!(collector(section(url, None), Path::new("/desk")).unwrap().url.to_string(), whole);
        }
        for bad in ["", "collector", "ftp://x", "http://collector.example.org:4318", "https://me:secret@collector.example.org"] {
            let error = collector(section(bad, None), Path::new("/desk")).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn headers_are_read_and_never_shown() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("good"), "Authorization: Bearer hush-1\n\nx-tenant: a:b\n").unwrap();
        let good = collector(section("http://127.0.0.1:1", Some("good".into())), home.path()).unwrap();
        let names: Vec<(&str, &str)> = good.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(names, [("authorization", "Bearer hush-1"), ("x-tenant", "a:b")]);
        assert!(!format!("{good:?}").contains("hush"), "{good:?}");
        assert_eq!(good.files, [home.path().join("good")]);
        std::fs::write(home.path().join("bad"), "Authorization: Bearer x\nhush-2\n").unwrap();
        let error = collector(section("http://127.0.0.1:1", Some("bad".into())), home.path()).unwrap_err();
        assert!(error.contains("bad:2") && !error.contains("hush"), "{error}");
        assert!(collector(section("http://127.0.0.1:1", Some("none".into())), home.path()).is_err());
    }
}
