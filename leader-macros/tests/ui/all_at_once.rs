use leader_core::leader_election;

#[leader_election(name = "report:{region}", lease = "10", waits = "1s", slots = 0, bounded, bounded)]
fn report(tenant: &str) {
    let _ = tenant;
}

fn main() {
    report("");
}
