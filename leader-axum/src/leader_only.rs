//! [`LeaderOnly`]: routes that only the leader serves.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use leader_core::{Elector, ElectorExt, Holder, LeaderState, LockName};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

/// The leader's node id, in the answer of a follower.
const LEADER_NODE_ID: HeaderName = HeaderName::from_static("leader-node-id");
/// Requests that are refused within this time of each other rest on one look at the store: refusing costs it ten reads a
/// second at most.
const SHARED: Duration = Duration::from_millis(100);

/// A layer whose routes are served only while this process leads, provably and now.
///
/// Otherwise the answer is 503 with
/// - `Retry-After`: the seconds until the leader's lease ends if nobody extends it, at least 1;
/// - `Leader-Node-Id`: who leads, when anybody does;
/// - a JSON body: `{"error": "not_leader", "message", "name", "leader": {"node_id", "slot", "fence", "remaining_ms",
///   "retained"} or null}`.
///
/// Whether this process leads is asked when the request comes. A handler that takes long, or whose answer is a stream,
/// must go on looking: [`Campaign::lease`](leader_core::Campaign::lease) has a cancellation token.
///
/// ```
/// use axum::{Router, routing::post};
/// use leader_axum::LeaderOnly;
/// use leader_core::{Elector, ElectorExt, LeaseOptions, LocalElector, LockName};
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), leader_core::LeaderError> {
/// let elector: Arc<dyn Elector> = Arc::new(LocalElector::new());
/// let options = LeaseOptions::default();
/// let campaign = elector.campaign("scheduler", &options, |lease| async move { lease.lost().await });
/// let leads = move || campaign.is_leader();
/// let only = LeaderOnly::new(elector, LockName::new("scheduler")?, leads);
/// let app: Router = Router::new()
///     .route("/jobs", post(async || "accepted"))
///     .route_layer(only);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct LeaderOnly {
    gate: Arc<Gate>,
}

struct Gate {
    elector: Arc<dyn Elector>,
    name: LockName,
    leads: Box<dyn Fn() -> bool + Send + Sync>,
    seen: Mutex<Option<(Instant, Option<LeaderState>)>>,
}

impl LeaderOnly {
    /// Serves while `leads` says so: [`Campaign::is_leader`](leader_core::Campaign::is_leader), or
    /// [`LeaseHandle::is_valid`](leader_core::LeaseHandle::is_valid). Else `elector` is asked who leads `name`.
    pub fn new(
        elector: Arc<dyn Elector>,
        name: LockName,
        leads: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        let gate = Gate {
            elector,
            name,
            leads: Box::new(leads),
            seen: Mutex::new(None),
        };
        Self {
            gate: Arc::new(gate),
        }
    }
}

impl fmt::Debug for LeaderOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderOnly")
            .field("name", &self.gate.name)
            .finish_non_exhaustive()
    }
}

impl Gate {
    async fn refuse(&self) -> Response {
        let state = self.state().await;
        let holders = state.iter().flat_map(LeaderState::holders);
        // With several slots, the one that is free first.
        let first = holders.min_by_key(|holder| holder.remaining());
        let wait = first.map_or(Duration::ZERO, Holder::remaining);
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let (leader, message) = match (first, &state) {
            (Some(holder), _) => (json!(holder), format!("{} leads", holder.node_id())),
            (None, Some(_)) => (Value::Null, "nobody leads at the moment".to_owned()),
            (None, None) => (Value::Null, "the store does not say who leads".to_owned()),
        };
        let body = json!({
            "error": "not_leader",
            "message": message,
            "name": self.name,
            "leader": leader,
        });
        let mut answer = (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
        let headers = answer.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        if let Some(holder) = first
            && let Ok(node_id) = HeaderValue::from_str(holder.node_id().as_str())
        {
            headers.insert(LEADER_NODE_ID, node_id);
        }
        answer
    }

    /// Who leads, as of a moment ago; `None` when the store does not say.
    async fn state(&self) -> Option<LeaderState> {
        let mut seen = self.seen.lock().await;
        if let Some((at, state)) = &*seen
            && at.elapsed() < SHARED
        {
            return state.clone();
        }
        let state = self.elector.state(&self.name).await.ok();
        *seen = Some((Instant::now(), state.clone()));
        state
    }
}

impl<S> Layer<S> for LeaderOnly {
    type Service = LeaderOnlyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        LeaderOnlyService {
            inner,
            gate: self.gate.clone(),
        }
    }
}

/// What [`LeaderOnly`] makes of a service.
#[derive(Clone)]
pub struct LeaderOnlyService<S> {
    inner: S,
    gate: Arc<Gate>,
}

impl<S: fmt::Debug> fmt::Debug for LeaderOnlyService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderOnlyService")
            .field("name", &self.gate.name)
            .field("inner", &self.inner)
            .finish()
    }
}

impl<S> Service<Request> for LeaderOnlyService<S>
where
    S: Service<Request, Error = Infallible> + Clone + Send + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if (self.gate.leads)() {
            let served = self.inner.call(request);
            Box::pin(async move { Ok(served.await?.into_response()) })
        } else {
            let gate = self.gate.clone();
            Box::pin(async move { Ok(gate.refuse().await) })
        }
    }
}
