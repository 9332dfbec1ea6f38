use leader_core::leader_election;

struct BillingError;

#[leader_election(name = "x")]
async fn close() -> Result<(), BillingError> {
    Err(BillingError)
}

fn main() {}
