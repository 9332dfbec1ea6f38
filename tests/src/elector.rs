//! Where tests begin to build their electors, so that one variable decides what all of them speak.

use std::env;

use leader_redis::{Protocol, RedisElector, RedisElectorBuilder};

const RESP: &str = "LEADER_TEST_RESP";

/// Begins an elector on the server at `url` that speaks RESP2, or what `LEADER_TEST_RESP=3` asks for.
///
/// # Panics
///
/// When that variable is neither 2 nor 3.
pub fn elector_at(url: impl Into<String>) -> RedisElectorBuilder {
    let builder = RedisElector::builder().url(url);
    match env::var(RESP).as_deref() {
        Err(_) | Ok("") => builder,
        Ok("2") => builder.protocol(Protocol::Resp2),
        Ok("3") => builder.protocol(Protocol::Resp3),
        Ok(other) => panic!("{RESP} is 2 or 3, not {other:?}"),
    }
}
