//! A worker of the chaos: see `leader_chaos::worker`.

#[tokio::main(worker_threads = 2)]
async fn main() {
    let orders = std::env::args().nth(1).unwrap_or_default();
    let done = match serde_json::from_str(&orders) {
        Ok(orders) => leader_chaos::worker::work(orders).await,
        Err(error) => Err(format!("no orders, the director gives them: {error}").into()),
    };
    match done {
        // The runtime would wait for the end of a read of standard input that nobody ends.
        Ok(()) => std::process::exit(0),
        Err(error) => {
            eprintln!("chaos-worker: {error}");
            std::process::exit(1)
        }
    }
}
