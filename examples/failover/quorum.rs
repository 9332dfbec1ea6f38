//! Five servers, none of which decides alone: no second grant.

use std::time::Duration;

use leader_core::{ElectorExt, LeaderError, RunOutcome};
use leader_redis::{RedisElector, RedisQuorumElector};
use leader_tests::Server;

use crate::{COMMAND_TIMEOUT, NAME, Played, options, tell};

pub(crate) async fn play() -> Played {
    let mut servers = Vec::new();
    for _ in 0..5 {
        servers.push(Server::start().await);
    }
    let a = connect("A", &servers).await?;
    let options = options(Duration::ZERO)?;
    let first = a.try_acquire(NAME, &options).await?;
    let first = first.ok_or("somebody else leads")?;
    tell(format_args!(
        "A leads with fencing token {}, granted by a majority of five servers",
        first.fence()
    ));

    // As if each had been followed by a replica that did not have the grant.
    for server in &servers[..2] {
        server.restart().await;
    }
    tell(format_args!(
        "two of the five are killed, and come back with nothing in their memory"
    ));

    let b = connect("B", &servers).await?;
    let run = b.run_if_leader_result(NAME, &options, |_| async { Ok::<_, std::io::Error>(()) });
    match run.await? {
        RunOutcome::Skipped(skipped) if first.is_valid() => {
            let holder = skipped.holder().ok_or("nobody knows who leads")?;
            tell(format_args!(
                "B is not elected: three of five say that {holder} leads"
            ));
        }
        other => return Err(format!("B's run ended with {other:?}").into()),
    }

    let old = first.fence();
    first.release().await?;
    let second = b.try_acquire(NAME, &options).await?;
    let second = second.ok_or("A's lease is still there")?;
    tell(format_args!(
        "A ends; B leads with fencing token {}",
        second.fence()
    ));
    if second.fence() <= old {
        return Err("the fencing token did not grow".into());
    }
    second.release().await?;
    Ok("no second grant while the first one stood".to_owned())
}

async fn connect(node_id: &str, servers: &[Server]) -> Result<RedisQuorumElector, LeaderError> {
    RedisElector::quorum(servers.iter().map(Server::url))
        .node_id(node_id)
        .command_timeout(COMMAND_TIMEOUT)
        .connect()
        .await
}
