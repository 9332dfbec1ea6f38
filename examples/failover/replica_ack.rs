//! A grant counts only once the replica has it: no first grant.

use std::time::Duration;

use leader_core::{BackendKind, ElectorExt, LeaderError};
use leader_redis::RedisElector;
use leader_tests::Server;

use crate::site::Site;
use crate::{COMMAND_TIMEOUT, NAME, Played, options, tell};

pub(crate) async fn play() -> Played {
    let site = Site::start().await;
    let connect = |node_id| {
        let builder = RedisElector::builder()
            .url(site.url())
            .node_id(node_id)
            .command_timeout(COMMAND_TIMEOUT);
        builder.replica_ack(1, Duration::from_millis(200))
    };

    site.lag();
    let a = connect("A").connect().await?;
    match a.try_acquire(NAME, &options(Duration::ZERO)?).await {
        Err(
            error @ LeaderError::Backend {
                kind: BackendKind::TooFewReplicas,
                ..
            },
        ) => {
            tell(format_args!("A is not elected: {error}"));
        }
        other => return Err(format!("A's attempt ended with {other:?}").into()),
    }

    let new_primary = site.fail_over().await;
    let _its_replica = Server::replica_of(new_primary).await;
    let b = connect("B").connect().await?;
    let second = b
        .try_acquire(NAME, &options(Duration::from_secs(5))?)
        .await?;
    let second = second.ok_or("somebody else leads")?;
    tell(format_args!(
        "B leads with fencing token {}, which the new primary's replica has acknowledged",
        second.fence()
    ));
    let holders = b.state(NAME).await?;
    if holders.holders().len() != 1 {
        return Err(format!("not one holder: {holders:?}").into());
    }
    second.release().await?;
    Ok("no first grant: A was told that no replica has it, and did not run".to_owned())
}
