//! What figures stand on: runtimes, clients of the server, second processes, and a clock that two processes share.

use std::time::{Duration, Instant};

use leader_core::{Elector, ElectorExt, LeaseOptions, LockName};
use leader_redis::fred::interfaces::ClientLike;
use leader_redis::fred::prelude::{Builder, Client, Config, TcpConfig};
use leader_tests::{Server, Worker};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;

use crate::figure::{Figure, Outcome};
use crate::rounds::micros;

/// What most services run on.
pub(crate) fn many_threads() -> Outcome<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}

pub(crate) fn one_thread() -> Outcome<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?)
}

/// fred's client; without delay is what everybody sets who cares for speed and sends one command at a time.
pub(crate) async fn fred_client(url: &str, nodelay: bool) -> Outcome<Client> {
    let mut builder = Builder::from_config(Config::from_url(url)?);
    builder.with_connection_config(|connection| {
        connection.tcp = TcpConfig {
            nodelay: Some(nodelay),
            ..TcpConfig::default()
        };
    });
    let client = builder.build()?;
    client.init().await?;
    Ok(client)
}

/// The mean time of a guarded run with an empty body, in microseconds, one after the other in a task, as a service has it.
pub(crate) async fn runs<E>(
    elector: &E,
    name: &str,
    options: &LeaseOptions,
    times: u32,
) -> Outcome<f64>
where
    E: Elector + Clone + 'static,
{
    let (elector, options, name) = (elector.clone(), options.clone(), LockName::new(name)?);
    let task = tokio::spawn(async move {
        let begun = Instant::now();
        for _ in 0..times {
            let ran = elector.run_if_leader(&name, &options, |_| async {});
            ran.await?.ok_or("somebody else leads")?;
        }
        Ok(micros(begun.elapsed()) / f64::from(times))
    });
    task.await?
}

/// The mean time of a `PING` and its answer, likewise.
pub(crate) async fn pings(client: &Client, times: u32) -> Outcome<f64> {
    let client = client.clone();
    let task = tokio::spawn(async move {
        let begun = Instant::now();
        for _ in 0..times {
            client.ping::<()>(None).await?;
        }
        Ok(micros(begun.elapsed()) / f64::from(times))
    });
    task.await?
}

/// How many commands clients have sent since the statistics were reset: without what scripts called, and without what the
/// harness itself asks.
pub(crate) async fn sent(server: &Server) -> f64 {
    const IN_SCRIPTS: [&str; 10] = [
        "hget", "hgetall", "hmget", "hset", "hdel", "exists", "pexpire", "pttl", "publish", "time",
    ];
    const OF_THE_HARNESS: [&str; 4] = ["config", "info", "hello", "auth"];
    let commands = server.commands().await;
    let sent = commands.iter().filter(|(name, _)| {
        let name = name.split('|').next().unwrap_or_default();
        !IN_SCRIPTS.contains(&name) && !OF_THE_HARNESS.contains(&name)
    });
    #[expect(clippy::cast_precision_loss, reason = "some thousands")]
    sent.map(|(_, calls)| *calls as f64).sum()
}

/// A lease that outlives the figure, and one attempt unless told otherwise.
pub(crate) fn options(wait: Duration) -> Outcome<LeaseOptions> {
    Ok(LeaseOptions::builder()
        .wait(wait)
        .lease(Duration::from_secs(60))
        .build()?)
}

/// How many microseconds the server spends on one call of a command, since its statistics were reset.
pub(crate) async fn usec_per_call(server: &Server, command: &str) -> f64 {
    let info = server.command(&["INFO", "commandstats"]).await.text();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
    let value = line.and_then(|line| {
        line.split(',')
            .find_map(|stat| stat.strip_prefix("usec_per_call="))
    });
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or(f64::NAN)
}

/// The server's process, for what it takes of the machine.
pub(crate) async fn process_id(server: &Server) -> Outcome<u32> {
    let info = server.command(&["INFO", "server"]).await.text();
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("process_id:"));
    Ok(line.ok_or("the server does not say who it is")?.parse()?)
}

/// Measures with client and server on the same two cores, where the machine has more.
pub(crate) fn on_two_cores<T>(measure: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let before = sched_getaffinity(None)?;
    let mut two = CpuSet::new();
    let cores = (0..CpuSet::MAX_CPU)
        .filter(|core| before.is_set(*core))
        .take(2);
    cores.for_each(|core| two.set(core));
    // Threads and processes that are begun from here on have it from this thread.
    sched_setaffinity(None, &two)?;
    let measured = measure();
    sched_setaffinity(None, &before)?;
    measured
}

/// Nanoseconds of a clock that all processes of a machine share and nobody sets.
pub(crate) fn monotonic() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Another process of this program, which plays the second part of a figure.
pub(crate) fn second_process(figure: &Figure, args: &[&str]) -> Outcome<Worker> {
    let program = std::env::current_exe()?;
    let program = program
        .to_str()
        .ok_or("the path of this program is no text")?;
    Ok(Worker::spawn(
        program,
        &[&["--play", figure.id], args].concat(),
    ))
}
