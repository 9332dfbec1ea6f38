//! The service's state, and its routes.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRef, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use leader_axum::{LeaderOnly, Management, ManagementToken, liveness};
use leader_core::{Campaign, Elector, LeaderError, LockName};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::jobs::Answer;
use crate::{events, jobs, scheduler};

/// What handlers share. Those that only stand for election take `State<Arc<dyn Elector>>`.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) elector: Arc<dyn Elector>,
    pub(crate) scheduler: Arc<Campaign>,
    pub(crate) metrics: PrometheusHandle,
    /// Fires when the service comes to its end.
    pub(crate) closing: CancellationToken,
}

impl FromRef<App> for Arc<dyn Elector> {
    fn from_ref(app: &App) -> Self {
        app.elector.clone()
    }
}

pub(crate) fn router(app: App, management: Option<ManagementToken>) -> Result<Router, LeaderError> {
    let scheduler = LockName::new(scheduler::NAME)?;
    let campaign = app.scheduler.clone();
    let leads = LeaderOnly::new(app.elector.clone(), scheduler.clone(), move || {
        campaign.is_leader()
    });
    let mut router = Router::new()
        .route("/leader-only", get(leader_only))
        .route_layer(leads)
        .route("/reports/{tenant}", post(jobs::report))
        .route("/partner", post(jobs::partner))
        .route("/events", get(events::stream))
        .route("/metrics", get(metrics))
        .route(
            "/health/live",
            liveness(app.elector.clone(), Duration::from_secs(30)),
        )
        .route("/health/ready", get(ready));
    if let Some(token) = management {
        let management = Management::new(app.elector.clone(), token)
            .campaign(scheduler, app.scheduler.clone())
            .name(LockName::new(jobs::PARTNER)?)
            .router();
        router = router.nest("/management", management);
    }
    // Whoever speaks JSON is answered in JSON, also where there is nothing. Routes inside `/management` answer for
    // themselves: without the token nobody learns what there is.
    let router = router
        .method_not_allowed_fallback(async || {
            let message = "this route takes another method; see `Allow`";
            Answer::refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                message,
            )
        })
        .fallback(async || Answer::refusal(StatusCode::NOT_FOUND, "not_found", "no such route"));
    Ok(router.with_state(app))
}

/// What only the leader may answer.
async fn leader_only(State(app): State<App>) -> Json<Value> {
    let lease = app.scheduler.lease();
    Json(json!({
        "node_id": app.elector.node_id(),
        "fence": lease.map(|lease| lease.fence()),
    }))
}

/// A follower is ready to serve. Who comes to its end is not.
async fn ready(State(app): State<App>) -> Answer {
    let ready = !app.closing.is_cancelled();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    Answer(status, json!({ "ready": ready }))
}

async fn metrics(State(app): State<App>) -> String {
    app.metrics.run_upkeep();
    app.metrics.render()
}
