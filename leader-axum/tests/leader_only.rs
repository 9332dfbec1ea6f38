//! Who passes `LeaderOnly`, and what the others are told.
#![allow(missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response};
use axum::routing::get;
use leader_axum::LeaderOnly;
use leader_core::testing::{Fault, Faults, FaultyStore};
use leader_core::{
    BackendKind, Elector, ElectorExt, LeaseOptions, LocalStore, LockName, Step, StoreElector,
};
use serde_json::Value;
use tower::ServiceExt;

const NAME: &str = "scheduler";

fn candidate(store: &LocalStore, node_id: &str) -> (Arc<dyn Elector>, Faults) {
    let store = FaultyStore::new(store.clone());
    let faults = store.faults();
    let elector = StoreElector::builder(store).node_id(node_id).build();
    (Arc::new(elector), faults)
}

fn options() -> LeaseOptions {
    let options = LeaseOptions::builder().wait(Duration::ZERO);
    options.lease(Duration::from_millis(2_500)).build().unwrap()
}

fn app(elector: &Arc<dyn Elector>, leads: impl Fn() -> bool + Send + Sync + 'static) -> Router {
    let only = LeaderOnly::new(elector.clone(), LockName::new(NAME).unwrap(), leads);
    Router::new()
        .route("/", get(async || "served"))
        .route_layer(only)
        .route("/open", get(async || "open"))
}

async fn ask(app: &Router, path: &str) -> Response<Body> {
    let request = Request::get(path).body(Body::empty()).unwrap();
    app.clone().oneshot(request).await.unwrap()
}

fn header<'a>(answer: &'a Response<Body>, name: &str) -> Option<&'a str> {
    answer.headers().get(name)?.to_str().ok()
}

async fn json(answer: Response<Body>) -> Value {
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_leader_serves_until_its_deadline_and_others_name_it() {
    let store = LocalStore::new();
    let ((a, _), (b, _)) = (candidate(&store, "a"), candidate(&store, "b"));
    let lease = a.try_acquire(NAME, &options()).await.unwrap().unwrap();
    let handle = lease.handle();
    let of_a = app(&a, move || handle.is_valid());
    let of_b = app(&b, || false);

    assert_eq!(ask(&of_a, "/").await.status(), 200);
    assert_eq!(ask(&of_b, "/open").await.status(), 200);
    let refused = ask(&of_b, "/").await;
    assert_eq!(refused.status(), 503);
    assert_eq!(header(&refused, "retry-after"), Some("3"), "2.5 s are 3");
    assert_eq!(header(&refused, "leader-node-id"), Some("a"));
    let refused = json(refused).await;
    assert_eq!(refused["error"], "not_leader");
    assert_eq!(refused["name"], NAME);
    assert_eq!(refused["leader"]["fence"], lease.fence().get());

    // The deadline is before the lease's end in the store: who cannot prove it does not serve, nor does anybody.
    tokio::time::sleep(Duration::from_millis(2_480)).await;
    let refused = ask(&of_a, "/").await;
    assert_eq!(refused.status(), 503);
    assert_eq!(header(&refused, "retry-after"), Some("1"), "20 ms are 1");
    tokio::time::sleep(Duration::from_millis(120)).await;
    let refused = ask(&of_a, "/").await;
    assert_eq!(header(&refused, "retry-after"), Some("1"));
    assert_eq!(header(&refused, "leader-node-id"), None);
    assert_eq!(json(refused).await["leader"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn of_several_slots_the_one_that_is_free_first_counts() {
    let store = LocalStore::new();
    let (a, _) = candidate(&store, "a");
    let (b, _) = candidate(&store, "b");
    let slots = |seconds| {
        let options = LeaseOptions::builder().slots(2).wait(Duration::ZERO);
        options.lease(Duration::from_secs(seconds)).build().unwrap()
    };
    let _long = a.try_acquire(NAME, &slots(60)).await.unwrap().unwrap();
    let _short = b.try_acquire(NAME, &slots(7)).await.unwrap().unwrap();
    let refused = ask(&app(&a, || false), "/").await;
    assert_eq!(header(&refused, "retry-after"), Some("7"));
    assert_eq!(header(&refused, "leader-node-id"), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_no_server_error() {
    let (a, faults) = candidate(&LocalStore::new(), "a");
    faults.always(Step::Inspect, Fault::Refuse(BackendKind::Unreachable));
    let refused = ask(&app(&a, || false), "/").await;
    assert_eq!(refused.status(), 503);
    assert_eq!(header(&refused, "retry-after"), Some("1"));
    assert_eq!(json(refused).await["leader"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_refused_requests_does_not_reach_the_store() {
    let (a, faults) = candidate(&LocalStore::new(), "a");
    let app = app(&a, || false);
    for _ in 0..1_000 {
        assert_eq!(ask(&app, "/").await.status(), 503);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let asked = faults.asked(Step::Inspect);
    assert!((9..=12).contains(&asked), "{asked} looks in a second");
}
