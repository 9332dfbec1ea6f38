//! What figures stand on: runtimes, clients of the server, second processes, and a clock that two processes share.

use std::time::Duration;

use leader_core::LeaseOptions;
use leader_redis::fred::interfaces::ClientLike;
use leader_redis::fred::prelude::{Builder, Client, Config, TcpConfig};
use leader_tests::Server;
use tokio::runtime::Runtime;

use crate::figure::Outcome;

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

/// Runs the measurement where a service's code runs: in a task, not beside the runtime as `block_on` does.
pub(crate) fn in_a_task<T: Send + 'static>(
    runtime: &Runtime,
    measure: impl Future<Output = Outcome<T>> + Send + 'static,
) -> Outcome<T> {
    runtime.block_on(async { tokio::spawn(measure).await? })
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
