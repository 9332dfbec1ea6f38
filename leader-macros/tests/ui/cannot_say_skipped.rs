use leader_core::leader_election;

#[leader_election(name = "x")]
async fn count() -> u64 {
    1
}

fn main() {}
