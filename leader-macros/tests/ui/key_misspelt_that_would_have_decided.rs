use leader_core::{LeaderError, leader_election};

type Work = std::pin::Pin<Box<dyn Future<Output = Result<(), LeaderError>>>>;

#[leader_election(name = "x", knd = "future")]
fn alias() -> Work {
    Box::pin(async { Ok(()) })
}

#[leader_election(name = "x", bouned)]
fn stream() -> impl futures::Stream<Item = u8> {
    futures::stream::iter([1])
}

#[leader_election(name = "x", skiped = 0)]
async fn skipped() -> u8 {
    1
}

#[leader_election(name = "x", on_error = "skp")]
async fn failed() -> u8 {
    1
}

fn main() {
    let _ = (alias(), stream(), skipped(), failed());
}
