use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x", wait = std::time::Instant::now())]
async fn close() -> Result<(), LeaderError> {
    Ok(())
}

fn main() {
    let _ = close();
}
