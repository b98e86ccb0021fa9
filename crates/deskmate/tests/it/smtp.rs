//! A mail server for tests: it speaks SMTP on loopback, with TLS from the start, after STARTTLS or not at all, checks who signs in,
//! and keeps what it took. It can be told to refuse.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use data_encoding::BASE64;

use super::desk::until;
use super::tls;

/// How a connection is protected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protected {
    /// Not at all.
    No,
    /// From the first byte.
    Implicit,
    /// When the client asks for it; before that nothing is taken.
    Starttls,
}

/// A mail that was taken.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    pub(crate) text: String,
    pub(crate) tls: bool,
    pub(crate) user: Option<String>,
}

impl Taken {
    pub(crate) fn header(&self, name: &str) -> &str {
        let line = self.text.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
        line.and_then(|line| line.split_once(':')).map_or_else(|| panic!("no {name} in {}", self.text), |(_, value)| value.trim())
    }

    /// The text without what quoted-printable did to it.
    pub(crate) fn body(&self) -> String {
        let body = self.text.split_once("\r\n\r\n").expect("a body").1;
        if !self.text.to_ascii_lowercase().contains("quoted-printable") {
            return body.to_owned();
        }
        let bytes = body.replace("=\r\n", "").into_bytes();
        let (mut plain, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let coded =
                (bytes[at] == b'=').then(|| std::str::from_utf8(&bytes[at + 1..at + 3]).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok())).flatten();
            plain.push(coded.unwrap_or(bytes[at]));
            at += if coded.is_some() { 3 } else { 1 };
        }
        String::from_utf8(plain).expect("UTF-8")
    }
}

/// What the server says to the end of a mail, one after the other; then it takes everything. `hang` says nothing, and `close` goes away instead.
type Answers = Arc<Mutex<VecDeque<String>>>;

/// The server.
pub(crate) struct MailServer {
    pub(crate) port: u16,
    taken: Arc<Mutex<Vec<Taken>>>,
}

/// Whoever may sign in.
pub(crate) const USER: &str = "desk";
pub(crate) const PASSWORD: &str = "p4ss-w\u{f6}rd-of-the-mail-server";

impl MailServer {
    pub(crate) fn new(protected: Protected, certificates: Option<&Path>, answers: &[&str]) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").unwrap(), protected, certificates, answers)
    }

    pub(crate) fn on(listener: TcpListener, protected: Protected, certificates: Option<&Path>, answers: &[&str]) -> Self {
        let port = listener.local_addr().unwrap().port();
        let taken: Arc<Mutex<Vec<Taken>>> = Arc::default();
        let answers: Answers = Arc::new(Mutex::new(answers.iter().map(|answer| (*answer).to_owned()).collect()));
        let config = certificates.map(|folder| Arc::new(tls::config(folder)));
        let kept = Arc::clone(&taken);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, answers, config) = (Arc::clone(&kept), Arc::clone(&answers), config.clone());
                std::thread::spawn(move || serve(stream, protected, config, &kept, &answers));
            }
        });
        Self { port, taken }
    }

    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }

    /// Waits for a number of mails.
    pub(crate) fn wait(&self, number: usize) -> Vec<Taken> {
        until("the mails come", || Some(self.taken()).filter(|taken| taken.len() >= number))
    }
}

/// Anything that is read and written.
trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

fn serve(stream: TcpStream, protected: Protected, config: Option<Arc<rustls::ServerConfig>>, kept: &Mutex<Vec<Taken>>, answers: &Mutex<VecDeque<String>>) {
    let secured = |stream: TcpStream| -> Box<dyn Wire> {
        let connection = rustls::ServerConnection::new(config.clone().expect("a certificate")).unwrap();
        Box::new(rustls::StreamOwned::new(connection, stream))
    };
    let own = stream.try_clone().unwrap();
    if protected == Protected::Implicit {
        drop(speak(&mut BufReader::new(secured(own)), &Talk { greets: true, starts: false, tls: true }, kept, answers));
        return;
    }
    let mut plain = BufReader::new(Box::new(own) as Box<dyn Wire>);
    let first = Talk { greets: true, starts: protected == Protected::Starttls, tls: false };
    if speak(&mut plain, &first, kept, answers).unwrap_or(false) {
        drop(speak(&mut BufReader::new(secured(stream)), &Talk { greets: false, starts: false, tls: true }, kept, answers));
    }
}

/// How one talk goes.
struct Talk {
    /// After STARTTLS the client begins anew without being greeted.
    greets: bool,
    /// Whether STARTTLS has to come first.
    starts: bool,
    tls: bool,
}

/// Speaks until the client goes; answers whether it wants TLS from here on.
fn speak(wire: &mut BufReader<Box<dyn Wire>>, talk: &Talk, kept: &Mutex<Vec<Taken>>, answers: &Mutex<VecDeque<String>>) -> std::io::Result<bool> {
    let mut mail = Taken { from: String::new(), to: Vec::new(), text: String::new(), tls: talk.tls, user: None };
    if talk.greets {
        say(wire, "220 mail.test ESMTP")?;
    }
    loop {
        let mut line = String::new();
        if wire.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let (verb, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        match verb.to_ascii_uppercase().as_str() {
            "EHLO" if talk.starts => say(wire, "250-mail.test\r\n250 STARTTLS")?,
            "EHLO" => say(wire, "250-mail.test\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN")?,
            "STARTTLS" if talk.starts => {
                say(wire, "220 go ahead")?;
                return Ok(true);
            }
            "AUTH" => {
                let given = rest.split_once(' ').and_then(|(_, given)| BASE64.decode(given.as_bytes()).ok()).unwrap_or_default();
                if given == format!("\0{USER}\0{PASSWORD}").as_bytes() {
                    mail.user = Some(USER.to_owned());
                    say(wire, "235 welcome")?;
                } else {
                    say(wire, "535 5.7.8 who are you")?;
                }
            }
            _ if talk.starts => say(wire, "530 5.7.0 STARTTLS first")?,
            "MAIL" => {
                mail.from = rest.to_owned();
                say(wire, "250 ok")?;
            }
            "RCPT" if rest.contains("nobody@") => say(wire, "550 5.1.1 there is no such person, whose-name-is-secret")?,
            "RCPT" => {
                mail.to.push(rest.to_owned());
                say(wire, "250 ok")?;
            }
            "DATA" => {
                say(wire, "354 go on")?;
                mail.text.clear();
                loop {
                    let mut line = String::new();
                    wire.read_line(&mut line)?;
                    if line == ".\r\n" {
                        break;
                    }
                    mail.text.push_str(line.strip_prefix('.').unwrap_or(&line));
                }
                let answer = answers.lock().unwrap().pop_front();
                match answer.as_deref() {
                    Some("hang") => std::thread::sleep(Duration::from_mins(1)),
                    Some("close") => return Ok(false),
                    Some(refusal) => say(wire, refusal)?,
                    None => {
                        kept.lock().unwrap().push(mail.clone());
                        say(wire, "250 2.0.0 taken")?;
                    }
                }
            }
            "QUIT" => {
                say(wire, "221 bye")?;
                return Ok(false);
            }
            _ => say(wire, "250 ok")?,
        }
    }
}

fn say(wire: &mut BufReader<Box<dyn Wire>>, text: &str) -> std::io::Result<()> {
    wire.get_mut().write_all(format!("{text}\r\n").as_bytes())?;
    wire.get_mut().flush()
}

/// An address at which nobody listens.
pub(crate) fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
