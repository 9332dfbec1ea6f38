use leader_core::{LeaderError, leader_election};

#[leader_election(name = "report:{tenat}", lease = "10")]
async fn report(tenant: &str) -> Result<(), LeaderError> {
    let _ = tenant;
    Ok(())
}

fn main() {
    let _ = report("");
}
