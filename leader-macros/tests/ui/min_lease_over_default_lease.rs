use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x", min_lease = "2m")]
async fn close() -> Result<(), LeaderError> {
    Ok(())
}

fn main() {
    let _ = close();
}
