use futures::future::BoxFuture;
use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x")]
fn count() -> BoxFuture<'static, Result<u64, LeaderError>> {
    Box::pin(async { Ok(1) })
}

fn main() {
    drop(count());
}
