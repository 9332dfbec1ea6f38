use leader_core::leader_election;

#[leader_election(name = "x")]
const fn close() -> u8 {
    1
}

fn main() {
    let _ = close();
}
