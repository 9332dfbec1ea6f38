//! A workbench of the test's own, and how to speak to it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::time::Duration;

use leader_tests::{until, until_some};
use leader_workbench::{Place, Workbench};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A workbench that listens on a free port of the loopback.
pub(crate) struct Bench {
    pub(crate) addr: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    served: JoinHandle<std::io::Result<()>>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) text: String,
    headers: ureq::http::HeaderMap,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        let json = serde_json::from_str(&self.text);
        json.unwrap_or_else(|error| panic!("{error} in {:?}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_else(|| panic!("no `{name}` in {:?}", self.headers))
    }
}

impl Bench {
    pub(crate) fn start(place: Place) -> Self {
        Self::named("invoice-close", place)
    }

    pub(crate) fn named(name: &str, place: Place) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // Inherited by what it accepts: who reads nothing is behind soon, and not after some megabytes.
        socket.set_send_buffer_size(32 << 10).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1024).unwrap();
        let addr = listener.local_addr().unwrap();
        let workbench = Workbench::new(name, place).unwrap();
        let (end, ended) = oneshot::channel();
        let ended = async { drop(ended.await) };
        Self {
            addr,
            end: Some(end),
            served: tokio::spawn(workbench.serve(listener, ended)),
        }
    }

    pub(crate) fn in_memory() -> Self {
        Self::start(Place::Memory(1))
    }

    /// Ends it as Ctrl-C does, and waits for it.
    pub(crate) async fn end(mut self) {
        drop(self.end.take());
        tokio::time::timeout(LIMIT, self.served)
            .await
            .expect("it ends")
            .unwrap()
            .unwrap();
    }

    /// A request as it is: method, path, headers, body.
    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Answer {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.addr));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.into()).unwrap();
        let answered = tokio::task::spawn_blocking(move || {
            let agent = ureq::Agent::config_builder()
                .http_status_as_error(false)
                .timeout_global(Some(LIMIT))
                .build();
            let mut response = ureq::Agent::new_with_config(agent).run(request)?;
            let text = response.body_mut().read_to_string()?;
            Ok::<_, ureq::Error>(Answer {
                status: response.status().as_u16(),
                headers: response.headers().clone(),
                text,
            })
        });
        let answered = answered.await.unwrap();
        answered.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "").await
    }

    /// What the page sends.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let kind = [("Content-Type", "application/json")];
        self.request("POST", path, &kind, body.to_string()).await
    }

    /// The same, by a client that is gone as soon as the state shows that it has begun.
    pub(crate) async fn give_up(&self, path: &str, body: Value, begun: impl Fn(&Value) -> bool) {
        let body = body.to_string();
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.addr,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        until(&format!("{path} has begun"), LIMIT, async || {
            begun(&self.state().await)
        })
        .await;
        let answered = timeout(Duration::from_millis(1), stream.readable()).await;
        assert!(answered.is_err(), "{path} was answered already");
        stream.set_zero_linger().unwrap();
    }

    /// The same, of which nothing is refused.
    pub(crate) async fn ask(&self, path: &str, body: Value) {
        let answer = self.post(path, &body).await;
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text);
    }

    pub(crate) async fn candidate(&self, id: &str, action: &str) {
        self.ask(
            &format!("/api/candidates/{id}"),
            json!({ "action": action }),
        )
        .await;
    }

    pub(crate) async fn store(&self, action: &str) {
        self.ask("/api/store", json!({ "action": action })).await;
    }

    pub(crate) async fn settings(&self, changes: Value) {
        self.ask("/api/settings", changes).await;
    }

    /// All that a page is shown.
    pub(crate) async fn shown(&self) -> Value {
        self.get("/api/state").await.json()
    }

    pub(crate) async fn state(&self) -> Value {
        self.shown().await["state"].take()
    }

    pub(crate) async fn phase(&self, id: &str) -> String {
        let state = self.state().await;
        let rows = state["candidates"].as_array().unwrap();
        let row = rows.iter().find(|row| row["id"] == id).unwrap();
        row["phase"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn until_phase(&self, id: &str, phase: &str) {
        let what = format!("{id} is {phase}");
        until(&what, LIMIT, async || self.phase(id).await == phase).await;
    }

    /// Waits for an event of a candidate, or of the store.
    pub(crate) async fn until_told(&self, id: Option<&str>, action: &str, result: &str) -> Value {
        until_some(&format!("{id:?} {action}: {result}"), LIMIT, async || {
            let shown = self.shown().await;
            let events = shown["events"].as_array().unwrap();
            let told = events.iter().find(|event| {
                event["candidate"].as_str() == id
                    && event["action"] == action
                    && event["result"] == result
            });
            told.cloned()
        })
        .await
    }

    /// Whether the last events have this one.
    pub(crate) async fn has_told(&self, id: &str, action: &str) -> bool {
        let shown = self.shown().await;
        let mut events = shown["events"].as_array().unwrap().iter();
        events.any(|event| event["candidate"] == id && event["action"] == action)
    }

    /// Waits until an action was told so often: who leads is seen before it is told.
    pub(crate) async fn until_count(&self, action: &str, expected: u64) {
        until(&format!("{expected} were {action}"), LIMIT, async || {
            self.count(action).await >= expected
        })
        .await;
        assert_eq!(self.count(action).await, expected);
    }

    /// Waits until the record names `id` as the holder of the first slot: a look that was late shows nobody.
    pub(crate) async fn until_held_by(&self, id: &str) {
        until(&format!("the record names {id}"), LIMIT, async || {
            self.state().await["record"]["holders"][0]["node_id"] == id
        })
        .await;
    }

    /// How often an action was told.
    pub(crate) async fn count(&self, action: &str) -> u64 {
        self.state().await["counts"][action].as_u64().unwrap_or(0)
    }

    /// An open page: its frames, each with its kind. It reads as fast as frames come; the last eight are kept.
    pub(crate) fn page(&self) -> Receiver<(String, Value)> {
        let url = format!("http://{}/api/events", self.addr);
        let (sender, frames) = channel(8);
        std::thread::spawn(move || {
            let Ok(response) = ureq::get(&url).call() else {
                return;
            };
            let mut kind = String::new();
            for line in BufReader::new(response.into_body().into_reader()).lines() {
                let Ok(line) = line else { return };
                if let Some(event) = line.strip_prefix("event: ") {
                    event.clone_into(&mut kind);
                } else if let Some(data) = line.strip_prefix("data: ") {
                    let frame = serde_json::from_str(data).unwrap_or_default();
                    if sender.blocking_send((kind.clone(), frame)).is_err() {
                        return;
                    }
                }
            }
        });
        frames
    }
}
