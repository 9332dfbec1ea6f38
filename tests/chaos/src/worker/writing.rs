//! What leaders write to: a fenced value for each slot of each name, on a server that nothing happens to.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leader_core::fencing::FencedError;
use leader_core::{LeaderError, LeaseHandle};
use leader_redis::RedisElector;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Orders, Wrong};
use crate::clock::Clock;
use crate::record::{Log, Record};

/// A worker's way to the fenced values.
pub(crate) struct Resource {
    elector: RedisElector,
    log: Log,
    clock: Clock,
    writes: AtomicU64,
    /// The server's address, for who goes around the fence.
    unfenced: Option<String>,
}

impl Resource {
    pub(crate) async fn connect(
        orders: &Orders,
        log: Log,
        clock: Clock,
    ) -> Result<Self, LeaderError> {
        let elector = RedisElector::builder()
            .url(&orders.resource)
            // A worker that was stopped for long finds its answers when it goes on.
            .command_timeout(Duration::from_secs(10))
            .connect()
            .await?;
        let unfenced = (orders.wrong == Some(Wrong::Unfenced))
            .then(|| orders.resource.trim_start_matches("redis://").to_owned());
        Ok(Self {
            elector,
            log,
            clock,
            writes: AtomicU64::new(0),
            unfenced,
        })
    }

    /// Writes once, whether the lease is valid or not. Each slot is led by one at a time, so each has a value of its own.
    pub(crate) async fn write(&self, lease: &LeaseHandle) {
        let key = format!("value:{}#{}", lease.name(), lease.slot());
        let fence = lease.fence();
        let write = self.writes.fetch_add(1, Ordering::Relaxed);
        self.log.write(&Record::Sent {
            at: self.clock.now(),
            write,
            key: key.clone(),
            fence: fence.get(),
        });
        let seen = if let Some(addr) = &self.unfenced {
            match past_the_fence(addr, &key, fence.get()).await {
                Ok(()) => None,
                Err(_) => return,
            }
        } else {
            let text = lease.node_id().to_string();
            match self.elector.store().fenced_key(&key).set(fence, text).await {
                Ok(()) => None,
                Err(FencedError::Stale(stale)) => Some(stale.seen.get()),
                // No answer: it may have been written.
                Err(FencedError::Resource(_)) => return,
            }
        };
        self.log.write(&Record::Answered {
            at: self.clock.now(),
            write,
            seen,
        });
    }
}

async fn past_the_fence(addr: &str, key: &str, fence: u64) -> io::Result<()> {
    let mut server = TcpStream::connect(addr).await?;
    let command = format!("HSET {key} fence {fence} value unfenced\r\n");
    server.write_all(command.as_bytes()).await?;
    server.read(&mut [0; 16]).await.map(|_| ())
}
