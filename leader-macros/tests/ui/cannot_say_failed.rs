use leader_core::leader_election;

#[leader_election(name = "x")]
async fn count() -> Option<u64> {
    Some(1)
}

fn main() {}
