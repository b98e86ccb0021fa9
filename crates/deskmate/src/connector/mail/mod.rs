//! A mailbox over IMAP, and a server that takes mail. Reading leaves no trace in the mailbox; an answer goes to whoever wrote, and
//! anything else only to whom the mount names. Without TLS only this machine is spoken to.

mod inbox;
mod letter;

use std::time::Duration;

use lettre::AsyncTransport;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::{Fault, Offer, no_tool, read};
use crate::config::MailServer;
use crate::effects::notify::mail::{refused, sender};
use crate::effects::notify::webhook::Refused;

pub(crate) use inbox::Access;
use letter::Letter;

/// How many mails are read at once, if nobody says, and at most.
const MAILS: u32 = 20;
const MAILS_MAX: u32 = 200;
/// How long a text may be.
const TEXT_BYTES_MAX: usize = 100_000;
/// How long all of one call may take.
const TIME: Duration = Duration::from_secs(50);

/// The connector.
pub(crate) struct Mail {
    pub(crate) access: Access,
    /// Where answers that are not sent yet are put.
    pub(crate) drafts: String,
    /// Who sends.
    pub(crate) from: String,
    /// The server that takes mail, if any does.
    pub(crate) server: Option<(MailServer, Option<Zeroizing<String>>)>,
    /// To whom mail may go that is no answer: addresses, or domains.
    pub(crate) to: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadMail {
    after: Option<String>,
    most: Option<f64>,
}

/// What is written, and to whom.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    reply_to: Option<String>,
    to: Option<String>,
    subject: Option<String>,
    text: String,
}

impl Mail {
    pub(super) fn offers(&self) -> Vec<Offer> {
        let written = json!({
            "reply_to": { "type": "string", "description": "The id of the mail that this answers; it goes to whoever wrote that" },
            "to": { "type": "string", "description": "The address, where it answers nothing; the mount says which are allowed" },
            "subject": { "type": "string", "description": "The subject, where it answers nothing" },
            "text": { "type": "string", "description": "What it says" },
        });
        let mut offers = vec![
            Offer {
                name: "read_mail",
                about: "Read new mail, oldest first: what is unread, or what came after a place that an earlier answer named",
                properties: json!({ "after": { "type": "string", "description": "What an earlier answer gave as `after`" },
                    "most": { "type": "number", "description": "How many at most; 20 if not given" } }),
                needed: &[],
                reads: true,
            },
            Offer {
                name: "draft_mail",
                about: "Put a mail among the drafts of the mailbox, for a person to send",
                properties: written.clone(),
                needed: &["text"],
                reads: false,
            },
        ];
        if self.server.is_some() {
            offers.push(Offer { name: "send_mail", about: "Send a mail", properties: written, needed: &["text"], reads: false });
        }
        offers
    }

    pub(super) async fn call(&self, tool: &str, given: Map<String, Value>) -> Result<Value, Fault> {
        let done = async {
            match tool {
                "read_mail" => {
                    let asked: ReadMail = read(given)?;
                    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped to a few hundred")]
                    let most = asked.most.map_or(MAILS, |most| most.clamp(1.0, f64::from(MAILS_MAX)) as u32);
                    Ok(self.access.read(asked.after.as_deref(), most).await?)
                }
                "draft_mail" => {
                    let letter = self.letter(read(given)?).await?;
                    self.access.append(&self.drafts, &letter).await?;
                    Ok(json!({ "drafted": true, "to": letter.to, "subject": letter.subject }))
                }
                "send_mail" => self.send(read(given)?).await,
                other => Err(no_tool(other)),
            }
        };
        match tokio::time::timeout(TIME, done).await {
            Ok(done) => done,
            Err(_) if tool == "read_mail" => Err(Fault::Failed(format!("the mail server did not answer within {} s", TIME.as_secs()))),
            Err(_) => Err(Fault::Unknown(format!("the mail server did not answer within {} s", TIME.as_secs()))),
        }
    }

    async fn letter(&self, write: Write) -> Result<Letter, Fault> {
        if write.text.trim().is_empty() || write.text.len() > TEXT_BYTES_MAX {
            return Err(Fault::Failed(format!("text must have between 1 and {TEXT_BYTES_MAX} bytes")));
        }
        let letter = match (write.reply_to, write.to) {
            (Some(id), None) => Letter::answer(&self.from, &self.access.fetch(&id).await?, write.text)?,
            (None, Some(to)) => {
                if !self.may_go_to(&to) {
                    return Err(Fault::Failed("mail that answers nothing goes only to whom the mount names with --allow-to".to_owned()));
                }
                Letter::new(&self.from, &to, write.subject.as_deref().unwrap_or_default(), write.text)?
            }
            _ => return Err(Fault::Failed("give either reply_to or to".to_owned())),
        };
        Ok(letter)
    }

    fn may_go_to(&self, to: &str) -> bool {
        let Ok(address) = to.parse::<lettre::Address>() else { return false };
        self.to.iter().any(|allowed| match allowed.strip_prefix('@').unwrap_or(allowed) {
            domain if !domain.contains('@') => address.domain().eq_ignore_ascii_case(domain),
            whole => to.eq_ignore_ascii_case(whole),
        })
    }

    async fn send(&self, write: Write) -> Result<Value, Fault> {
        let Some((server, password)) = &self.server else { return Err(no_tool("send_mail")) };
        let letter = self.letter(write).await?;
        let told = |refused: Refused| match refused {
            Refused::Never(why) | Refused::Other(why) | Refused::Later { error: why, .. } => Fault::Failed(why),
            Refused::Gone => Fault::Failed("the mail server is gone".to_owned()),
        };
        let transport = sender(server, password.clone()).await.map_err(told)?;
        let (to, subject) = (letter.to.clone(), letter.subject.clone());
        match transport.send_raw(&letter.envelope, &letter.bytes).await {
            Ok(_) => Ok(json!({ "sent": true, "to": to, "subject": subject })),
            // A server that answers says whether it took it; one that falls silent, or goes away on the way, does not.
            Err(error) if error.status().is_some() || error.is_client() || error.is_tls() || is_unreached(&error) => Err(told(refused(&error))),
            Err(error) if error.is_timeout() => Err(Fault::Unknown(error.to_string())),
            Err(_) => Err(Fault::Unknown("the mail server went away before it said whether it took the mail".to_owned())),
        }
    }
}

/// Whether no connection came to be. Only its words tell that from one that broke; another wording would count as the latter.
fn is_unreached(error: &lettre::transport::smtp::Error) -> bool {
    !error.is_timeout() && error.to_string().starts_with("Connection error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_that_answers_nothing_goes_only_where_it_may() {
        let mail = Mail {
            access: Access::none(),
            drafts: "Drafts".into(),
            from: "a@b.example".into(),
            server: None,
            to: vec!["@example.org".into(), "x@y.example".into()],
        };
        assert!(mail.may_go_to("ada@example.org") && mail.may_go_to("ada@EXAMPLE.org") && mail.may_go_to("x@y.example"));
        for no in ["z@y.example", "ada@sub.example.org", "ada@example.org.evil.example", "ada@example.org, x@evil.example", "", "@example.org"] {
            assert!(!mail.may_go_to(no), "{no}");
        }
    }
}
