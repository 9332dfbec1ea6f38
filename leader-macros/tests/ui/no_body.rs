use leader_core::{LeaderError, leader_election};

trait Closes {
    #[leader_election(name = "x")]
    async fn close(&self) -> Result<(), LeaderError>;
}

fn main() {}
