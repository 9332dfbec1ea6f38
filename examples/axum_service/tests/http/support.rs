//! Instances of the service, and how to speak to them.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use leader_tests::{Server, Worker, until_some};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

pub(crate) const TOKEN: &str = "0123456789abcdef";
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// One process.
pub(crate) struct Instance {
    pub(crate) process: Worker,
    pub(crate) node_id: String,
    url: String,
}

/// What was answered.
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

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Instance {
    /// One that has the management routes.
    pub(crate) async fn start(server: &Server, node_id: &str) -> Self {
        Self::with(server, node_id, &[&format!("MANAGEMENT_TOKEN={TOKEN}")]).await
    }

    pub(crate) async fn with(server: &Server, node_id: &str, variables: &[&str]) -> Self {
        let program = env!("CARGO_BIN_EXE_leader-axum-service");
        let url = server.url();
        // `env` becomes the program, with this environment.
        let unset = ["-u", "MANAGEMENT_TOKEN"];
        let args = [&unset, variables, &[program, "127.0.0.1:0", &url, node_id]];
        let mut process = Worker::spawn("env", &args.concat());
        let line = process
            .wait_for_line(&format!("{node_id} listens on "), LIMIT)
            .await;
        let address = line.rsplit(' ').next().unwrap_or_default();
        Self {
            url: format!("http://{address}"),
            node_id: node_id.to_owned(),
            process,
        }
    }

    pub(crate) async fn three(server: &Server) -> [Self; 3] {
        let start = async |node_id| Self::start(server, node_id).await;
        [start("a").await, start("b").await, start("c").await]
    }

    pub(crate) async fn request(&self, method: &str, path: &str, token: Option<&str>) -> Answer {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let request = request.body(()).unwrap();
        let answered = tokio::task::spawn_blocking(move || {
            let agent = ureq::Agent::config_builder()
                .http_status_as_error(false)
                .allow_non_standard_methods(true)
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
        self.request("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str) -> Answer {
        self.request("POST", path, None).await
    }

    /// The JSON of the management route.
    pub(crate) async fn state(&self) -> Value {
        let answer = self
            .request("GET", "/management/leader-election", Some(TOKEN))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        self.node_id == other.node_id
    }

    pub(crate) async fn leads(&self) -> bool {
        self.get("/leader-only").await.status == 200
    }

    /// Server-sent events, a line at a time; it ends with the stream.
    pub(crate) fn events(&self) -> UnboundedReceiver<String> {
        let url = format!("{}/events", self.url);
        let (sender, lines) = unbounded_channel();
        std::thread::spawn(move || {
            let Ok(response) = ureq::get(&url).call() else {
                return;
            };
            let reader = BufReader::new(response.into_body().into_reader());
            for line in reader.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        lines
    }
}

/// The one of them that leads, once there is one.
pub(crate) async fn leader<'a>(instances: &[&'a Instance]) -> &'a Instance {
    until_some("one of them leads", LIMIT, async || {
        for instance in instances {
            if instance.leads().await {
                return Some(*instance);
            }
        }
        None
    })
    .await
}

/// The holders of `name`, as this instance sees them.
pub(crate) fn holders(state: &Value, name: &str) -> Vec<Value> {
    let elections = state["elections"].as_array().unwrap();
    let election = elections.iter().find(|election| election["name"] == name);
    election.unwrap()["holders"].as_array().unwrap().clone()
}
