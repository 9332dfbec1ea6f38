//! [`RedisStore`]: the atomic steps on one Redis or Valkey server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, HintSender, LeaseStore, Release, ReleaseReply,
    Revision, StoreError, Watching,
};
use leader_core::{Holder, LeaseOptions, LockName};
use tokio::runtime::Handle;

use crate::client::{Arg, Connection};
use crate::fault::Failure;
use crate::keys::Keys;
use crate::reply::{self, Released};
use crate::runtime::{Lodging, OwnRuntime};
use crate::script::{CLAIM, EVICT, EXTEND, INSPECT, RELEASE};
use crate::watch::Wakeups;

/// A [`LeaseStore`] on one Redis or Valkey server, 6.2 or later. A clone is the same store.
///
/// Made by [`RedisElectorBuilder::connect_store`](crate::RedisElectorBuilder::connect_store), for those who put an
/// engine of their own on it, or test it; everybody else wants [`RedisElector`](crate::RedisElector).
///
/// # What it keeps on the server
///
/// One hash for each name, `leader:{invoice-close}:lease`, and one channel, `leader:{invoice-close}:released`. The
/// name stands in braces, so that all live in one slot of a cluster. The hash outlives its last lease by half a day
/// to a day, so that the last fencing token does too, and is gone then: nothing is kept for ever. A claim that was given
/// up before its answer came leaves a small key of its own, `leader:{invoice-close}:ended:<token>`, which refuses the
/// claim should it arrive yet, and is gone after a minute. Channels are one
/// space for all databases of a server; electors of two databases with the same prefix wake each other in vain.
///
/// # Time and order
///
/// All times are the server's. Fencing tokens are `max(last + 1, server time in microseconds)`; see
/// [`FencingToken`](leader_core::FencingToken) for what that assumes of clocks in a failover. Every release takes the
/// next number by the same rule.
///
/// The server's time is its wall clock (`TIME`), so leases end by that. If it is set forward, leases end early on the
/// server while their holders still rely on them, until their next extension or their deadline; what they write meanwhile
/// is kept out where fencing tokens are checked, as the next holder's is greater. If it is set back, leases end late.
/// Let the server's clock be slewed, as NTP daemons do by default once they run, not stepped.
///
/// # Batches
///
/// [`extend`](LeaseStore::extend) sends a batch as one script, during which the server does nothing else: about 5 µs for
/// each lease. The engine's batches have 256 at most; who calls it directly chooses how many.
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

/// Dropped in this order: connections before their runtime.
struct Inner {
    commands: Connection,
    wakeups: Wakeups,
    keys: Keys,
    address: String,
    timeout: Duration,
    lodging: Lodging,
    /// Kept for as long as the connections.
    _own_runtime: Option<OwnRuntime>,
    /// Whether it was said that releases cannot be told.
    complained: AtomicBool,
}

impl RedisStore {
    pub(crate) fn new(
        commands: Connection,
        wakeups: Wakeups,
        keys: Keys,
        address: String,
        timeout: Duration,
        lodging: Lodging,
        own_runtime: Option<OwnRuntime>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                commands,
                wakeups,
                keys,
                address,
                timeout,
                lodging,
                _own_runtime: own_runtime,
                complained: AtomicBool::new(false),
            }),
        }
    }

    /// The runtime on which the connections live.
    pub(crate) fn runtime(&self) -> &Handle {
        self.inner.lodging.handle()
    }
}

impl Inner {
    /// The failure in the engine's words.
    fn error(&self, key: &str, failure: impl Into<Failure>) -> StoreError {
        failure.into().at(&self.address, Some(key))
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        let keys: Vec<String> = batch.iter().map(|e| self.keys.record(&e.name)).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let tokens: Vec<String> = batch.iter().map(|e| e.token.to_hex()).collect();
        let each = batch.iter().zip(&tokens).flat_map(|(extension, token)| {
            [
                Arg::Text(token),
                Arg::Number(u64::from(extension.slot)),
                Arg::Number(micros(extension.lease)),
            ]
        });
        let args: Vec<Arg<'_>> = each.collect();
        let answers = match self.commands.run(&EXTEND, &keys, &args).await {
            Ok(answer) => reply::extend(&answer, batch.len()).map_err(Failure::from),
            Err(failure) => Err(failure),
        };
        match answers {
            Ok(answers) => answers
                .into_iter()
                .zip(&keys)
                .map(|(answer, key)| answer.map_err(|oddity| self.error(key, oddity)))
                .collect(),
            Err(failure) => vec![Err(failure.at(&self.address, None)); batch.len()],
        }
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        let key = self.keys.record(&release.name);
        let channel = self.keys.channel(&release.name);
        let token = release.token.to_hex();
        let slot = release.slot.map(|slot| slot.to_string());
        let args = [
            Arg::Text(&token),
            Arg::Text(slot.as_deref().unwrap_or_default()),
            Arg::Number(micros(release.keep)),
            Arg::Number(release.mark.map_or(0, |mark| micros(mark).max(1))),
            Arg::Text(&channel),
        ];
        let mark = self.keys.mark(&release.name, &token);
        let answer = self.commands.run(&RELEASE, &[&key, &mark], &args).await;
        let released = answer.and_then(|answer| Ok(reply::release(&answer)?));
        let Released { reply, untold } = released.map_err(|failure| self.error(&key, failure))?;
        if let Some(words) = untold
            && !self.complained.swap(true, Ordering::Relaxed)
        {
            let error = self.error(&key, Failure::Refused(words));
            tracing::warn!(%channel, %error, "releases cannot be told: waiters are not woken before leases end");
        }
        Ok(match reply {
            ReleaseReply::Released { revision, told } => ReleaseReply::Released {
                revision,
                told: self.told(&channel, told),
            },
            reply => reply,
        })
    }

    /// How many watchers were told, when the server told `connections`: this process listens on one connection,
    /// however many watch here.
    fn told(&self, channel: &str, connections: u32) -> u32 {
        match self.wakeups.count(channel) {
            here if connections > 0 && here > 0 => connections - 1 + here,
            _ => connections,
        }
    }
}

impl LeaseStore for RedisStore {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        let inner = &*self.inner;
        let key = inner.keys.record(&claim.name);
        let token = claim.token.to_hex();
        let slot = claim.slot.map(|slot| slot.to_string());
        let args = [
            Arg::Text(&token),
            Arg::Number(micros(claim.lease)),
            Arg::Number(u64::from(claim.slots.max(1))),
            Arg::Text(claim.node_id.as_str()),
            Arg::Number(claim.at_least.get()),
            Arg::Text(slot.as_deref().unwrap_or_default()),
        ];
        let plain = slot.is_none() && claim.at_least == Revision::default();
        let args = if plain { &args[..4] } else { &args };
        let mark = inner.keys.mark(&claim.name, &token);
        let answer = inner.commands.run(&CLAIM, &[&key, &mark], args).await;
        answer
            .and_then(|answer| Ok(reply::claim(&answer)?))
            .map_err(|failure| inner.error(&key, failure))
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        if batch.is_empty() {
            return Vec::new();
        }
        self.inner.extend(batch).await
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        self.inner.release(release).await
    }

    /// Listens on one connection for all names, made with the first watch and kept until the store is closed or
    /// dropped. A name's subscription ends with its last watch.
    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        let inner = &*self.inner;
        let key = inner.keys.record(name);
        let watch = inner
            .wakeups
            .watch(inner.keys.channel(name), &key, since, hints);
        match tokio::time::timeout(inner.timeout, watch).await {
            Ok(Ok(watch)) => Ok(Watching::new(watch)),
            Ok(Err(failure)) => Err(inner.error(&key, failure)),
            Err(_) => Err(inner.error(&key, Failure::NoAnswer(inner.timeout))),
        }
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        let inner = &*self.inner;
        let key = inner.keys.record(name);
        let answer = inner.commands.run(&INSPECT, &[&key], &[]).await;
        answer
            .and_then(|answer| Ok(reply::inspect(&answer)?))
            .map_err(|failure| inner.error(&key, failure))
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        let inner = &*self.inner;
        let key = inner.keys.record(name);
        let channel = inner.keys.channel(name);
        let answer = inner
            .commands
            .run(&EVICT, &[&key], &[Arg::Text(&channel)])
            .await;
        answer
            .and_then(|answer| Ok(reply::evict(&answer)?))
            .map_err(|failure| inner.error(&key, failure))
    }

    fn command_timeout(&self) -> Duration {
        self.inner.timeout
    }

    /// Closes the connections that this store opened. A client that was passed in goes on.
    async fn close(&self) {
        let inner = &*self.inner;
        tokio::join!(inner.wakeups.close(), inner.commands.close());
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &self.inner.address)
            .field("commands", &self.inner.commands)
            .field("wakeups", &self.inner.wakeups)
            .finish_non_exhaustive()
    }
}

/// Durations beyond what a lease can be are as good as that.
fn micros(duration: Duration) -> u64 {
    let micros = duration.min(LeaseOptions::MAX_LEASE).as_micros();
    u64::try_from(micros).unwrap_or(u64::MAX)
}
