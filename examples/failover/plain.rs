//! One server with a replica, and nothing else: two holders.

use std::time::Duration;

use leader_core::fencing::FenceGate;
use leader_core::{ElectorExt, LeaderError};
use leader_redis::RedisElector;
use tokio::sync::oneshot;

use crate::site::Site;
use crate::{COMMAND_TIMEOUT, NAME, Played, options, tell};

pub(crate) async fn play() -> Played {
    let site = Site::start().await;
    // What the leaders write to: it remembers the highest fencing token that it has seen.
    let books = FenceGate::new(Vec::new());
    let connect = |node_id| {
        RedisElector::builder()
            .url(site.url())
            .node_id(node_id)
            .command_timeout(COMMAND_TIMEOUT)
    };
    let options = options(Duration::from_secs(5))?;

    site.lag();
    let a = connect("A").connect().await?;
    let (report, reported) = oneshot::channel();
    let first_run = tokio::spawn({
        let options = options.clone();
        async move {
            let run = a.run_if_leader(NAME, &options, |lease| async move {
                let _ = report.send(lease);
                // Work without an end: it goes on until it is stopped.
                std::future::pending::<()>().await;
            });
            run.await
        }
    });
    let first = reported.await?;
    books.enter(first.fence()).await?.push("A");
    tell(format_args!(
        "A leads with fencing token {}, and writes",
        first.fence()
    ));

    site.fail_over().await;
    let b = connect("B").connect().await?;
    let second = b.try_acquire(NAME, &options).await?;
    let second = second.ok_or("the replica knew of A")?;
    tell(format_args!(
        "B leads with fencing token {}",
        second.fence()
    ));
    if !(first.is_valid() && second.is_valid()) {
        return Err("A was stopped before B was elected: the accident did not happen".into());
    }
    tell(format_args!("two holders: A and B both hold a valid lease"));

    books.enter(second.fence()).await?.push("B");
    tell(format_args!("B writes"));
    let refused = books.enter(first.fence()).await.err();
    let refused = refused.ok_or("A wrote after B")?;
    tell(format_args!("A writes: {refused}"));

    // A asks for more time after a third of its lease.
    match first_run.await? {
        Err(lost @ LeaderError::LeaseLost { .. }) => tell(format_args!("A is stopped: {lost}")),
        other => return Err(format!("A was not stopped: {other:?}").into()),
    }
    if !second.is_valid() || books.into_inner() != ["A", "B"] {
        return Err("B does not lead, or the books are wrong".into());
    }
    second.release().await?;
    Ok("two holders; the first was stopped, and its write refused by its fencing token".to_owned())
}
