//! The worker processes.

use std::path::PathBuf;
use std::time::Duration;

use leader_tests::Worker;
use tokio::sync::{Mutex, MutexGuard};

use crate::clock::Clock;
use crate::record::{Log, Record, worker_log};
use crate::worker::Orders;

/// How long a worker may take until it stands, with whatever happens to the servers meanwhile.
const READY: Duration = Duration::from_secs(30);

/// All workers, each in the place of the one before.
pub(crate) struct Crew {
    program: String,
    dir: PathBuf,
    log: Log,
    clock: Clock,
    posts: Vec<Mutex<Post>>,
}

struct Post {
    orders: Orders,
    process: Worker,
}

impl Crew {
    /// Starts one worker for each of the orders.
    pub(crate) async fn start(dir: PathBuf, log: Log, clock: Clock, orders: Vec<Orders>) -> Self {
        let program = std::env::current_exe().ok();
        let program = program.and_then(|own| {
            let worker =
                own.with_file_name(format!("chaos-worker{}", std::env::consts::EXE_SUFFIX));
            worker.to_str().map(str::to_owned)
        });
        let program = program.unwrap_or_else(|| panic!("nobody knows where `chaos-worker` is"));
        let start = |mut orders: Orders| {
            orders.log = worker_log(&dir, orders.worker, orders.life);
            let process = spawn(&program, &orders);
            Mutex::new(Post { orders, process })
        };
        let posts: Vec<Mutex<Post>> = orders.into_iter().map(start).collect();
        for post in &posts {
            post.lock()
                .await
                .process
                .wait_for_line("ready", READY)
                .await;
        }
        Self {
            program,
            dir,
            log,
            clock,
            posts,
        }
    }

    /// SIGKILL, and another in its place after a while. Returns when that one stands.
    pub(crate) async fn replace(&self, worker: usize, pause: Duration) {
        let mut post = self.post(worker).await;
        self.end(&post).await;
        tokio::time::sleep(pause).await;
        post.orders.life += 1;
        post.orders.log = worker_log(&self.dir, worker, post.orders.life);
        post.process = spawn(&self.program, &post.orders);
        post.process.wait_for_line("ready", READY).await;
    }

    /// SIGSTOP for a while.
    pub(crate) async fn freeze(&self, worker: usize, length: Duration) {
        let post = self.post(worker).await;
        post.process.freeze().await;
        tokio::time::sleep(length).await;
        post.process.thaw().await;
    }

    /// SIGKILL to all of them.
    pub(crate) async fn end_all(&self) {
        for post in &self.posts {
            self.end(&*post.lock().await).await;
        }
    }

    /// The logs that are being written.
    pub(crate) async fn logs(&self) -> Vec<PathBuf> {
        let mut logs = Vec::new();
        for post in &self.posts {
            logs.push(post.lock().await.orders.log.clone());
        }
        logs
    }

    async fn end(&self, post: &Post) {
        // Before the signal: it lived until then, at least.
        self.log.write(&Record::Gone {
            worker: post.orders.worker,
            life: post.orders.life,
            at: self.clock.now(),
        });
        post.process.kill().await;
    }

    async fn post(&self, worker: usize) -> MutexGuard<'_, Post> {
        self.posts[worker].lock().await
    }
}

fn spawn(program: &str, orders: &Orders) -> Worker {
    let orders = serde_json::to_string(orders);
    let orders = orders.unwrap_or_else(|error| panic!("orders cannot be given: {error}"));
    Worker::spawn(program, &[&orders])
}
