use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x")]
async fn close() -> Result<Option<u64>, LeaderError> {
    Ok(Some("one"))
}

fn main() {}
