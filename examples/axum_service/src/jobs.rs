//! Handlers that run once among all instances, or three times at most.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use leader_core::{Elector, FromLeaderError, FromSkip, LeaderError, Skipped, leader_election};
use serde_json::{Value, json};

/// At most three instances call the partner at a time.
pub(crate) const PARTNER: &str = "partner";

/// The response of a handler that may be skipped.
#[derive(Debug)]
pub(crate) struct Answer(pub(crate) StatusCode, pub(crate) Value);

impl Answer {
    /// As `leader_axum` says no: a word for programs, a sentence for people.
    pub(crate) fn refusal(status: StatusCode, error: &str, message: &str) -> Self {
        Self(status, json!({ "error": error, "message": message }))
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        (self.0, Json(self.1)).into_response()
    }
}

impl FromSkip for Answer {
    fn from_skip(skipped: Skipped) -> Self {
        let body = json!({
            "error": "already_running",
            "message": "another request of this kind is under way",
            "on": skipped.holder(),
        });
        Self(StatusCode::CONFLICT, body)
    }
}

impl FromLeaderError for Answer {
    fn from_leader_error(error: LeaderError) -> Self {
        let status = match error {
            LeaderError::InvalidName { .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::refusal(status, "no_election", &error.to_string())
    }
}

pub(crate) async fn report(
    State(elector): State<Arc<dyn Elector>>,
    tenant: Result<Path<String>, PathRejection>,
) -> Answer {
    match tenant {
        Ok(Path(tenant)) => write_report(&elector, &tenant).await,
        // A path that is no text.
        Err(error) => Answer::refusal(error.status(), "bad_path", &error.body_text()),
    }
}

/// One report per tenant at a time, whichever instance was asked. Metrics and spans have `report:{tenant}` as their
/// label, however many tenants there are.
#[leader_election(name = "report:{tenant}", wait = "0s", lease = "10s", auto_extend)]
async fn write_report(elector: &Arc<dyn Elector>, tenant: &str) -> Answer {
    tokio::time::sleep(Duration::from_millis(300)).await;
    Answer(StatusCode::OK, json!({ "report": tenant }))
}

pub(crate) async fn partner(State(elector): State<Arc<dyn Elector>>) -> Answer {
    call_partner(&elector).await
}

#[leader_election(name = PARTNER, slots = 3, wait = "2s", lease = "10s", auto_extend)]
async fn call_partner(elector: &Arc<dyn Elector>) -> Answer {
    tokio::time::sleep(Duration::from_millis(300)).await;
    let slot = leader_core::current_lease().map(|lease| lease.slot());
    Answer(StatusCode::OK, json!({ "slot": slot }))
}
