use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x", options = "10s")]
async fn close() -> Result<(), LeaderError> {
    Ok(())
}

fn main() {
    let _ = close();
}
