//! Something that listens like a Redis server and answers scripts with whatever a test makes it say.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

#[derive(Clone)]
struct Answers {
    to_scripts: String,
    to_ping: String,
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
            to_scripts: answer.to_owned(),
            to_ping: "+PONG\r\n".to_owned(),
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
        answer.clone_into(&mut self.answers.lock().expect("nobody panicked").to_scripts);
    }

    /// What PING is answered from now on.
    pub(crate) fn greets(&self, answer: &str) {
        answer.clone_into(&mut self.answers.lock().expect("nobody panicked").to_ping);
    }
}

async fn serve(mut client: TcpStream, answers: Arc<Mutex<Answers>>) {
    let mut unread = Vec::new();
    while matches!(client.read_buf(&mut unread).await, Ok(read) if read > 0) {
        while let Some((command, length)) = request(&unread) {
            unread.drain(..length);
            let answers = answers.lock().expect("nobody panicked").clone();
            let answer = match command.as_str() {
                "PING" => answers.to_ping,
                "CLIENT" => ":7\r\n".to_owned(),
                "INFO" => "$22\r\nredis_version:7.0.15\r\n\r\n".to_owned(),
                "EVALSHA" | "EVAL" => answers.to_scripts,
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
