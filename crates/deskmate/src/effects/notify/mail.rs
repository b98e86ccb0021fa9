//! E-mail over SMTP. Without TLS only a server on this machine is spoken to; what the server wrote is not repeated.

use std::time::Duration;

use deskmate_core::notify::Mail;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use zeroize::Zeroizing;

use super::webhook::Refused;
use crate::config::{MailServer, MailTls};

/// How long one exchange with the server may take, and all of them.
const STEP: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(25);

pub(crate) type Sender = AsyncSmtpTransport<Tokio1Executor>;

/// Sends a mail; answers its id.
pub(super) async fn send(server: &MailServer, password: Option<Zeroizing<String>>, to: &str, mail: &Mail) -> Result<Option<String>, Refused> {
    let message = message(server, to, mail)?;
    let id = message.headers().get_raw("Message-ID").map(str::to_owned);
    let sent = async { sender(server, password).await?.send(message).await.map_err(|error| refused(&error)) };
    match tokio::time::timeout(TIMEOUT, sent).await {
        Ok(Ok(_)) => Ok(id),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(Refused::Other(format!("the mail server did not answer within {} s", TIMEOUT.as_secs()))),
    }
}

/// Says that a program sent it, so that no other program answers (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Says how urgent it is.
#[derive(Clone)]
struct Importance;

impl Header for Importance {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Importance")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "high".to_owned())
    }
}

fn message(server: &MailServer, to: &str, mail: &Mail) -> Result<Message, Refused> {
    let wrong = |what: &str| Refused::Never(format!("{what} is not an e-mail address"));
    let from: Mailbox = server.from.parse().map_err(|_| wrong("from"))?;
    let to: Mailbox = to.parse().map_err(|_| wrong("the address"))?;
    // The same at every attempt: a server or a reader that gets it twice knows it again.
    let id = format!("<{}@{}>", mail.id, from.email.domain());
    let mut builder = Message::builder().from(from).to(to).message_id(Some(id)).subject(mail.subject.clone()).header(AutoSubmitted);
    if mail.urgent {
        builder = builder.header(Importance);
    }
    let built = builder.header(ContentType::TEXT_PLAIN).body(mail.text.clone());
    built.map_err(|error| Refused::Never(format!("the mail cannot be written: {error}")))
}

pub(crate) async fn sender(server: &MailServer, password: Option<Zeroizing<String>>) -> Result<Sender, Refused> {
    let (host, tls) = match server.tls {
        MailTls::None => (local(server).await?, Tls::None),
        MailTls::Starttls => (server.host.clone(), Tls::Required(parameters(server)?)),
        MailTls::Implicit => (server.host.clone(), Tls::Wrapper(parameters(server)?)),
    };
    let hello = ClientId::Domain("deskmate.localhost".to_owned());
    let mut builder = Sender::builder_dangerous(host).port(server.port).tls(tls).timeout(Some(STEP)).hello_name(hello);
    if let (Some((user, _)), Some(password)) = (&server.login, password) {
        builder = builder.credentials(Credentials::new(user.clone(), password.to_string()));
    }
    Ok(builder.build())
}

/// An address of this machine, whatever the name resolves to.
async fn local(server: &MailServer) -> Result<String, Refused> {
    let bare = server.host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, server.port)).await.map_err(|error| Refused::Other(format!("{}: {error}", server.host)))?;
    // A name may stand for several addresses, of which the server listens on one.
    let mut local: Vec<_> = found.filter(|address| address.ip().is_loopback()).collect();
    local.sort_by_key(std::net::SocketAddr::is_ipv6);
    let first = local.first().ok_or_else(|| Refused::Never(format!("{} is not on this machine, and tls is none", server.host)))?;
    Ok(first.ip().to_string())
}

/// TLS with the certificates of the file, or with those that the system believes.
fn parameters(server: &MailServer) -> Result<TlsParameters, Refused> {
    let passing = |what: String| Refused::Other(what);
    let bare = server.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let mut builder = TlsParameters::builder(bare);
    if let Some(file) = &server.ca_file {
        let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let certificates = read.map_err(|error| passing(format!("{}: {error}", file.display())))?;
        if certificates.is_empty() {
            return Err(passing(format!("{} holds no certificates that can be used", file.display())));
        }
        builder = builder.certificate_store(CertificateStore::None);
        for certificate in certificates {
            builder = builder.add_root_certificate(Certificate::from_der(certificate.to_vec()).map_err(|error| passing(format!("TLS: {error}")))?);
        }
    }
    builder.build_rustls().map_err(|error| passing(format!("TLS: {error}")))
}

/// What went wrong, in our words.
pub(crate) fn refused(error: &lettre::transport::smtp::Error) -> Refused {
    if let Some(code) = error.status() {
        let told = format!("the mail server answered {code}");
        return if error.is_permanent() { Refused::Never(told) } else { Refused::Other(told) };
    }
    if error.is_timeout() {
        return Refused::Other(format!("the mail server did not answer within {} s", STEP.as_secs()));
    }
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    match (tls_fault(error), error.is_tls()) {
        (Some(rustls::Error::InvalidCertificate(_)), _) => return Refused::Other("TLS: the certificate of the mail server is not trusted here".to_owned()),
        (Some(fault), _) => return Refused::Other(format!("TLS: {fault}")),
        (None, true) => return Refused::Other(format!("TLS: {source}")),
        (None, false) => {}
    }
    if error.is_response() {
        return Refused::Other("the mail server said something that is not SMTP".to_owned());
    }
    if error.is_client() {
        // Such as a server without STARTTLS, or without a way to sign in that we know.
        return Refused::Never(format!("the mail server cannot be used: {source}"));
    }
    Refused::Other(format!("the mail server cannot be reached: {source}"))
}

/// What TLS found wrong, wherever in the chain of causes it stands.
fn tls_fault<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let mut cause = Some(error);
    while let Some(one) = cause {
        if let Some(fault) = one.downcast_ref::<rustls::Error>() {
            return Some(fault);
        }
        let inner = one.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(fault) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Some(fault);
        }
        cause = one.source();
    }
    None
}
