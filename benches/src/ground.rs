//! What figures stand on: runtimes, clients of the server, second processes, and a clock that two processes share.

use std::time::{Duration, Instant};

use leader_core::{Elector, ElectorExt, LeaseOptions, LockName};
use leader_redis::fred::interfaces::ClientLike;
use leader_redis::fred::prelude::{Builder, Client, Config, TcpConfig};
use leader_tests::Server;
use tokio::runtime::Runtime;

use crate::figure::Outcome;
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

/// fred's client with what everybody sets who cares for speed.
pub(crate) async fn fred_client(url: &str) -> Outcome<Client> {
    let mut builder = Builder::from_config(Config::from_url(url)?);
    builder.with_connection_config(|connection| {
        connection.tcp = TcpConfig {
            nodelay: Some(true),
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
