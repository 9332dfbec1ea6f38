use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x")]
async fn count() -> Result<u64, LeaderError> {
    Ok(1)
}

fn main() {}
