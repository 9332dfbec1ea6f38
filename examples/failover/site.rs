//! A pair of servers that fails over, and says so.

use leader_tests::{Pair, Server};

use crate::tell;

pub(crate) struct Site {
    pair: Pair,
}

impl Site {
    pub(crate) async fn start() -> Self {
        Self {
            pair: Pair::start().await,
        }
    }

    pub(crate) fn url(&self) -> String {
        self.pair.url()
    }

    /// Replication is asynchronous: what the primary acknowledges from now on, the replica has not received yet.
    pub(crate) fn lag(&self) {
        self.pair.lag();
        tell(format_args!("the replica lags behind its primary"));
    }

    /// The primary is killed, and the replica takes its place. Gives the new primary.
    pub(crate) async fn fail_over(&self) -> &Server {
        let new_primary = self.pair.fail_over().await;
        tell(format_args!(
            "the primary is killed, and the replica promoted in its place"
        ));
        new_primary
    }
}
