//! [`Sample`]: everything that may grow, measured at one moment.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leader_tests::Server;
use leader_tests::resp::Connection;
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::churn::{GIVEN_UP, ONCE};
use super::tally::Tally;
use crate::{cpu, memory};

/// Everything that may grow, at one moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// Seconds since the churn began.
    pub seconds: f64,
    /// Bytes of this process that are in memory.
    pub resident: u64,
    /// Bytes that the allocator has given out.
    pub heap: u64,
    /// Tasks of the runtime that have not ended.
    pub tasks: u64,
    /// Connections to the server, without the one that asks for this.
    pub connections: u64,
    /// Channels and patterns to which anybody has subscribed.
    pub subscriptions: u64,
    /// Keys in the server.
    pub keys: u64,
    /// Names that came once and never again, so far; each has a key for a day.
    pub once: u64,
    /// Bytes that the server uses.
    pub server_memory: u64,
    /// Commands that the server has executed for each second since the last sample.
    pub commands_per_second: u64,
    /// Attempts and runs that were given up so far; each may leave a mark in the server for a minute.
    pub given_up: u64,
    /// Milliseconds by which a task of this process was late at worst since the last sample: how busy the machine is.
    pub late: u64,
    /// Leases that were lost so far.
    pub lost: u64,
    /// Processor time so far: of this process, and of the server.
    #[serde(skip)]
    cpu: [Duration; 2],
}

impl Sample {
    pub(super) fn note(&mut self, tally: &Tally) {
        self.once = tally.of(ONCE);
        self.given_up = GIVEN_UP.iter().map(|what| tally.of(what)).sum();
        self.lost = tally.lost();
    }
}

/// Takes samples, on a connection of its own.
pub(super) struct Sampler {
    connection: Connection,
    server: u32,
    heap: fn() -> u64,
    /// When the last sample was taken, and how many commands had been executed by then.
    last: (Instant, u64),
    late: Arc<AtomicU64>,
    _watch: AbortOnDropHandle<()>,
}

impl Sampler {
    pub(super) async fn on(server: &Server, heap: fn() -> u64) -> Self {
        let connection = server.connect().await;
        let connection = connection.unwrap_or_else(|error| panic!("no connection: {error}"));
        let late = Arc::new(AtomicU64::new(0));
        let mut sampler = Self {
            connection,
            server: 0,
            heap,
            last: (Instant::now(), 0),
            _watch: AbortOnDropHandle::new(tokio::spawn(watch(late.clone()))),
            late,
        };
        sampler.server = sampler.info("process_id").await;
        sampler
    }

    pub(super) async fn take(&mut self, since: Duration) -> Sample {
        let info = self.ask(&["INFO"]).await;
        let number = |name: &str| number(&info, name).unwrap_or_default();
        let commands = number("total_commands_processed");
        let (before, executed) = std::mem::replace(&mut self.last, (Instant::now(), commands));
        let passed = u64::try_from(before.elapsed().as_millis()).unwrap_or(u64::MAX);
        let channels = self.count(&["PUBSUB", "CHANNELS"]).await;
        let patterns = self.count(&["PUBSUB", "NUMPAT"]).await;
        Sample {
            seconds: since.as_secs_f64(),
            resident: memory::resident(process::id()).unwrap_or_default(),
            heap: (self.heap)(),
            tasks: Handle::current().metrics().num_alive_tasks() as u64,
            connections: number("connected_clients") - 1,
            subscriptions: channels + patterns,
            keys: number("db0"),
            once: 0,
            given_up: 0,
            late: self.late.swap(0, Ordering::Relaxed),
            server_memory: number("used_memory"),
            commands_per_second: (commands - executed) * 1000 / passed.max(1),
            lost: 0,
            cpu: [process::id(), self.server].map(|pid| cpu::used(pid).unwrap_or_default()),
        }
    }

    /// A sample once there are no more tasks, connections and subscriptions than before; or after `limit`, as it is.
    pub(super) async fn once_as_before(&mut self, before: &Sample, limit: Duration) -> Sample {
        let begun = Instant::now();
        loop {
            let sample = self.take(Duration::ZERO).await;
            let rest = sample.tasks <= before.tasks
                && sample.connections <= before.connections
                && sample.subscriptions <= before.subscriptions;
            if rest || begun.elapsed() > limit {
                return sample;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Processor time for each second, of this process and of the server, since that sample.
    pub(super) fn cores_since(&self, sample: &Sample, passed: Duration) -> [f64; 2] {
        let now = [process::id(), self.server].map(|pid| cpu::used(pid).unwrap_or_default());
        let used = |which: usize| now[which].saturating_sub(sample.cpu[which]);
        [0, 1].map(|which| used(which).div_duration_f64(passed))
    }

    pub(super) async fn server_version(&mut self) -> String {
        let info = self.ask(&["INFO", "server"]).await;
        let field = |name| field(&info, name);
        match (field("valkey_version:"), field("redis_version:")) {
            (Some(version), _) => format!("Valkey {version}"),
            (None, version) => format!("Redis {}", version.unwrap_or("?")),
        }
    }

    async fn info(&mut self, name: &str) -> u32 {
        let info = self.ask(&["INFO"]).await;
        let number = number(&info, name).unwrap_or_default();
        u32::try_from(number).unwrap_or_default()
    }

    async fn count(&mut self, command: &[&str]) -> u64 {
        match self.connection.call(command).await {
            Ok(leader_tests::Reply::Array(all)) => all.len() as u64,
            Ok(reply) => reply.integer().unsigned_abs(),
            Err(error) => panic!("the server does not answer: {error}"),
        }
    }

    async fn ask(&mut self, command: &[&str]) -> String {
        match self.connection.call(command).await {
            Ok(reply) => reply.text(),
            Err(error) => panic!("the server does not answer: {error}"),
        }
    }
}

/// Notes in `late` by how many milliseconds this task was late at worst.
async fn watch(late: Arc<AtomicU64>) {
    const PAUSE: Duration = Duration::from_millis(20);
    loop {
        let due = Instant::now() + PAUSE;
        sleep_until(due).await;
        let millis = u64::try_from(due.elapsed().as_millis()).unwrap_or(u64::MAX);
        late.fetch_max(millis, Ordering::Relaxed);
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name))
}

/// Reads `used_memory:1234`, and the first number of `db0:keys=1234,expires=…`.
fn number(info: &str, name: &str) -> Option<u64> {
    let value = field(info, &format!("{name}:"))?;
    let value = value.trim_start_matches("keys=");
    value.split(',').next()?.parse().ok()
}
