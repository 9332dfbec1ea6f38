//! A connection that breaks: whoever asks in that very moment is told so, and does not wait for its time limit.

use std::time::Duration;

use futures::future::join_all;
use leader_core::BackendKind;
use leader_core::store::LeaseStore;
use leader_redis::RedisStore;
use leader_tests::{Server, elector_at};
use tokio::time::timeout;

use crate::steps::*;

/// Of a command: far longer than a test takes.
const NEVER: Duration = Duration::from_secs(60);

async fn patient_store(server: &Server) -> RedisStore {
    let builder = elector_at(server.url()).command_timeout(NEVER);
    builder.connect_store().await.expect("the server answers")
}

#[tokio::test]
async fn whoever_asks_while_the_connection_breaks_is_told_at_once() {
    let server = Server::start().await;
    let store = patient_store(&server).await;
    // One asks every millisecond: before it breaks, in the moment, and while it is tried in vain to come back.
    let asking = (0..300).map(async |n| {
        tokio::time::sleep(Duration::from_millis(n)).await;
        let candidate = candidate_for(&format!("n{n}"));
        store.claim(&candidate.to_claim(LONG)).await
    });
    let killing = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.kill().await;
    };
    let all = async { tokio::join!(join_all(asking), killing).0 };
    let answers = timeout(LIMIT, all).await.expect("nobody waits for long");
    let errors: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
    assert!(!errors.is_empty());
    for error in errors {
        assert_eq!(error.kind(), BackendKind::Unreachable, "{error}");
    }
}
