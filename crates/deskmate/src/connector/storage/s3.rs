//! S3, and servers that speak like it: requests are signed (version 4), buckets stand in the path.

use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use rusty_s3::actions::ListObjectsV2;
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use url::Url;

use super::webdav::length;
use super::{OBJECT_BYTES_MAX, check_key};
use crate::connector::Reach;
use crate::connector::reach::{Asked, Came};

/// How long a signature is good.
const SIGNED: Duration = Duration::from_mins(5);

/// What requests are signed with.
pub(crate) fn credentials(key: &str, secret: &str) -> Credentials {
    Credentials::new(key, secret)
}

/// A bucket, or what begins so in it.
pub(crate) struct S3 {
    reach: Reach,
    bucket: Bucket,
    credentials: Credentials,
    prefix: String,
}

impl S3 {
    pub(crate) fn new(reach: Reach, endpoint: &str, (bucket, region): (&str, &str), prefix: &str, credentials: Credentials) -> Result<Self, String> {
        let endpoint = Url::parse(endpoint).map_err(|error| format!("{endpoint:?} is no address: {error}"))?;
        Reach::check_private(&endpoint)?;
        let prefix = match prefix.trim_matches('/') {
            "" => String::new(),
            prefix => {
                check_key(prefix)?;
                format!("{prefix}/")
            }
        };
        let bucket = Bucket::new(endpoint, UrlStyle::Path, bucket.to_owned(), region.to_owned()).map_err(|error| error.to_string())?;
        Ok(Self { reach, bucket, credentials, prefix })
    }

    fn key(&self, key: &str) -> Result<String, String> {
        check_key(key)?;
        Ok(format!("{}{key}", self.prefix))
    }

    async fn ask(&self, method: Method, url: &Url, body: Bytes) -> Result<Came, String> {
        // Everything here is kept under the digest of what it holds, or under a name that is new: doing it again does no harm.
        self.reach.look(Asked { method, url, headers: HeaderMap::new(), body, most: OBJECT_BYTES_MAX }).await
    }

    pub(super) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), String> {
        let full = self.key(key)?;
        let url = self.bucket.put_object(Some(&self.credentials), &full).sign(SIGNED);
        let came = self.ask(Method::PUT, &url, bytes).await?;
        if (200..300).contains(&came.status) { Ok(()) } else { Err(format!("{key} could not be put: the server answered {}", came.status)) }
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        let full = self.key(key)?;
        let url = self.bucket.get_object(Some(&self.credentials), &full).sign(SIGNED);
        let came = self.ask(Method::GET, &url, Bytes::new()).await?;
        match came.status {
            200 if came.cut => Err(format!("{key} is larger than anything that was put there")),
            200 => Ok(Some(came.body)),
            404 => Ok(None),
            status => Err(format!("{key} could not be brought: the server answered {status}")),
        }
    }

    pub(super) async fn head(&self, key: &str) -> Result<Option<u64>, String> {
        let full = self.key(key)?;
        let url = self.bucket.head_object(Some(&self.credentials), &full).sign(SIGNED);
        let came = self.ask(Method::HEAD, &url, Bytes::new()).await?;
        match came.status {
            200 => Ok(Some(length(&came.headers))),
            404 => Ok(None),
            status => Err(format!("{key} could not be looked at: the server answered {status}")),
        }
    }

    pub(super) async fn list(&self, prefix: &str, most: usize) -> Result<Vec<String>, String> {
        let (full, mut names, mut token) = (format!("{}{prefix}", self.prefix), Vec::new(), None::<String>);
        loop {
            let mut action = self.bucket.list_objects_v2(Some(&self.credentials));
            action.with_prefix(full.clone());
            if let Some(token) = &token {
                action.with_continuation_token(token.clone());
            }
            let url = action.sign(SIGNED);
            let came = self.ask(Method::GET, &url, Bytes::new()).await?;
            if came.status != 200 || came.cut {
                return Err(format!("the bucket could not be listed: the server answered {}", came.status));
            }
            let text = std::str::from_utf8(&came.body).map_err(|_| "the list cannot be read".to_owned())?;
            let page = ListObjectsV2::parse_response(text).map_err(|error| format!("the list cannot be read: {error}"))?;
            names.extend(page.contents.into_iter().filter_map(|found| found.key.strip_prefix(&self.prefix).map(str::to_owned)));
            token = page.next_continuation_token;
            if token.is_none() || names.len() >= most {
                names.truncate(most);
                return Ok(names);
            }
        }
    }
}
