use leader_core::{LeaderError, leader_election};

#[leader_election("invoice-close")]
async fn close() -> Result<(), LeaderError> {
    Ok(())
}

fn main() {
    let _ = close();
}
