//! A WebDAV server.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use data_encoding::BASE64;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderValue};
use url::Url;

use super::{OBJECT_BYTES_MAX, check_key};
use crate::connector::Reach;
use crate::connector::reach::{Asked, Came};

/// A folder on a WebDAV server.
pub(crate) struct Webdav {
    reach: Reach,
    url: Url,
    headers: HeaderMap,
    /// Folders that are known to be there.
    made: Mutex<BTreeSet<String>>,
}

impl Webdav {
    pub(crate) fn new(reach: Reach, url: &str, user: Option<&str>, password: Option<&str>) -> Result<Self, String> {
        let mut url = Url::parse(url).map_err(|error| format!("{url:?} is no address: {error}"))?;
        Reach::check_private(&url)?;
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            return Err("the address must hold no password and no question: write --user, and keep the password as a secret".to_owned());
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        let mut headers = HeaderMap::new();
        if let Some(user) = user {
            let login = BASE64.encode(format!("{user}:{}", password.unwrap_or_default()).as_bytes());
            let mut value = HeaderValue::try_from(format!("Basic {login}")).map_err(|_| "the password cannot be sent".to_owned())?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self { reach, url, headers, made: Mutex::default() })
    }

    async fn ask(&self, method: Method, key: &str, body: Bytes) -> Result<Came, String> {
        check_key(key)?;
        let url = self.url.join(key).map_err(|error| error.to_string())?;
        // Everything here is kept under the digest of what it holds, or under a name that is new: doing it again does no harm.
        self.reach.look(Asked { method, url: &url, headers: self.headers.clone(), body, most: OBJECT_BYTES_MAX }).await
    }

    /// Makes the folders that a name lies in.
    async fn make_folders(&self, key: &str) -> Result<(), String> {
        let make = Method::from_bytes(b"MKCOL").map_err(|error| error.to_string())?;
        for (at, _) in key.match_indices('/') {
            let folder = key.get(..at).unwrap_or_default().to_owned();
            if self.made.lock().unwrap_or_else(PoisonError::into_inner).contains(&folder) {
                continue;
            }
            let came = self.ask(make.clone(), &folder, Bytes::new()).await?;
            // Not allowed means that it is there.
            if !matches!(came.status, 200..=299 | 405) {
                return Err(format!("the folder {folder} could not be made: the server answered {}", came.status));
            }
            self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(folder);
        }
        Ok(())
    }

    pub(super) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), String> {
        self.make_folders(key).await?;
        let came = self.ask(Method::PUT, key, bytes).await?;
        if (200..300).contains(&came.status) { Ok(()) } else { Err(format!("{key} could not be put: the server answered {}", came.status)) }
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        let came = self.ask(Method::GET, key, Bytes::new()).await?;
        match came.status {
            200 if came.cut => Err(format!("{key} is larger than anything that was put there")),
            200 => Ok(Some(came.body)),
            404 => Ok(None),
            status => Err(format!("{key} could not be brought: the server answered {status}")),
        }
    }

    pub(super) async fn head(&self, key: &str) -> Result<Option<u64>, String> {
        let came = self.ask(Method::HEAD, key, Bytes::new()).await?;
        match came.status {
            200 => Ok(Some(length(&came.headers))),
            404 => Ok(None),
            status => Err(format!("{key} could not be looked at: the server answered {status}")),
        }
    }
}

pub(super) fn length(headers: &HeaderMap) -> u64 {
    headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok()).unwrap_or_default()
}
