//! A server that says what it is told to say.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::web::{Client, FetchError, Limits, Page};

/// A server that runs until the test ends.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) asked: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Answers each request with what the function makes of its head.
    pub(super) async fn answering(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let answer = Arc::new(answer);
        Self::serving(move |mut stream| {
            let answer = Arc::clone(&answer);
            async move {
                let head = head(&mut stream).await;
                drop(stream.write_all(&answer(&head)).await);
            }
        })
        .await
    }

    /// Gives each connection to the function.
    pub(super) async fn serving<F: Future<Output = ()> + Send + 'static>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream));
            }
        });
        Self { address, asked, task: task.abort_handle() }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn times_asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { ports: vec![80, 443, self.address.port()], ..Limits::default() }
    }

    /// Reads a page of this server with a client that may reach it.
    pub(super) async fn read(&self, path: &str) -> Result<Page, FetchError> {
        self.read_within(path, &self.limits()).await
    }

    pub(super) async fn read_within(&self, path: &str, limits: &Limits) -> Result<Page, FetchError> {
        Client::reaching(vec![self.address]).fetch(&self.url(path), limits).await
    }
}

/// The head of a request.
pub(super) async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// An answer with these lines in its head.
pub(super) fn answer(status: &str, lines: &[&str], body: &[u8]) -> Vec<u8> {
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\r\n")).collect();
    let mut bytes = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{}\r\n", body.len(), lines.concat()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(super) fn html(body: &str) -> Vec<u8> {
    answer("200 OK", &["content-type: text/html; charset=utf-8"], body.as_bytes())
}

pub(super) fn redirect(to: &str) -> Vec<u8> {
    answer("302 Found", &[&format!("location: {to}")], b"")
}
