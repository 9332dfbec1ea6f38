use leader_core::{LeaderError, leader_election};

#[leader_election(name = "x", crate = "not a path")]
async fn close() -> Result<(), LeaderError> {
    Ok(())
}

fn main() {
    let _ = close();
}
