//! Answers that are errors: a status, and why, as JSON.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use leader_core::LeaderError;
use serde_json::json;

/// `{"error": "...", "message": "..."}`: a word for programs, a sentence for people.
pub(crate) fn refusal(status: StatusCode, error: &str, message: &str) -> Response {
    let body = json!({ "error": error, "message": message });
    (status, Json(body)).into_response()
}

/// The store, or the election, has failed.
pub(crate) fn failure(error: &LeaderError) -> Response {
    let word = match error {
        LeaderError::ShutDown => "shutting_down",
        LeaderError::BodyStillRuns { .. } => "body_still_runs",
        _ => "store_failed",
    };
    refusal(StatusCode::SERVICE_UNAVAILABLE, word, &error.to_string())
}
