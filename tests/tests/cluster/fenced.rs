//! Values that refuse a stale leader: each lives where its own key does.

use leader_core::FencingToken;
use leader_core::fencing::StaleFence;
use leader_core::testing::check_fenced_resource;
use leader_tests::Cluster;

use super::candidate;

const fn token(number: u64) -> FencingToken {
    FencingToken::new(number)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g03_fenced_keys_live_on_their_own_nodes_and_keep_their_fence_while_they_move() {
    let cluster = Cluster::start().await;
    let store = candidate(&cluster, "a").await.store().clone();
    for number in 0..12 {
        let key = store.fenced_key(format!("account:{number}"));
        check_fenced_resource(&key, |number| number.to_string().into_bytes()).await;
    }

    let key = store.fenced_key("rate");
    let refused = async || key.set(token(1), "stale").await.unwrap_err().stale();
    let (presented, seen) = (token(1), token(2));
    let stale = Some(StaleFence { presented, seen });
    key.set(token(2), "1.08").await.unwrap();
    let migration = cluster.begin_migration("rate").await;
    assert_eq!(refused().await, stale);
    migration.move_keys().await;
    assert_eq!(refused().await, stale);
    key.set(token(2), "1.09").await.unwrap();
    migration.finish().await;
    assert_eq!(refused().await, stale);
    let value = key.get().await.unwrap().expect("it was written");
    assert_eq!((value.fence(), value.value()), (token(2), &b"1.09"[..]));
}
