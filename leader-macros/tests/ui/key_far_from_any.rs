use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x", retries = 3)]
async fn close() -> Result<(), LeaderError> {
    Ok(())
}

fn main() {
    let _ = close();
}
