use leader_core::leader_election;

#[leader_election(name = "x")]
struct Close;

fn main() {
    let _ = Close;
}
