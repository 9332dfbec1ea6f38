use leader_core::{LeaderError, leader_election};

#[leader_election(name = "report:{}")]
async fn close(tenant: &str, id: u32) -> Result<(), LeaderError> {
    let _ = (tenant, id);
    Ok(())
}

fn main() {
    let _ = close("", 1);
}
