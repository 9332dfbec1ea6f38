//! Parts D and G: failing open, and fencing tokens after the counter is lost.

use leader_core::{ElectorExt, current_lease, ensure_leader};
use leader_tests::{Server, at_once, lead, patient};

use super::connect;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d03_failing_open_runs_the_body_once_without_a_lease() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    server.kill().await;
    let mut ran = 0;
    let outcome = a
        .run_fail_open("x", &at_once(), async |lease| {
            ran += 1;
            assert!(lease.is_none());
            assert!(current_lease().is_none());
            assert!(ensure_leader().is_err());
            None::<u8>
        })
        .await;
    assert_eq!(outcome.unwrap(), Some(None));
    assert_eq!(ran, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g02_fencing_goes_on_after_the_counter_is_lost() {
    let server = Server::start().await;
    let a = connect(&server.url(), "a").await;
    let mut last = lead(&a, "x", &at_once()).await.fence();
    for forget in [
        &["FLUSHALL"][..],
        &["SCRIPT", "FLUSH"],
        &["FLUSHALL"],
        &["DEL", "leader:{x}:lease"],
    ] {
        server.command(forget).await;
        let lease = lead(&a, "x", &patient()).await;
        assert!(
            lease.fence() > last,
            "{forget:?}: {:?} after {last:?}",
            lease.fence()
        );
        last = lease.fence();
        lease.release().await.unwrap();
    }
    server.kill().await;
    server.restart().await;
    assert!(lead(&a, "x", &patient()).await.fence() > last);
}
