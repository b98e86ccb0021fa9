//! Backups: files of one folder, kept in another folder, on WebDAV or in S3, each block under the digest of what it holds. A backup
//! is a manifest of digests; it is checked by reading everything again, and tried by bringing it back into a scratch place.

mod backup;
mod folder;
mod s3;
mod webdav;

use std::path::{Path, PathBuf};

use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Fault, Offer, no_tool, read};

pub(crate) use folder::Folder;
pub(crate) use s3::{S3, credentials};
pub(crate) use webdav::Webdav;

/// How large one thing that is kept may be.
pub(super) const OBJECT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How large a text may be that is put or brought by itself.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// How many names a list has.
const LISTED_MAX: usize = 1_000;

/// Where things are kept.
pub(crate) enum Place {
    Folder(Folder),
    Webdav(Webdav),
    S3(S3),
}

impl Place {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), String> {
        match self {
            Self::Folder(folder) => folder.put(key, &bytes),
            Self::Webdav(webdav) => webdav.put(key, bytes).await,
            Self::S3(s3) => s3.put(key, bytes).await,
        }
    }

    /// What is kept under a name, if anything is.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, String> {
        match self {
            Self::Folder(folder) => folder.get(key),
            Self::Webdav(webdav) => webdav.get(key).await,
            Self::S3(s3) => s3.get(key).await,
        }
    }

    /// How large what is kept under a name is, if anything is.
    async fn head(&self, key: &str) -> Result<Option<u64>, String> {
        match self {
            Self::Folder(folder) => folder.head(key),
            Self::Webdav(webdav) => webdav.head(key).await,
            Self::S3(s3) => s3.head(key).await,
        }
    }

    /// The names that begin so, in order.
    async fn list(&self, prefix: &str) -> Result<Vec<String>, String> {
        match self {
            Self::Folder(folder) => folder.list(prefix),
            Self::Webdav(_) => Err("what is on WebDAV is not listed here: name what you want".to_owned()),
            Self::S3(s3) => s3.list(prefix, LISTED_MAX).await,
        }
    }
}

/// Names of things that are kept: plain letters, so that they mean the same everywhere and lead nowhere else.
fn check_key(key: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(plain);
    if key.len() <= 200 && key.split('/').all(part) { Ok(()) } else { Err(format!("{key:?} is no name: write letters, digits, - _ . and /")) }
}

/// The connector.
pub(crate) struct Storage {
    pub(crate) place: Place,
    /// What is copied, if anything is.
    pub(crate) source: Option<PathBuf>,
    /// What of it is withheld, as globs.
    pub(crate) deny: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BackUp {
    name: String,
    #[serde(default)]
    folder: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default)]
    prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    name: String,
    text: String,
}

/// Texts that are put by themselves lie apart from backups.
fn own(name: &str) -> Result<String, String> {
    check_key(name)?;
    Ok(format!("objects/{name}"))
}

impl Storage {
    pub(super) fn offers() -> Vec<Offer> {
        let name = json!({ "type": "string", "description": "Its name: letters, digits, - _ . and /" });
        vec![
            Offer {
                name: "back_up",
                about: "Copy the files that this connector may read, and keep a manifest of their digests under a name that is new",
                properties: json!({ "name": name, "folder": { "type": "string", "description": "Only what is beneath this folder" } }),
                needed: &["name"],
                reads: false,
            },
            Offer {
                name: "verify_backup",
                about: "Read everything of a backup again and compare the digests",
                properties: json!({ "name": name }),
                needed: &["name"],
                reads: true,
            },
            Offer {
                name: "test_restore",
                about: "Bring a backup back into a scratch place, compare every file, and throw it away",
                properties: json!({ "name": name }),
                needed: &["name"],
                reads: true,
            },
            Offer { name: "list_backups", about: "The names of the backups", properties: json!({}), needed: &[], reads: true },
            Offer {
                name: "put_object",
                about: "Keep a text under a name",
                properties: json!({ "name": name, "text": { "type": "string", "description": "What is kept" } }),
                needed: &["name", "text"],
                reads: false,
            },
            Offer { name: "get_object", about: "Bring a text that is kept under a name", properties: json!({ "name": name }), needed: &["name"], reads: true },
            Offer {
                name: "head_object",
                about: "Say whether something is kept under a name, and how large it is",
                properties: json!({ "name": name }),
                needed: &["name"],
                reads: true,
            },
            Offer {
                name: "list_objects",
                about: "The names under which texts are kept",
                properties: json!({ "prefix": { "type": "string", "description": "What they begin with" } }),
                needed: &[],
                reads: true,
            },
        ]
    }

    pub(super) async fn call(&self, tool: &str, given: Map<String, Value>) -> Result<Value, Fault> {
        Ok(match tool {
            "back_up" => {
                let asked: BackUp = read(given)?;
                backup::make(self, &asked.name, &asked.folder).await?
            }
            "verify_backup" => backup::verify(&self.place, &read::<Named>(given)?.name).await?,
            "test_restore" => {
                let scratch = tempfile::Builder::new().prefix("deskmate-restore").tempdir().map_err(|error| error.to_string())?;
                backup::restore(&self.place, &read::<Named>(given)?.name, scratch.path()).await?
            }
            "list_backups" => {
                read::<Map<String, Value>>(given)?;
                let names: Vec<String> = self.place.list("backups/").await?.iter().filter_map(|key| backup::name_of(key)).collect();
                json!({ "count": names.len(), "items": names })
            }
            "put_object" => {
                let put: Put = read(given)?;
                if put.text.len() > TEXT_BYTES_MAX {
                    return Err(Fault::Failed(format!("text is longer than {TEXT_BYTES_MAX} bytes")));
                }
                let bytes = put.text.len();
                self.place.put(&own(&put.name)?, Bytes::from(put.text)).await?;
                json!({ "kept": true, "bytes": bytes })
            }
            "get_object" => {
                let name = read::<Named>(given)?.name;
                let found = self.place.get(&own(&name)?).await?.ok_or_else(|| format!("nothing is kept under {name}"))?;
                let text = std::str::from_utf8(&found)
                    .ok()
                    .filter(|text| text.len() <= TEXT_BYTES_MAX)
                    .ok_or_else(|| "it is no text, or too long for one".to_owned())?;
                json!({ "text": text })
            }
            "head_object" => {
                let found = self.place.head(&own(&read::<Named>(given)?.name)?).await?;
                json!({ "there": found.is_some(), "bytes": found })
            }
            "list_objects" => {
                let prefix = read::<Listed>(given)?.prefix;
                let all = self.place.list("objects/").await?;
                let names: Vec<&str> = all.iter().filter_map(|key| key.strip_prefix("objects/")).filter(|key| key.starts_with(&prefix)).collect();
                json!({ "count": names.len(), "items": names })
            }
            other => return Err(no_tool(other)),
        })
    }

    /// Brings a backup back into an empty folder, for a person.
    pub(crate) async fn restore(&self, name: &str, into: &Path) -> Result<Value, String> {
        let is_empty = std::fs::read_dir(into).map_err(|error| format!("{}: {error}", into.display()))?.next().is_none();
        if !is_empty {
            return Err(format!("{} is not empty: name a folder that is", into.display()));
        }
        backup::restore(&self.place, name, into).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for good in ["a", "2026-11-17-x", "a/b.json", "A_1"] {
            assert!(check_key(good).is_ok(), "{good}");
        }
        for bad in ["", "/a", "a/", "../a", "a/../b", ".hidden", "a b", "a\\b", "ä", "a//b"] {
            assert!(check_key(bad).is_err(), "{bad}");
        }
    }
}
