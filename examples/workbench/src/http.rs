//! The workbench over HTTP: one page from the binary, its events, and its controls as JSON.

mod control;
mod guard;
mod page;
mod patient;
mod refusal;
mod stream;
mod ticks;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use leader_core::{CancellationToken, LeaderError, LockName};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use self::patient::Patient;
use self::refusal::Refusal;
use crate::bench::Bench;
use crate::scenario::Stage;
use crate::site::Place;
use crate::view::{self, Views};

/// How many pages may be open.
const MOST_PAGES: usize = 24;
/// How long requests that are under way at the end may take.
const LAST_REQUESTS: Duration = Duration::from_secs(2);
/// More than any request needs.
const LONGEST_BODY: usize = 4096;

/// The workbench: a bench, what plays on it, and the pages that look on.
#[derive(Clone, Debug)]
pub struct Workbench {
    bench: Arc<Bench>,
    stage: Arc<Stage>,
    views: Arc<Views>,
    pages: Arc<Semaphore>,
    /// Plans are played one at a time.
    ticks: Arc<Semaphore>,
    closing: CancellationToken,
}

impl Workbench {
    /// A bench on which candidates compete for `name`, whose leases are kept at `place`.
    ///
    /// # Errors
    ///
    /// [`LeaderError::InvalidName`].
    pub fn new(name: &str, place: Place) -> Result<Self, LeaderError> {
        Ok(Self {
            bench: Arc::new(Bench::new(LockName::new(name)?, place)),
            stage: Arc::default(),
            views: Arc::new(Views::new()),
            pages: Arc::new(Semaphore::new(MOST_PAGES)),
            ticks: Arc::new(Semaphore::new(1)),
            closing: CancellationToken::new(),
        })
    }

    /// Serves on `listener` until `end`; then the pages are let go, and the candidates hand over.
    ///
    /// # Errors
    ///
    /// What the listener cannot do.
    pub async fn serve(
        self,
        listener: TcpListener,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let looking = tokio::spawn({
            let Self {
                bench,
                stage,
                views,
                ..
            } = self.clone();
            async move { views.look(&bench, &stage).await }
        });
        let closing = self.closing.clone();
        let until = async move {
            end.await;
            // Streams of events end, which have no end of their own.
            closing.cancel();
        };
        let serving = axum::serve(Patient(listener), self.router()).with_graceful_shutdown(until);
        let closing = self.closing.clone();
        let served = tokio::select! {
            served = serving.into_future() => served,
            // A page that reads nothing does not hold up the end.
            () = async { closing.cancelled().await; sleep(LAST_REQUESTS).await } => Ok(()),
        };
        looking.abort();
        self.stage.clear().await;
        self.bench.end().await;
        served
    }

    fn router(&self) -> Router {
        Router::new()
            .route("/", get(page::index))
            .route("/{file}", get(page::file))
            .route("/api/state", get(state))
            .route("/api/events", get(stream::events))
            .route("/api/settings", post(control::settings))
            .route("/api/candidates/{id}", post(control::candidate))
            .route("/api/store", post(control::store))
            .route("/api/reset", post(control::reset))
            .route("/api/scenario", post(control::scenario))
            .route("/api/ticks", get(ticks::plans).post(ticks::played))
            .method_not_allowed_fallback(async || {
                Refusal::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "this path takes another method; see `Allow`",
                )
            })
            .fallback(async || Refusal::new(StatusCode::NOT_FOUND, "there is nothing at this path"))
            .layer(DefaultBodyLimit::max(LONGEST_BODY))
            .layer(middleware::from_fn(guard::check))
            .with_state(self.clone())
    }
}

/// All that a page is shown, once.
async fn state(State(app): State<Workbench>) -> Json<Value> {
    let record = app.views.record(&app.bench).await;
    let events = app.bench.world.journal.since(0, stream::MOST_EVENTS).events;
    Json(json!({
        "about": view::about(&app.bench),
        "state": view::state(&app.bench, &app.stage, &record),
        "events": events,
    }))
}
