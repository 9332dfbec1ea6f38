//! A follower is alive; who works under a lease that it cannot prove is not.
#![allow(missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use leader_core::{Elector, ElectorExt, LeaseOptions, LocalElector};
use tower::ServiceExt;

async fn probe(elector: &Arc<dyn Elector>, tolerance: Duration) -> (u16, String) {
    let probes = leader_axum::liveness(elector.clone(), tolerance);
    let app: Router = Router::new().route("/live", probes);
    let request = Request::get("/live").body(Body::empty()).unwrap();
    let answer = app.oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn who_believes_that_it_leads_and_cannot_prove_it_is_not_alive() {
    let store = LocalElector::new();
    let elector: Arc<dyn Elector> = Arc::new(store.node("a"));
    let follower: Arc<dyn Elector> = Arc::new(store.node("b"));
    let second = Duration::from_secs(1);
    let options = LeaseOptions::builder().lease(second).build().unwrap();
    let lease = elector.try_acquire("x", &options).await.unwrap();
    assert_eq!(probe(&elector, Duration::ZERO).await.0, 200);

    tokio::time::sleep(second * 3).await;
    let (status, body) = probe(&elector, Duration::ZERO).await;
    assert_eq!(status, 503);
    assert!(body.contains(r#""name":"x""#), "{body}");
    assert_eq!(probe(&elector, second * 30).await.0, 200, "tolerated");
    assert_eq!(probe(&follower, Duration::ZERO).await.0, 200, "a follower");
    drop(lease);
    assert_eq!(probe(&elector, Duration::ZERO).await.0, 200, "let go of");
}
