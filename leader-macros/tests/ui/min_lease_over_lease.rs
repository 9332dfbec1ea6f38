use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x", lease = "10s", min_lease = "11s")]
async fn close() -> Result<(), LeaderError> {
    Ok(())
}

fn main() {
    let _ = close();
}
