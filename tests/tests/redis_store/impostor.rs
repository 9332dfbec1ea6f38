//! Something that listens like a Redis server and answers scripts with whatever a test makes it say.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

#[derive(Clone)]
struct Answers {
    scripts: String,
    ping: String,
    hello: String,
}

/// Lives as long as this value.
pub(crate) struct Impostor {
    pub(crate) addr: SocketAddr,
    answers: Arc<Mutex<Answers>>,
    _tasks: JoinSet<()>,
}

impl Impostor {
    /// Answers PING and what a client asks when it connects like any server, and every script with `answer`.
    pub(crate) async fn start(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("there is a port");
        let addr = listener.local_addr().expect("the listener has an address");
        let answers = Arc::new(Mutex::new(Answers {
            scripts: answer.to_owned(),
            ping: "+PONG\r\n".to_owned(),
            hello: "%1\r\n$5\r\nproto\r\n:3\r\n".to_owned(),
        }));
        let mut tasks = JoinSet::new();
        let shared = answers.clone();
        tasks.spawn(async move {
            let mut clients = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                clients.spawn(serve(client, shared.clone()));
            }
        });
        Self {
            addr,
            answers,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    /// What scripts are answered from now on, as it goes over the wire.
    pub(crate) fn says(&self, answer: &str) {
        answer.clone_into(&mut self.answers.lock().expect("nobody panicked").scripts);
    }

    /// What who connects is answered first from now on, in either version of the protocol.
    pub(crate) fn greets(&self, answer: &str) {
        let mut answers = self.answers.lock().expect("nobody panicked");
        answer.clone_into(&mut answers.ping);
        answer.clone_into(&mut answers.hello);
    }
}

async fn serve(mut client: TcpStream, answers: Arc<Mutex<Answers>>) {
    let mut unread = Vec::new();
    let mut by_resp3 = false;
    while matches!(client.read_buf(&mut unread).await, Ok(read) if read > 0) {
        while let Some((command, length)) = request(&unread) {
            unread.drain(..length);
            let answers = answers.lock().expect("nobody panicked").clone();
            let answer = match command.as_str() {
                "PING" => answers.ping,
                "HELLO" => {
                    by_resp3 = true;
                    answers.hello
                }
                // Nothing, as RESP3 has it.
                "EVALSHA" | "EVAL" if by_resp3 && answers.scripts.ends_with("-1\r\n") => {
                    "_\r\n".to_owned()
                }
                "CLIENT" => ":7\r\n".to_owned(),
                "INFO" => "$22\r\nredis_version:7.0.15\r\n\r\n".to_owned(),
                "EVALSHA" | "EVAL" => answers.scripts,
                _ => "+OK\r\n".to_owned(),
            };
            if client.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// The first word of the request at the start of `bytes`, and the request's length.
fn request(bytes: &[u8]) -> Option<(String, usize)> {
    let line = |at: usize| {
        let end = bytes
            .get(at..)?
            .windows(2)
            .position(|pair| pair == b"\r\n")?;
        let line = std::str::from_utf8(&bytes[at..at + end]).ok()?;
        Some((line.get(1..)?.parse::<usize>().ok()?, at + end + 2))
    };
    if bytes.first()? != &b'*' {
        // As people type it, and as fred says HELLO.
        let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
        let text = String::from_utf8_lossy(&bytes[..end]).to_uppercase();
        return Some((text.split(' ').next()?.to_owned(), end + 2));
    }
    let (words, mut at) = line(0)?;
    let mut first = String::new();
    for word in 0..words {
        let (length, start) = line(at)?;
        let text = bytes.get(start..start + length)?;
        bytes.get(start + length..start + length + 2)?;
        if word == 0 {
            first = String::from_utf8_lossy(text).to_uppercase();
        }
        at = start + length + 2;
    }
    Some((first, at))
}
