//! A service that leads, follows, is watched, and is deployed: three or more of it on one Redis.
//!
//! ```sh
//! export MANAGEMENT_TOKEN=0123456789abcdef       # without it there are no management routes
//! cargo run -p leader-axum-service -- 127.0.0.1:8081 redis://127.0.0.1:6379   # and 8082, 8083
//! curl -i localhost:8082/leader-only
//! curl -H "Authorization: Bearer $MANAGEMENT_TOKEN" localhost:8081/management/leader-election
//! ```
//!
//! | file | what it shows |
//! |---|---|
//! | `app.rs` | the state with its `Arc<dyn Elector>`, and all routes |
//! | `jobs.rs` | annotated handlers, and a response type that knows "skipped" and "failed" |
//! | `scheduler.rs` | a campaign in the background, which ends in good order |
//! | `events.rs` | server-sent events that end when the service does |
//! | `main.rs` | start, SIGTERM or Ctrl-C, end |
//!
//! `state.schema.json` is the JSON schema of `GET /management/leader-election`.

mod app;
mod events;
mod jobs;
mod scheduler;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use leader_axum::ManagementToken;
use leader_core::{Elector, ElectorExt};
use leader_redis::RedisElector;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// How long requests that are under way at the end may take.
const LAST_REQUESTS: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let address = args.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let redis = args
        .next()
        .unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    // Off, unless there is a token; a weak one is a mistake to be told at once.
    let management = match std::env::var("MANAGEMENT_TOKEN") {
        Ok(token) => Some(ManagementToken::new(token)?),
        Err(_) => None,
    };
    // Before anything is elected: gauges begin with the recorder.
    let metrics = PrometheusBuilder::new()
        .set_buckets(&[0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0, 3600.0])?
        .install_recorder()?;

    let mut elector = RedisElector::builder().url(redis).own_runtime(true);
    if let Some(node_id) = args.next() {
        elector = elector.node_id(node_id);
    }
    let elector: Arc<dyn Elector> = Arc::new(elector.connect().await?);
    let listener = TcpListener::bind(address).await?;
    println!(
        "{} listens on {}",
        elector.node_id(),
        listener.local_addr()?
    );
    let scheduler = Arc::new(scheduler::begin(&elector)?);
    let app = App {
        elector: elector.clone(),
        scheduler: scheduler.clone(),
        metrics,
        closing: CancellationToken::new(),
    };

    let mut asked_to_end = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let closing = app.closing.clone();
    let server = axum::serve(listener, app::router(app, management)?)
        .with_graceful_shutdown(closing.clone().cancelled_owned());
    let mut server = tokio::spawn(server.into_future());

    tokio::select! {
        ended = &mut server => return Ok(ended??),
        _ = asked_to_end.recv() => {}
        _ = interrupted.recv() => {}
    }
    // Another leads before this process has closed its last connection: the body first, then the slot.
    if let Err(error) = scheduler.stop().await {
        println!("handing over: {error}");
    }
    println!("handed over");
    // No new connections; streams of events end, and requests under way are given time.
    closing.cancel();
    if timeout(LAST_REQUESTS, &mut server).await.is_err() {
        println!("some requests had not ended");
    }
    elector.shutdown().await;
    println!("ended");
    Ok(())
}
