use leader_core::{LeaderError, leader_election};

#[leader_election(naem = "x", leese = "10s", min_lease = "90s")]
async fn close() -> Result<(), LeaderError> {
    Ok(())
}

fn main() {
    let _ = close();
}
