//! A mail that is written: an answer to another one, or one of its own.

use lettre::message::header::{ContentType, InReplyTo, References};
use lettre::message::{Mailbox, header};
use lettre::{Message, address::Envelope};
use mail_parser::{HeaderValue, MessageParser};

/// How long a subject may be.
const SUBJECT_CHARS_MAX: usize = 200;

/// A mail as it is sent or kept.
pub(super) struct Letter {
    pub(super) to: String,
    pub(super) subject: String,
    pub(super) envelope: Envelope,
    pub(super) bytes: Vec<u8>,
}

impl Letter {
    /// A mail of its own.
    pub(super) fn new(from: &str, to: &str, subject: &str, text: String) -> Result<Self, String> {
        Self::built(from, to, subject, text, None)
    }

    /// An answer to a mail, as it came from the server: it goes to whoever wrote that, and to nobody else.
    pub(super) fn answer(from: &str, original: &[u8], text: String) -> Result<Self, String> {
        let mail = MessageParser::default().parse(original).ok_or("the mail that it answers cannot be read")?;
        if !is_answerable(&mail) {
            return Err("a program wrote that mail, and gets no answer".to_owned());
        }
        let to = mail.reply_to().or_else(|| mail.from()).and_then(|address| address.first()?.address()).ok_or("nobody can be answered")?.to_owned();
        let subject = mail.subject().unwrap_or_default();
        let subject = if subject.to_lowercase().starts_with("re:") { subject.to_owned() } else { format!("Re: {subject}") };
        let id = mail.message_id().map(|id| format!("<{id}>"));
        let mut all: Vec<String> = match mail.references() {
            HeaderValue::Text(id) => vec![format!("<{id}>")],
            HeaderValue::TextList(ids) => ids.iter().map(|id| format!("<{id}>")).collect(),
            _ => Vec::new(),
        };
        all.extend(id.clone());
        Self::built(from, &to, &subject, text, id.map(|id| (id, all.join(" "))))
    }

    fn built(from: &str, to: &str, subject: &str, text: String, thread: Option<(String, String)>) -> Result<Self, String> {
        let from: Mailbox = from.parse().map_err(|_| "from is not an e-mail address".to_owned())?;
        let address: lettre::Address = to.parse().map_err(|_| "it would go to what is not an e-mail address".to_owned())?;
        // What came from a mail must not become another header.
        let subject: String = subject.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SUBJECT_CHARS_MAX).collect();
        let mut builder = Message::builder().from(from).to(Mailbox::new(None, address)).subject(subject.clone()).message_id(None).date_now();
        if let Some((id, all)) = thread.filter(|(id, all)| !id.chars().chain(all.chars()).any(char::is_control)) {
            builder = builder.header(InReplyTo::from(id)).header(References::from(all));
        }
        let message = builder.header(ContentType::TEXT_PLAIN).header(header::MIME_VERSION_1_0).body(text);
        let message = message.map_err(|error| format!("the mail cannot be written: {error}"))?;
        Ok(Self { to: to.to_owned(), subject, envelope: message.envelope().clone(), bytes: message.formatted() })
    }
}

/// Whether a mail is from somebody who can be answered: programs and lists are not.
pub(super) fn is_answerable(mail: &mail_parser::Message<'_>) -> bool {
    let text = |name: &'static str| mail.header_raw(name).unwrap_or_default().trim().to_lowercase();
    let auto = text("Auto-Submitted");
    let sender = mail.from().and_then(|address| address.first()?.address()).unwrap_or_default().to_lowercase();
    let is_program = sender.starts_with("no-reply") || sender.starts_with("noreply") || sender.starts_with("mailer-daemon") || sender.is_empty();
    (auto.is_empty() || auto == "no") && text("List-Id").is_empty() && !matches!(text("Precedence").as_str(), "bulk" | "list" | "junk") && !is_program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_goes_to_whoever_wrote_and_carries_nothing_else() {
        let original = b"From: Ada <ada@example.org>\r\nTo: us@example.net\r\nSubject: =?utf-8?q?Where=0D=0ABcc:_evil@example.com?=\r\nMessage-ID: <1@example.org>\r\nReferences: <0@example.org>\r\n\r\nhello?\r\n";
        let letter = Letter::answer("Desk <us@example.net>", original, "Soon.".into()).unwrap();
        let text = String::from_utf8(letter.bytes).unwrap();
        assert_eq!(letter.to, "ada@example.org");
        assert!(!text.to_lowercase().contains("\r\nbcc:"), "{text}");
        assert!(text.contains("In-Reply-To: <1@example.org>") && text.contains("<0@example.org> <1@example.org>") && text.contains("Soon."), "{text}");
        assert_eq!(letter.envelope.to().len(), 1);
        for program in ["Auto-Submitted: auto-replied", "List-Id: <x.example>", "Precedence: bulk"] {
            let original = format!("From: a@example.org\r\n{program}\r\nSubject: x\r\n\r\nx\r\n");
            assert!(Letter::answer("us@example.net", original.as_bytes(), "no".into()).is_err(), "{program}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        /// Whatever mail a stranger sends, an answer has one recipient, and no header that came out of that mail.
        #[test]
        fn any_mail_is_answered_to_one_or_not_at_all(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300), subject in "[ -~]{0,60}(=?utf-8[?]q[?]=0D=0ABcc:_x@example.com[?]=)?", id in "[!-~]{1,40}",
            from in "([a-z]{1,8} )?<?[a-z.]{1,12}@example[.]org>?(, b@example[.]org)?",
        ) {
            let mail = format!("From: {from}\r\nSubject: {subject}\r\nMessage-ID: <{id}>\r\nReferences: {id}\r\n\r\nhello\r\n");
            for original in [bytes.as_slice(), mail.as_bytes()] {
                if let Ok(letter) = Letter::answer("us@example.net", original, "Soon.".into()) {
                    let text = String::from_utf8_lossy(&letter.bytes).to_lowercase();
                    proptest::prop_assert_eq!(letter.envelope.to().len(), 1);
                    proptest::prop_assert!(!text.contains("\nbcc:") && text.matches("\nto:").count() <= 1, "{}", text);
                }
            }
        }
    }
}
