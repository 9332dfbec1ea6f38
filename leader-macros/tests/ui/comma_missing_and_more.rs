use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x" lease = "10" slots = 0, wait = "1s" = "2s")]
async fn close() -> Result<(), LeaderError> {
    Ok(())
}

fn main() {
    let _ = close();
}
