use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x", wait = "1.5s")]
async fn close() -> Result<(), LeaderError> {
    Ok(())
}

fn main() {
    let _ = close();
}
