//! [`RedisStore`]: the atomic steps on one Redis or Valkey server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::join_all;
use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, HintSender, LeaseStore, REACH, Release,
    ReleaseReply, Revision, StoreError, Watching,
};
use leader_core::{BackendKind, Holder, LeaseOptions, LockName};
use tokio::runtime::Handle;

use crate::acks::{Acks, Answer};
use crate::client::{Call, Link, Words, by_slot};
use crate::clock::Clock;
use crate::connect::Home;
use crate::fault::Failure;
use crate::fenced::FencedKey;
use crate::keys::Keys;
use crate::observe::Observation;
use crate::reply::{self, Released, Reply};
use crate::script::{CLAIM, EVICT, EXTEND, INSPECT, RELEASE, Script};
use crate::watch::Wakeups;

/// A [`LeaseStore`] on Redis 6.2 or later or Valkey: one server, the primary behind sentinels, or a cluster. A clone is
/// the same store.
///
/// Made by [`RedisElectorBuilder::connect_store`](crate::RedisElectorBuilder::connect_store), for those who put an
/// engine of their own on it, or test it; everybody else wants [`RedisElector`](crate::RedisElector).
///
/// # What it keeps on the server
///
/// One hash for each name, `leader:{invoice-close}:lease`, and two channels, `leader:{invoice-close}:released` for those
/// who wait and `leader:{invoice-close}:changed` for those who observe. The name stands in braces, so that all live in one slot of a cluster. The hash outlives its last lease by half a day
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
/// each lease. The engine's batches have 256 at most; who calls it directly chooses how many. On a cluster it is one script
/// for each slot, all at once.
#[derive(Clone)]
pub struct RedisStore {
    inner: Arc<Inner>,
}

/// Dropped in this order: connections before their runtime.
pub(crate) struct Inner {
    pub(crate) commands: Link,
    /// Where leases count only once replicas have acknowledged them.
    acks: Option<Acks>,
    pub(crate) wakeups: Wakeups,
    pub(crate) keys: Keys,
    address: String,
    timeout: Duration,
    clock: Clock,
    /// Kept for as long as the connections.
    pub(crate) home: Home,
    /// Whether it was said that releases cannot be told.
    cannot_tell: AtomicBool,
    /// Whether it was said that releases cannot be heard of.
    cannot_hear: AtomicBool,
}

impl RedisStore {
    pub(crate) fn new(
        commands: Link,
        acks: Option<Acks>,
        wakeups: Wakeups,
        keys: Keys,
        address: String,
        timeout: Duration,
        home: Home,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                commands,
                acks,
                wakeups,
                keys,
                address,
                timeout,
                clock: Clock::default(),
                home,
                cannot_tell: AtomicBool::new(false),
                cannot_hear: AtomicBool::new(false),
            }),
        }
    }

    /// A value at `key` that is written with a fencing token only, on this store's connection. Nothing is sent for it
    /// yet.
    #[must_use]
    pub fn fenced_key(&self, key: impl Into<String>) -> FencedKey {
        FencedKey::new(self.clone(), key.into())
    }

    /// Runs a script on a key of the application's.
    pub(crate) async fn run_for_value(
        &self,
        script: &'static Script,
        key: &str,
        call: &Call,
    ) -> Result<Reply, StoreError> {
        let answer = self.inner.commands.run(script, call).await;
        answer.map_err(|failure| self.value_error(key, failure))
    }

    /// What went wrong with a key of the application's.
    pub(crate) fn value_error(&self, key: &str, failure: impl Into<Failure>) -> StoreError {
        failure.into().at_value(&self.inner.address, key)
    }

    /// Where the server is, for people.
    pub(crate) fn address(&self) -> &str {
        &self.inner.address
    }

    /// The runtime on which the connections live.
    pub(crate) fn runtime(&self) -> &Handle {
        self.inner.home.lodging.handle()
    }
}

impl Inner {
    /// How long a step may take.
    fn step(&self) -> Duration {
        let acks = self.acks.as_ref();
        self.timeout + acks.map_or(Duration::ZERO, |acks| acks.need().patience() * 2)
    }

    /// The failure in the engine's words.
    pub(crate) fn error(&self, key: &str, failure: impl Into<Failure>) -> StoreError {
        failure.into().at(&self.address, Some(key))
    }

    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        let call = self.claiming(claim);
        let answer = self.commands.run(&CLAIM, &call).await;
        let (reply, time) = answer
            .map(reply::split_time)
            .and_then(|(answer, time)| Ok((reply::claim(&answer, claim.slots.max(1))?, time)))
            .map_err(|failure| self.error(&self.keys.record(&claim.name), failure))?;
        if let ClaimReply::Granted { fence, .. } = &reply {
            self.clock.note(time.unwrap_or(fence.get()));
        }
        Ok(reply)
    }

    fn claiming(&self, claim: &Claim) -> Call {
        let mut words = Words::on(1);
        words.push_parts(self.keys.record_parts(&claim.name));
        words.push_token(claim.token);
        words.push_number(micros(claim.lease));
        words.push_number(claim.slots.max(1));
        words.push(claim.node_id.as_str());
        let plain = claim.slot.is_none()
            && claim.at_least == Revision::default()
            && claim.proposed == Revision::default()
            && !self.commands.has_slots();
        if !plain {
            words.push_number(claim.at_least.get());
            words.push_slot(claim.slot);
            words.push(self.tell());
            words.push_number(claim.proposed.get());
            words.push_number(micros(REACH));
        }
        words.into_call()
    }

    /// A grant counts once replicas have acknowledged it; until then the slot is only kept from others.
    async fn confirm(&self, claim: &Claim, slot: u32, limit: Duration) -> Result<(), StoreError> {
        let (name, token) = (&claim.name, claim.token);
        let extension = Extension::new(name.clone(), token, slot, claim.lease);
        let failed = match self.extend(&[extension], limit).await.pop() {
            Some(Ok(ExtendReply::Extended)) => return Ok(()),
            Some(Ok(ExtendReply::NotHeld(reason))) => {
                self.error(&self.keys.record(name), Failure::Gone(reason))
            }
            Some(Err(error)) => error,
            _ => {
                let words = "an extension was left unanswered".to_owned();
                self.error(&self.keys.record(name), Failure::Malformed(words))
            }
        };
        // Others may go on trying. The claim itself has been answered, so that it cannot arrive after this.
        match self.release(&Release::new(name.clone(), token, slot)).await {
            Ok(_) => Err(failed.not_run()),
            Err(_) => Err(failed),
        }
    }

    /// A script call for all, or on a cluster one for each slot, all at once.
    async fn extend(
        &self,
        batch: &[Extension],
        limit: Duration,
    ) -> Vec<Result<ExtendReply, StoreError>> {
        if !self.commands.has_slots() {
            return self.extend_group(batch.iter(), limit).await;
        }
        let groups = by_slot(batch.iter().map(|e| self.keys.record(&e.name)));
        let each = groups.iter().map(async |group| {
            let extensions = group.iter().map(|at| &batch[*at]);
            (group, self.extend_group(extensions, limit).boxed().await)
        });
        let mut answers: Vec<Option<Result<ExtendReply, StoreError>>> = vec![None; batch.len()];
        for (group, replies) in join_all(each).await {
            for (at, reply) in group.iter().zip(replies) {
                answers[*at] = Some(reply);
            }
        }
        // Each is in one group.
        answers.into_iter().flatten().collect()
    }

    async fn extend_group(
        &self,
        group: impl ExactSizeIterator<Item = &Extension> + Clone,
        limit: Duration,
    ) -> Vec<Result<ExtendReply, StoreError>> {
        let call = self.extending(group.clone());
        let (answer, acknowledged) = match &self.acks {
            None => (self.commands.run(&EXTEND, &call).await, Ok(())),
            Some(acks) => match tokio::time::timeout(limit, acks.extend(call)).await {
                Ok(Answer {
                    reply,
                    acknowledged,
                }) => (reply, acknowledged),
                Err(_) => (Err(Failure::NoAnswer(limit)), Ok(())),
            },
        };
        let answers = answer.and_then(|answer| Ok(reply::extend(&answer, group.len())?));
        let key = |extension: &Extension| self.keys.record(&extension.name);
        let answers = match answers {
            Ok(answers) => answers,
            Err(failure) => {
                // All are refused alike.
                let denied = failure.kind() == BackendKind::Denied;
                let key = group.clone().next().filter(|_| denied).map(key);
                return vec![Err(failure.at(&self.address, key.as_deref())); group.len()];
            }
        };
        let each = answers.into_iter().zip(group);
        each.map(|(answer, extension)| match answer {
            Ok(ExtendReply::Extended) => match &acknowledged {
                Ok(()) => Ok(ExtendReply::Extended),
                Err(failure) => Err(failure.at(&self.address, None)),
            },
            Ok(reply) => Ok(reply),
            Err(oddity) => {
                let failure = Failure::from(oddity).within(&EXTEND);
                Err(self.error(&key(extension), failure))
            }
        })
        .collect()
    }

    fn extending<'a>(&self, group: impl ExactSizeIterator<Item = &'a Extension> + Clone) -> Call {
        let mut words = Words::on(group.len());
        for extension in group.clone() {
            words.push_parts(self.keys.record_parts(&extension.name));
        }
        for extension in group {
            words.push_token(extension.token);
            words.push_pair(extension.slot, micros(extension.lease));
        }
        words.into_call()
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        let call = self.releasing(release);
        let answer = self.commands.run(&RELEASE, &call).await;
        let key = || self.keys.record(&release.name);
        let channel = || self.keys.channel(&release.name);
        let (released, time) = answer
            .map(reply::split_time)
            .and_then(|(answer, time)| Ok((reply::release(&answer)?, time)))
            .map_err(|failure| self.error(&key(), failure))?;
        let Released { reply, untold } = released;
        if let ReleaseReply::Released { revision, .. } = &reply
            && untold.is_none()
        {
            self.clock.note(time.unwrap_or(revision.get()));
        }
        if let Some(words) = untold
            && !self.cannot_tell.swap(true, Ordering::Relaxed)
        {
            let error = self.error(&key(), Failure::Refused(words).within(&RELEASE));
            tracing::warn!(channel = %channel(), %error, "releases cannot be told: waiters are not woken before leases end");
        }
        Ok(match reply {
            ReleaseReply::Released { revision, told } => ReleaseReply::Released {
                revision,
                told: if told == 0 {
                    0
                } else {
                    self.told(&channel(), told)
                },
            },
            reply => reply,
        })
    }

    fn releasing(&self, release: &Release) -> Call {
        let mut words = Words::on(1);
        words.push_parts(self.keys.record_parts(&release.name));
        words.push_token(release.token);
        words.push_slot(release.slot);
        let plain = release.keep.is_zero() && release.mark.is_none() && !self.commands.has_slots();
        if !plain {
            words.push_number(micros(release.keep));
            words.push_number(release.mark.map_or(0, |mark| micros(mark).max(1)));
            words.push(self.tell());
        }
        words.into_call()
    }

    /// The command by which scripts tell of releases.
    fn tell(&self) -> &'static str {
        if self.commands.has_slots() {
            "SPUBLISH"
        } else {
            "PUBLISH"
        }
    }

    /// How many watchers were told, when the server told `connections`: this process listens on one connection,
    /// however many watch here.
    fn told(&self, channel: &str, connections: u32) -> u32 {
        match self.wakeups.count(channel) {
            here if here > 0 => connections - 1 + here,
            _ => connections,
        }
    }
}

impl LeaseStore for RedisStore {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        let (inner, asked) = (&*self.inner, Instant::now());
        let reply = inner.claim(claim).await?;
        if let (ClaimReply::Granted { slot, .. }, Some(_)) = (&reply, &inner.acks) {
            let rest = within(inner.step()).saturating_sub(asked.elapsed());
            // Boxed: whoever awaits an attempt has all of this in the type of his own future.
            inner.confirm(claim, *slot, rest).boxed().await?;
        }
        Ok(reply)
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        if batch.is_empty() {
            return Vec::new();
        }
        let limit = within(self.inner.step());
        self.inner.extend(batch, limit).await
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
            .watch(inner.keys.channel(name), &key, Some(since), hints);
        match tokio::time::timeout(inner.timeout, watch).await {
            Ok(Ok(watch)) => Ok(Watching::new(watch)),
            Ok(Err(failure)) => {
                let denied = failure.kind() == BackendKind::Denied;
                let error = inner.error(&key, failure);
                // Waiters go on without, so nobody else would say it.
                if denied && !inner.cannot_hear.swap(true, Ordering::Relaxed) {
                    let channel = inner.keys.channel(name);
                    tracing::warn!(%channel, %error, "releases cannot be heard of: waiters are not woken before leases end");
                }
                Err(error)
            }
            Err(_) => Err(inner.error(&key, Failure::NoAnswer(inner.timeout))),
        }
    }

    /// On the same connection, by a channel of its own. For as long as a name is observed, and up to half a minute more,
    /// its record says so.
    async fn observe(&self, name: &LockName, hints: HintSender) -> Result<Watching, StoreError> {
        let observe = Observation::begin(&self.inner, name, hints);
        let observed = tokio::time::timeout(self.inner.timeout, observe).await;
        let observation = observed.unwrap_or_else(|_| {
            let failure = Failure::NoAnswer(self.inner.timeout);
            Err(self.inner.error(&self.inner.keys.record(name), failure))
        })?;
        Ok(Watching::new(observation).of_grants())
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        let inner = &*self.inner;
        let key = inner.keys.record(name);
        let mut words = Words::on(1);
        words.push(&key);
        let answer = inner.commands.run(&INSPECT, &words.into_call()).await;
        answer
            .and_then(|answer| Ok(reply::inspect(&answer)?))
            .map_err(|failure| inner.error(&key, failure))
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        let inner = &*self.inner;
        let key = inner.keys.record(name);
        let mut words = Words::on(1);
        words.push(&key);
        words.push(inner.keys.channel(name));
        words.push(inner.tell());
        let answer = inner.commands.run(&EVICT, &words.into_call()).await;
        answer
            .and_then(|answer| Ok(reply::evict(&answer)?))
            .map_err(|failure| inner.error(&key, failure))
    }

    /// With acknowledgement by replicas, twice the time for that is on top: a lease may have to wait for others to be
    /// acknowledged before it can be.
    fn command_timeout(&self) -> Duration {
        self.inner.step()
    }

    fn time_by_now(&self) -> Option<Duration> {
        self.inner.clock.by_now()
    }

    /// Closes the connections that this store opened. A client that was passed in goes on.
    async fn close(&self) {
        let inner = &*self.inner;
        let acks = async {
            if let Some(acks) = &inner.acks {
                acks.close().await;
            }
        };
        tokio::join!(inner.wakeups.close(), inner.commands.close(), acks);
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

/// What of `timeout` the connection itself may use: a little less, so that its own error, which knows the server,
/// comes before the engine's patience ends.
pub(crate) fn within(timeout: Duration) -> Duration {
    timeout.saturating_sub((timeout / 20).min(Duration::from_millis(20)))
}

/// Durations beyond what a lease can be are as good as that.
pub(crate) fn micros(duration: Duration) -> u64 {
    let micros = duration.min(LeaseOptions::MAX_LEASE).as_micros();
    u64::try_from(micros).unwrap_or(u64::MAX)
}
