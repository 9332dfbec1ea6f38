//! Whether the process is well, as a route.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use leader_core::{Elector, ElectorExt};

/// A liveness probe: 200, or 503 when something of this process has worked for longer than `tolerance` under a lease
/// that cannot be proved valid any more. Followers are well, and so is a process whose store is down. The body is the
/// JSON of [`Health`](leader_core::Health).
///
/// Give bodies that are late the time to end: a few times the longest lease.
///
/// ```
/// use axum::Router;
/// use leader_core::{Elector, LocalElector};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let elector: Arc<dyn Elector> = Arc::new(LocalElector::new());
/// let probes = leader_axum::liveness(elector, Duration::from_secs(30));
/// let app: Router = Router::new().route("/health/live", probes);
/// ```
pub fn liveness<S>(elector: Arc<dyn Elector>, tolerance: Duration) -> MethodRouter<S>
where
    S: Clone + Send + Sync + 'static,
{
    get(async move || {
        let health = elector.health().tolerating(tolerance);
        let status = if health.is_healthy() {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        (status, Json(health)).into_response()
    })
}
