//! A mailbox over IMAP: opened for each call, read without a trace.

use std::path::PathBuf;
use std::sync::Arc;

use async_imap::{Client, Session};
use futures_util::TryStreamExt;
use mail_parser::MessageParser;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use zeroize::Zeroizing;

use super::letter::{Letter, is_answerable};
use crate::effects::outbound;

/// Larger mails are named, and not read.
const MAIL_BYTES_MAX: u32 = 2 * 1024 * 1024;
/// How much of a text is passed on.
const TEXT_CHARS_MAX: usize = 20_000;

/// What a connection is read from and written to.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug> Stream for T {}

type Open = Session<Box<dyn Stream>>;

/// How a mailbox is reached.
pub(crate) struct Access {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Without it only this machine is spoken to.
    pub(crate) tls: bool,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) user: String,
    pub(crate) password: Zeroizing<String>,
    pub(crate) folder: String,
}

/// What the server said is not repeated in full: it may hold anything.
fn told(error: async_imap::error::Error) -> String {
    use async_imap::error::Error;
    match error {
        Error::No(said) | Error::Bad(said) => format!("the mail server says no: {}", said.chars().take(200).collect::<String>()),
        other => format!("IMAP: {other}"),
    }
}

impl Access {
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self { host: String::new(), port: 0, tls: true, ca_file: None, user: String::new(), password: Zeroizing::default(), folder: String::new() }
    }

    async fn open(&self) -> Result<Open, String> {
        let stream = outbound::connect(&self.host, self.port, !self.tls).await?;
        let stream: Box<dyn Stream> = if self.tls {
            let bare = self.host.trim_start_matches('[').trim_end_matches(']').to_owned();
            let name = ServerName::try_from(bare).map_err(|_| "the mail server has no valid name".to_owned())?;
            let tls = tokio_rustls::TlsConnector::from(Arc::new(outbound::tls(self.ca_file.as_deref())?));
            Box::new(tls.connect(name, stream).await.map_err(|error| format!("TLS: {error}"))?)
        } else {
            Box::new(stream)
        };
        let mut client = Client::new(stream);
        client.read_response().await.map_err(|error| error.to_string())?.ok_or("the mail server said nothing")?;
        client.login(&self.user, self.password.as_str()).await.map_err(|(error, _)| told(error))
    }

    /// Reads new mail, oldest first. A place is named as `VALIDITY:UID`: when the server numbers its mails anew, what is unread counts.
    pub(super) async fn read(&self, after: Option<&str>, most: u32) -> Result<Value, String> {
        let mut session = self.open().await?;
        let mailbox = session.examine(&self.folder).await.map_err(told)?;
        let validity = mailbox.uid_validity.unwrap_or_default();
        let after: Option<u32> =
            after.and_then(|place| place.split_once(':')).filter(|(of, _)| *of == validity.to_string()).and_then(|(_, uid)| uid.parse().ok());
        let query = after.map_or_else(|| "UNSEEN".to_owned(), |uid| format!("UID {}:*", uid.saturating_add(1)));
        let mut uids: Vec<u32> = session.uid_search(query).await.map_err(told)?.into_iter().collect();
        // `*` is the newest mail, also where that is older.
        uids.retain(|uid| after.is_none_or(|after| *uid > after));
        uids.sort_unstable();
        let more = uids.len() > most as usize;
        uids.truncate(most as usize);
        // Without mail the place is where the mailbox ends now.
        let end = mailbox.uid_next.map(|next| next.saturating_sub(1));
        let place = uids.last().copied().or(after).or(end).unwrap_or_default();
        let mut items = Vec::new();
        if !uids.is_empty() {
            let set = uids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let sizes: Vec<_> = session.uid_fetch(&set, "(UID RFC822.SIZE)").await.map_err(told)?.try_collect().await.map_err(told)?;
            let large: Vec<u32> = sizes.iter().filter(|mail| mail.size.is_none_or(|size| size > MAIL_BYTES_MAX)).filter_map(|mail| mail.uid).collect();
            for uid in uids {
                items.push(if large.contains(&uid) {
                    json!({ "id": format!("{validity}:{uid}"), "subject": "", "from": "", "text": "", "too_large": true, "answerable": false })
                } else {
                    match raw(&mut session, uid).await? {
                        Some(bytes) => shown(&format!("{validity}:{uid}"), &bytes),
                        // It was taken away meanwhile.
                        None => continue,
                    }
                });
            }
        }
        drop(session.logout().await);
        Ok(json!({ "count": items.len(), "items": items, "after": format!("{validity}:{place}"), "more": more }))
    }

    /// A mail by its id, as it came.
    pub(super) async fn fetch(&self, id: &str) -> Result<Vec<u8>, String> {
        let (validity, uid) = id.split_once(':').and_then(|(validity, uid)| Some((validity, uid.parse().ok()?))).ok_or("this is no id of a mail")?;
        let mut session = self.open().await?;
        let mailbox = session.examine(&self.folder).await.map_err(told)?;
        if mailbox.uid_validity.unwrap_or_default().to_string() != validity {
            return Err("the mailbox numbers its mails anew: read it again".to_owned());
        }
        let found = raw(&mut session, uid).await?;
        drop(session.logout().await);
        found.ok_or_else(|| format!("there is no mail {id}"))
    }

    /// Puts a mail into a folder, as a draft.
    pub(super) async fn append(&self, folder: &str, letter: &Letter) -> Result<(), String> {
        let mut session = self.open().await?;
        session.append(folder, Some("(\\Draft)"), None, &letter.bytes).await.map_err(told)?;
        drop(session.logout().await);
        Ok(())
    }
}

async fn raw(session: &mut Open, uid: u32) -> Result<Option<Vec<u8>>, String> {
    let found: Vec<_> = session.uid_fetch(uid.to_string(), "(UID BODY.PEEK[])").await.map_err(told)?.try_collect().await.map_err(told)?;
    Ok(found.iter().find(|mail| mail.uid == Some(uid)).and_then(|mail| mail.body()).map(<[u8]>::to_vec))
}

fn shown(id: &str, bytes: &[u8]) -> Value {
    let Some(mail) = MessageParser::default().parse(bytes) else {
        return json!({ "id": id, "subject": "", "from": "", "text": "", "unreadable": true, "answerable": false });
    };
    let text = mail.body_text(0).unwrap_or_default();
    let cut: String = text.chars().take(TEXT_CHARS_MAX).collect();
    let from = mail.from().and_then(|address| address.first()?.address()).unwrap_or_default();
    json!({
        "id": id,
        "subject": mail.subject().unwrap_or_default(),
        "from": from,
        "date": mail.date().map(mail_parser::DateTime::to_rfc3339),
        "text": cut,
        "truncated": cut.len() < text.len(),
        "answerable": is_answerable(&mail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Mail is of strangers: it is shown or said to be unreadable, and never more of it than is passed on.
        #[test]
        fn any_mail_is_shown_within_its_bounds(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400), head in "((From|Subject|Date|Content-Type|Content-Transfer-Encoding): [ -~]{0,40}\r\n){0,5}",
            body in "(?s).{0,80}", times in 0_usize..600,
        ) {
            for mail in [bytes, format!("{head}\r\n{}", body.repeat(times)).into_bytes()] {
                let shown = shown("1:1", &mail);
                let text = shown["text"].as_str().unwrap_or_default();
                proptest::prop_assert!(shown["id"] == "1:1" && text.chars().count() <= TEXT_CHARS_MAX);
            }
        }
    }
}
