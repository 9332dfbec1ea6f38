//! The shapes of functions; `tests/renamed` has more of each, and runs them.

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use leader_core::{LeaderError, RunOutcome, leader_election};
use std::future::Future;
use std::pin::Pin;

type Answer = Result<Option<u8>, LeaderError>;

#[leader_election(name = "x")]
async fn async_fn() -> Answer {
    Ok(Some(1))
}

#[leader_election(name = "x")]
fn opaque_future() -> impl Future<Output = Answer> + Send {
    async { Ok(Some(1)) }
}

#[leader_election(name = "x")]
fn box_future(n: &u8) -> BoxFuture<'_, Answer> {
    Box::pin(async move { Ok(Some(*n)) })
}

#[leader_election(name = "x")]
fn pinned_future() -> Pin<Box<dyn Future<Output = Answer>>> {
    Box::pin(async { Ok(Some(1)) })
}

#[leader_election(name = "x", auto_extend)]
fn opaque_stream() -> impl Stream<Item = u8> {
    stream::iter([1])
}

#[leader_election(name = "x", bounded)]
fn box_stream(n: &u8) -> BoxStream<'_, Result<u8, LeaderError>> {
    stream::iter([Ok(*n)]).boxed()
}

#[leader_election(name = "x", auto_extend)]
fn pinned_stream() -> Pin<Box<dyn Stream<Item = u8> + Send>> {
    Box::pin(stream::iter([1]))
}

type Feed = BoxStream<'static, u8>;
type Work = BoxFuture<'static, Answer>;

#[leader_election(name = "x", kind = "stream", auto_extend)]
fn alias_of_a_stream() -> Feed {
    stream::iter([1]).boxed()
}

#[leader_election(name = "x", kind = "future")]
fn alias_of_a_future() -> Work {
    Box::pin(async { Ok(None) })
}

#[leader_election(name = "x", on_error = "skip")]
async fn unit() {}

#[leader_election(name = "x", on_error = "run")]
async fn option() -> Option<u8> {
    None
}

#[leader_election(name = "x")]
async fn outcome() -> Result<RunOutcome<u8>, LeaderError> {
    Ok(RunOutcome::Elected(1))
}

#[leader_election(name = "x", skipped = Ok(0))]
async fn skipped() -> Result<u8, LeaderError> {
    Ok(1)
}
