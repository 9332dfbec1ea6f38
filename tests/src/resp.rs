//! The Redis protocol by hand: the harness looks at servers without the client library that it tests.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A server's answer. Types of RESP3 appear as their nearest relative of RESP2: a map is a flat array, a set and a push
/// message are arrays, a boolean is 0 or 1, doubles and big numbers are text.
#[derive(Clone, PartialEq, Eq)]
pub enum Reply {
    /// A status such as `OK`.
    Simple(String),
    /// An error; its first word is the code.
    Error(String),
    /// A number.
    Integer(i64),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// No value.
    Nil,
    /// A list, possibly nested.
    Array(Vec<Reply>),
}

impl Reply {
    /// The answer as text.
    ///
    /// # Panics
    ///
    /// When it is nil, an array, or an error.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Reply::Simple(text) => text.clone(),
            Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Reply::Integer(number) => number.to_string(),
            other => panic!("the server was expected to answer with text, it answered {other:?}"),
        }
    }

    /// The answer as a number, also where it came as text.
    ///
    /// # Panics
    ///
    /// When it is none.
    #[must_use]
    pub fn integer(&self) -> i64 {
        match self {
            Reply::Integer(number) => *number,
            other => {
                let text = other.text();
                text.parse().unwrap_or_else(|_| {
                    panic!("the server was expected to answer with a number, not {text:?}")
                })
            }
        }
    }

    /// The elements of a list.
    ///
    /// # Panics
    ///
    /// When the answer is something else.
    #[must_use]
    pub fn array(&self) -> &[Reply] {
        match self {
            Reply::Array(elements) => elements,
            other => {
                panic!("the server was expected to answer with an array, it answered {other:?}")
            }
        }
    }

    /// The error's text, `None` when the answer is no error.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Reply::Error(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Simple(text) => f.write_str(text),
            Reply::Error(text) => write!(f, "(error) {text}"),
            Reply::Integer(number) => write!(f, "{number}"),
            Reply::Bulk(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            Reply::Nil => f.write_str("(nil)"),
            Reply::Array(elements) => f.debug_list().entries(elements).finish(),
        }
    }
}

/// One connection to a server.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Connection {
    /// Connects, without any greeting.
    pub async fn open(addr: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }

    pub(crate) fn over(stream: TcpStream) -> Self {
        Self {
            stream,
            unread: Vec::new(),
        }
    }

    /// Sends one command and reads one answer. The server's errors are `Ok(Reply::Error(_))`.
    pub async fn call(&mut self, args: &[&str]) -> io::Result<Reply> {
        self.send(args).await?;
        self.read().await
    }

    /// Sends one command and does not wait.
    pub async fn send(&mut self, args: &[&str]) -> io::Result<()> {
        self.stream.write_all(&encode(args)).await
    }

    /// Sends several commands at once and does not wait.
    pub async fn send_all(&mut self, commands: &[&[&str]]) -> io::Result<()> {
        let bytes: Vec<u8> = commands.iter().flat_map(|args| encode(args)).collect();
        self.stream.write_all(&bytes).await
    }

    /// Reads the next answer or, on a subscribed connection, the next message.
    pub async fn read(&mut self) -> io::Result<Reply> {
        loop {
            match parse(&self.unread) {
                Ok((reply, length)) => {
                    self.unread.drain(..length);
                    return Ok(reply);
                }
                Err(Stop::Incomplete) if self.stream.read_buf(&mut self.unread).await? == 0 => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the server closed the connection",
                    ));
                }
                Err(Stop::Incomplete) => {}
                Err(Stop::Malformed) => {
                    let text = String::from_utf8_lossy(&self.unread).into_owned();
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        format!("no Redis reply: {text:?}"),
                    ));
                }
            }
        }
    }
}

/// A command as it goes over the wire.
#[must_use]
pub fn encode(args: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n{arg}\r\n", arg.len()).as_bytes());
    }
    bytes
}

/// Why there is no reply yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// More bytes are needed.
    Incomplete,
    /// More bytes do not help.
    Malformed,
}

/// The reply at the start of `bytes`, and its length. Requests have the form of replies, so they are read by this too.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Reply, usize), Stop> {
    let mut parser = Parser { bytes, at: 0 };
    let reply = parser.reply()?;
    Ok((reply, parser.at))
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn reply(&mut self) -> Result<Reply, Stop> {
        let line = self.line()?;
        let (kind, rest) = line.split_first().ok_or(Stop::Malformed)?;
        Ok(match kind {
            b'+' => Reply::Simple(text(rest)),
            b'-' => Reply::Error(text(rest)),
            b':' => Reply::Integer(number(rest)?),
            b',' | b'(' => Reply::Bulk(rest.to_vec()),
            b'_' => Reply::Nil,
            b'#' => Reply::Integer(i64::from(rest == b"t")),
            b'$' | b'=' => self.string(rest)?.map_or(Reply::Nil, Reply::Bulk),
            b'!' => Reply::Error(text(&self.string(rest)?.unwrap_or_default())),
            b'*' | b'~' | b'>' => self.elements(rest, 1)?,
            b'%' => self.elements(rest, 2)?,
            b'|' => {
                self.elements(rest, 2)?;
                self.reply()?
            }
            _ => return Err(Stop::Malformed),
        })
    }

    fn line(&mut self) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.at..];
        let end = rest
            .windows(2)
            .position(|pair| pair == b"\r\n")
            .ok_or(Stop::Incomplete)?;
        self.at += end + 2;
        Ok(&rest[..end])
    }

    fn string(&mut self, length: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
        let Ok(length) = usize::try_from(number(length)?) else {
            return Ok(None);
        };
        let end = length.checked_add(self.at + 2).ok_or(Stop::Malformed)?;
        let whole = self.bytes.get(self.at..end).ok_or(Stop::Incomplete)?;
        self.at = end;
        Ok(Some(whole[..length].to_vec()))
    }

    fn elements(&mut self, count: &[u8], each: usize) -> Result<Reply, Stop> {
        let Ok(count) = usize::try_from(number(count)?) else {
            return Ok(Reply::Nil);
        };
        (0..count * each)
            .map(|_| self.reply())
            .collect::<Result<_, _>>()
            .map(Reply::Array)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(bytes: &[u8]) -> Result<i64, Stop> {
    std::str::from_utf8(bytes)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(Stop::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn every_type_is_read() {
        let cases = [
            ("+OK\r\n", Reply::Simple("OK".into())),
            ("-NOSCRIPT no\r\n", Reply::Error("NOSCRIPT no".into())),
            (":-3\r\n", Reply::Integer(-3)),
            ("$4\r\na\r\nb\r\n", bulk("a\r\nb")),
            ("$-1\r\n", Reply::Nil),
            ("*-1\r\n", Reply::Nil),
            (
                "*2\r\n*1\r\n:1\r\n$0\r\n\r\n",
                Reply::Array(vec![Reply::Array(vec![Reply::Integer(1)]), bulk("")]),
            ),
            (
                "%1\r\n+k\r\n#t\r\n",
                Reply::Array(vec![Reply::Simple("k".into()), Reply::Integer(1)]),
            ),
            ("|1\r\n+ttl\r\n:1\r\n_\r\n", Reply::Nil),
        ];
        for (wire, reply) in cases {
            assert_eq!(parse(wire.as_bytes()), Ok((reply, wire.len())), "{wire:?}");
            for cut in 0..wire.len() {
                assert_eq!(
                    parse(&wire.as_bytes()[..cut]),
                    Err(Stop::Incomplete),
                    "{wire:?} cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n"), Err(Stop::Malformed));
        assert_eq!(parse(b"$many\r\n"), Err(Stop::Malformed));
    }
}
