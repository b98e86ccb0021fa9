//! A client of one kept-open HTTP/1.1 connection. It does as little as possible, because it shares its cores with the
//! server that it measures.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An open connection.
pub struct Connection {
    stream: TcpStream,
    host: String,
    token: Option<String>,
    input: Vec<u8>,
}

impl Connection {
    /// Connects to `http://HOST:PORT`.
    pub async fn open(url: &str) -> io::Result<Self> {
        let host = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let stream = TcpStream::connect(&host).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host, token: None, input: Vec::with_capacity(16 * 1024) })
    }

    /// Calls with a token from now on; the agent's name of a call is not sent then.
    pub fn with_token(self, token: String) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Calls an operation as an agent and answers the status and the size of the body.
    pub async fn call(&mut self, operation: &str, agent: &str, body: &str) -> io::Result<(u16, usize)> {
        let caller = self.token.as_ref().map_or_else(|| format!("X-Deskmate-Agent: {agent}"), |token| format!("Authorization: Bearer {token}"));
        let request = format!(
            "POST /api/{operation} HTTP/1.1\r\nHost: {}\r\n{caller}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.answer().await
    }

    /// Asks for a page.
    pub async fn get(&mut self, path: &str) -> io::Result<(u16, usize)> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        self.stream.write_all(request.as_bytes()).await?;
        self.answer().await
    }

    /// Posts JSON with headers of the caller's, each with its line's end.
    pub async fn post(&mut self, path: &str, headers: &str, body: &str) -> io::Result<(u16, usize)> {
        let request =
            format!("POST {path} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", self.host, body.len());
        self.stream.write_all(request.as_bytes()).await?;
        self.answer().await
    }

    /// The body of the last answer as JSON.
    pub fn json(&self) -> Value {
        let start = header_end(&self.input).unwrap_or(0);
        serde_json::from_slice(&self.input[start..]).unwrap_or(Value::Null)
    }

    /// The last answer as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.input).into_owned()
    }

    /// A header of the last answer, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<String> {
        let head = String::from_utf8_lossy(&self.input[..header_end(&self.input)?]).into_owned();
        head.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    }

    async fn answer(&mut self) -> io::Result<(u16, usize)> {
        self.input.clear();
        let start = loop {
            if let Some(end) = header_end(&self.input) {
                break end;
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let head = String::from_utf8_lossy(&self.input[..start]).to_ascii_lowercase();
        let status = head.get(9..12).and_then(|status| status.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        if head.lines().any(|line| line.starts_with("transfer-encoding:") && line.contains("chunked")) {
            // The last chunk is the empty one; nothing follows it, because one request is under way at a time.
            while !self.input.ends_with(b"\r\n0\r\n\r\n") {
                if self.stream.read_buf(&mut self.input).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            return Ok((status, self.input.len() - start));
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok()).unwrap_or(0);
        while self.input.len() < start + length {
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok((status, length))
    }
}

fn header_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}
