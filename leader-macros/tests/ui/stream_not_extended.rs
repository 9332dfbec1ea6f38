use futures::{Stream, stream};
use leader_core::leader_election;

#[leader_election(name = "x", auto_extend = false)]
fn numbers() -> impl Stream<Item = u8> {
    stream::iter([1, 2])
}

fn main() {
    let _ = numbers();
}
