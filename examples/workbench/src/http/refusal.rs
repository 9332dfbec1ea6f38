//! [`Refusal`]: what was wrong with a request, as JSON.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::bench::Undone;
use crate::settings::Refused;

/// `{"error": "..", "code": "..", "field": "..", "range": [..]}`, all but the first where there is something to name.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    error: String,
    code: Option<&'static str>,
    field: Option<String>,
    range: Option<Value>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status,
            error: error.into(),
            code: None,
            field: None,
            range: None,
        }
    }

    /// A request that is well formed and asks for what cannot be done now.
    pub(super) fn conflict(undone: Undone) -> Self {
        Self::undone(StatusCode::CONFLICT, undone)
    }

    /// What has a code.
    pub(super) fn undone(status: StatusCode, undone: Undone) -> Self {
        Self {
            code: Some(undone.code),
            ..Self::new(status, undone.error)
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            error: refused.error,
            code: None,
            field: Some(refused.field),
            range: refused.range,
        }
    }
}

impl From<PathRejection> for Refusal {
    fn from(rejection: PathRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut body = json!({ "error": self.error });
        if let Some(code) = self.code {
            body["code"] = json!(code);
        }
        if let Some(field) = self.field {
            body["field"] = json!(field);
        }
        if let Some(range) = self.range {
            body["range"] = range;
        }
        (self.status, Json(body)).into_response()
    }
}
