//! Where tests begin to build their electors, so that one variable decides what all of them speak.

use std::env;
use std::time::Duration;

use leader_core::{BackendKind, LeaderError};
use leader_redis::{Protocol, RedisElector, RedisElectorBuilder, RedisQuorumBuilder};

use crate::until::until_some;

const RESP: &str = "LEADER_TEST_RESP";
/// Far more than connecting takes.
const LIMIT: Duration = Duration::from_secs(20);

/// Begins an elector on the server at `url` that speaks RESP2, or what `LEADER_TEST_RESP=3` asks for.
///
/// # Panics
///
/// When that variable is neither 2 nor 3.
pub fn elector_at(url: impl Into<String>) -> RedisElectorBuilder {
    let builder = RedisElector::builder().url(url);
    match protocol() {
        None => builder,
        Some(protocol) => builder.protocol(protocol),
    }
}

/// As [`elector_at`], on several independent servers.
///
/// # Panics
///
/// As [`elector_at`].
pub fn quorum_at(urls: impl IntoIterator<Item: Into<String>>) -> RedisQuorumBuilder {
    let builder = RedisElector::quorum(urls);
    match protocol() {
        None => builder,
        Some(protocol) => builder.protocol(protocol),
    }
}

/// Connects with a time limit so short that a busy machine may miss it: then once more.
///
/// # Panics
///
/// When it fails for another reason, which is told, or misses its limit for 20 s.
pub async fn connect_in_time<T>(mut connect: impl AsyncFnMut() -> Result<T, LeaderError>) -> T {
    until_some(
        "it connects within its limit",
        LIMIT,
        async || match connect().await {
            Ok(connected) => Some(connected),
            Err(LeaderError::Backend {
                kind: BackendKind::TimedOut,
                ..
            }) => None,
            Err(error) => panic!("it does not connect: {error}"),
        },
    )
    .await
}

fn protocol() -> Option<Protocol> {
    match env::var(RESP).as_deref() {
        Err(_) | Ok("") => None,
        Ok("2") => Some(Protocol::Resp2),
        Ok("3") => Some(Protocol::Resp3),
        Ok(other) => panic!("{RESP} is 2 or 3, not {other:?}"),
    }
}
