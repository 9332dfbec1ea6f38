//! Independent servers, and candidates on them.

use std::time::Duration;

use futures::future::join_all;
use leader_core::{Acquisition, Elector, ElectorExt, LeaseOptions, LockName};
use leader_redis::{RedisQuorumBuilder, RedisQuorumElector};
use leader_tests::{
    Server, connect_in_time, elector_at, is_skipped, lead, options, quorum_at, waiting,
};

/// A lease that does not end during a test.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// Far more than anything here takes on a machine that is busy.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);
/// Of a command, where no test waits for it to pass: longer than any test may take.
pub(crate) const NEVER: Duration = Duration::from_secs(60);

pub(crate) struct Servers(pub(crate) Vec<Server>);

impl Servers {
    pub(crate) async fn start(count: usize) -> Self {
        Self(join_all((0..count).map(|_| Server::start())).await)
    }

    pub(crate) fn builder(&self, limit: Duration) -> RedisQuorumBuilder {
        quorum_at(self.0.iter().map(Server::url)).command_timeout(limit)
    }

    /// A candidate that would wait for a server for a very long time.
    pub(crate) async fn candidate(&self, node_id: &str) -> RedisQuorumElector {
        let builder = self.builder(NEVER).node_id(node_id);
        builder.connect().await.expect("a majority answers")
    }

    /// A candidate that waits for a server for so short a time that it may need several attempts to connect.
    pub(crate) async fn hasty(&self, limit: Duration) -> RedisQuorumElector {
        hastily(self.builder(limit)).await
    }

    /// On which servers somebody holds `name`.
    pub(crate) async fn held_on(&self, name: &str) -> Vec<usize> {
        let mut held = Vec::new();
        for (number, server) in self.0.iter().enumerate() {
            let alone = elector_at(server.url()).command_timeout(NEVER);
            let alone = alone.connect().await.expect("it answers");
            if !alone
                .state(name)
                .await
                .expect("it answers")
                .holders()
                .is_empty()
            {
                held.push(number);
            }
        }
        held
    }
}

/// See [`connect_in_time`].
pub(crate) async fn hastily(builder: RedisQuorumBuilder) -> RedisQuorumElector {
    connect_in_time(async || builder.clone().connect().await).await
}

/// Options of a candidate that asks once, for a lease that outlives any test.
pub(crate) fn once() -> LeaseOptions {
    options(waiting(Duration::ZERO, LONG))
}

pub(crate) async fn leads_and_lets_go(candidate: &RedisQuorumElector, name: &str) {
    let lease = lead(candidate, name, &once()).await;
    lease.release().await.expect("a majority releases");
}

pub(crate) async fn is_kept_out(candidate: &RedisQuorumElector, name: &str) -> bool {
    is_skipped(candidate, name, &once()).await
}

/// Who is in the way of an attempt; `None` when it was elected.
pub(crate) async fn who_leads(candidate: &RedisQuorumElector, name: &str) -> Option<String> {
    let name = LockName::new(name).expect("the name is valid");
    match candidate.acquire(&name, &once()).await {
        Ok(Acquisition::Elected(_)) => None,
        Ok(Acquisition::Skipped(skipped)) => {
            let holder = skipped.holder().expect("a holder has a name");
            Some(holder.to_string())
        }
        Err(error) => panic!("an attempt failed: {error}"),
    }
}
