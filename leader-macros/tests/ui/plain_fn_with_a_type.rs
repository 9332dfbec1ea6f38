use leader_core::leader_election;

#[leader_election(name = "x")]
fn close() -> Vec<u8> {
    Vec::new()
}

fn main() {
    let _ = close();
}
