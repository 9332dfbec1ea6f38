use leader_core::leader_election;

#[leader_election(name = "x")]
fn close() {}

fn main() {
    let _ = close();
}
