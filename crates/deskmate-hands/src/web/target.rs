//! An address as it is given or redirected to, judged before anything is looked up.

use url::{Host, Url};

use super::{FetchError, Limits};

/// Longer addresses are no addresses of pages.
const URL_BYTES_MAX: usize = 8_000;

/// An address that may be looked up.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) url: Url,
    pub(super) host: Host<String>,
    pub(super) port: u16,
    pub(super) secure: bool,
}

impl Target {
    /// Reads an address. Other spellings of an IPv4 address (decimal, octal, hexadecimal) are that address from here on.
    pub(super) fn parse(url: &str, limits: &Limits) -> Result<Self, FetchError> {
        if url.len() > URL_BYTES_MAX {
            return Err(FetchError::Address("it is too long".to_owned()));
        }
        let url = Url::parse(url.trim()).map_err(|error| FetchError::Address(error.to_string()))?;
        Self::judge(url, limits)
    }

    /// Where a redirect leads.
    pub(super) fn follow(&self, location: &[u8], limits: &Limits) -> Result<Self, FetchError> {
        let location = std::str::from_utf8(location).map_err(|_| FetchError::RedirectAddress)?;
        if location.len() > URL_BYTES_MAX {
            return Err(FetchError::RedirectAddress);
        }
        let url = self.url.join(location).map_err(|_| FetchError::RedirectAddress)?;
        let target = Self::judge(url, limits)?;
        if self.secure && !target.secure {
            return Err(FetchError::Downgrade);
        }
        if !limits.elsewhere && target.host != self.host {
            return Err(FetchError::Elsewhere(target.name(), target.url.to_string()));
        }
        Ok(target)
    }

    fn judge(mut url: Url, limits: &Limits) -> Result<Self, FetchError> {
        let secure = match url.scheme() {
            "https" => true,
            "http" => false,
            other => return Err(FetchError::Scheme(other.chars().take(30).collect())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(FetchError::Credentials);
        }
        let host = url.host().ok_or_else(|| FetchError::Address("it has no host".to_owned()))?.to_owned();
        let port = url.port_or_known_default().unwrap_or(if secure { 443 } else { 80 });
        if !limits.ports.contains(&port) {
            return Err(FetchError::Port(port));
        }
        if let Host::Domain(name) = &host {
            // Every name below it is this machine too, whatever a resolver says.
            let name = name.trim_end_matches('.');
            if name == "localhost" || name.ends_with(".localhost") {
                return Err(FetchError::NotPublic(name.to_owned()));
            }
        }
        // Servers are not told which part of a page is wanted.
        url.set_fragment(None);
        Ok(Self { url, host, port, secure })
    }

    /// The host's name, for messages.
    pub(super) fn name(&self) -> String {
        self.host.to_string()
    }
}
