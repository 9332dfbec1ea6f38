//! What the cases are told with: a stage of its own for each, candidates on it, and waiting for a condition.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::error::LossReason;
use crate::hints::{Hints, News, hints};
use crate::name::LockName;
use crate::node::NodeId;
use crate::state::Holder;
use crate::store::{
    Claim, ClaimReply, ExtendReply, Extension, LeaseStore, Release, ReleaseReply, Revision,
    StoreError, Watching,
};
use crate::token::{FencingToken, Token};

/// A lease that is in force for as long as a case runs.
pub(super) const LONG: Duration = Duration::from_secs(600);
/// A lease that is in force while the next few requests are sent, on a slow machine too, and is waited for to end.
pub(super) const FEW_STEPS: Duration = Duration::from_secs(3);
/// A lease whose end is waited for, and which nothing relies on.
pub(super) const SHORT: Duration = Duration::from_millis(200);
/// What must come true, comes true within this.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// For this long it is watched that something does not happen.
pub(super) const QUIET: Duration = Duration::from_millis(150);
/// Between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(5);

/// A store and a name that no other case uses, so that cases may share a server.
pub(super) struct Stage<'s, S> {
    pub(super) store: &'s S,
    pub(super) name: LockName,
}

impl<'s, S: LeaseStore> Stage<'s, S> {
    pub(super) fn new(store: &'s S) -> Self {
        Self::named(store, &unique())
    }

    pub(super) fn named(store: &'s S, name: &str) -> Self {
        let name = LockName::new(name).unwrap_or_else(|error| panic!("a legal name: {error}"));
        Self { store, name }
    }

    /// Somebody who stands for election here, with a fresh token.
    pub(super) fn candidate(&self, node_id: &str) -> Candidate<'s, S> {
        Candidate {
            store: self.store,
            name: self.name.clone(),
            node_id: NodeId::new(node_id),
            token: Token::random(),
            slots: 1,
        }
    }

    /// The same, of a name with that many slots.
    pub(super) fn candidate_of(&self, slots: u32, node_id: &str) -> Candidate<'s, S> {
        Candidate {
            slots,
            ..self.candidate(node_id)
        }
    }

    /// Who holds which slot, in the order of slots.
    pub(super) async fn holders(&self) -> Vec<Holder> {
        let mut holders = answered("inspect", self.store.inspect(&self.name).await);
        holders.sort_by_key(Holder::slot);
        holders
    }

    /// The holder of `slot`.
    pub(super) async fn holder(&self, slot: u32, promise: &str) -> Holder {
        let holders = self.holders().await;
        let found = holders.iter().find(|holder| holder.slot() == slot).cloned();
        found.unwrap_or_else(|| panic!("{promise}: nobody holds slot {slot} of {holders:?}"))
    }

    /// Waits until nobody holds a slot.
    pub(super) async fn empties(&self, promise: &str) {
        until(promise, async || {
            self.holders().await.is_empty().then_some(())
        })
        .await;
    }

    pub(super) async fn watch(&self, since: Revision) -> Watch {
        let (sender, hints) = hints();
        let watching = self.store.watch(&self.name, since, sender).await;
        Watch {
            watching: answered("watch", watching),
            hints,
        }
    }

    /// Observes the name, unless the store does not tell observers of grants. What is told at the beginning, that
    /// something may have been missed, is of no interest: whoever observes looks first.
    pub(super) async fn observe(&self) -> Option<Watch> {
        let (sender, hints) = hints();
        let watching = self.store.observe(&self.name, sender).await;
        let watching = answered("observe", watching);
        if !watching.tells_grants() {
            return None;
        }
        let mut watch = Watch { watching, hints };
        watch.settles().await;
        Some(watch)
    }

    pub(super) async fn evict(&self) -> u32 {
        answered("evict", self.store.evict(&self.name).await)
    }
}

/// A name that was never used before.
pub(super) fn unique() -> String {
    format!("conformance:{}", Uuid::new_v4().simple())
}

/// Somebody who stands for election.
pub(super) struct Candidate<'s, S> {
    store: &'s S,
    pub(super) name: LockName,
    pub(super) node_id: NodeId,
    pub(super) token: Token,
    slots: u32,
}

/// What a candidate was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) slot: u32,
    pub(super) fence: FencingToken,
}

/// What a candidate was told instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Denial {
    pub(super) retry_after: Duration,
    pub(super) holder: Option<NodeId>,
    pub(super) revision: Revision,
}

impl<S: LeaseStore> Candidate<'_, S> {
    pub(super) fn claim_of(&self, lease: Duration) -> Claim {
        let claim = Claim::new(self.name.clone(), self.node_id.clone(), self.token, lease);
        claim.of_slots(self.slots)
    }

    pub(super) async fn claim(&self, lease: Duration) -> ClaimReply {
        self.ask(self.claim_of(lease)).await
    }

    /// Of a grant that was not answered before its lease was over, a store may say that it failed: it is asked again.
    async fn ask(&self, claim: Claim) -> ClaimReply {
        let begun = Instant::now();
        loop {
            let asked = Instant::now();
            match self.store.claim(&claim).await {
                Err(error)
                    if error.kind().is_transient()
                        && asked.elapsed() >= less_drift(claim.lease)
                        && begun.elapsed() < PATIENCE => {}
                reply => return answered("claim", reply),
            }
        }
    }

    pub(super) async fn elected(&self, lease: Duration, promise: &str) -> Grant {
        self.elected_by(self.claim_of(lease), promise).await
    }

    pub(super) async fn elected_by(&self, claim: Claim, promise: &str) -> Grant {
        match self.ask(claim).await {
            ClaimReply::Granted { slot, fence } => Grant { slot, fence },
            reply => panic!("{promise}: the claim was answered {reply:?}"),
        }
    }

    /// Asks until it is elected: for a slot that is free after some time.
    pub(super) async fn elected_in_time(&self, lease: Duration, promise: &str) -> Grant {
        until(promise, async || match self.claim(lease).await {
            ClaimReply::Granted { slot, fence } => Some(Grant { slot, fence }),
            ClaimReply::Taken { .. } => None,
            reply => panic!("{promise}: the claim was answered {reply:?}"),
        })
        .await
    }

    pub(super) async fn denied(&self, promise: &str) -> Denial {
        self.denied_by(self.claim_of(LONG), promise).await
    }

    pub(super) async fn denied_by(&self, claim: Claim, promise: &str) -> Denial {
        match self.ask(claim).await {
            ClaimReply::Taken {
                retry_after,
                holder,
                revision,
            } => Denial {
                retry_after,
                holder,
                revision,
            },
            reply => panic!("{promise}: the claim was answered {reply:?}"),
        }
    }

    pub(super) async fn ended(&self, promise: &str) {
        let reply = self.claim(LONG).await;
        assert_eq!(reply, ClaimReply::Ended, "{promise}");
    }

    pub(super) fn extension(&self, slot: u32, lease: Duration) -> Extension {
        Extension::new(self.name.clone(), self.token, slot, lease)
    }

    pub(super) async fn extend(&self, slot: u32, lease: Duration) -> ExtendReply {
        let batch = [self.extension(slot, lease)];
        match extend(self.store, &batch).await[..] {
            [reply] => reply,
            ref replies => panic!("a batch of one is answered once, not {replies:?}"),
        }
    }

    pub(super) fn release_of(&self, slot: u32) -> Release {
        Release::new(self.name.clone(), self.token, slot)
    }

    /// The end of a claim whose answer was not seen.
    pub(super) fn abandonment(&self, mark: Duration) -> Release {
        Release::abandoned(self.name.clone(), self.token, mark)
    }

    pub(super) async fn release(&self, release: Release) -> ReleaseReply {
        answered("release", self.store.release(&release).await)
    }

    /// Releases, which must succeed, and says where the name's history stands after it.
    pub(super) async fn released(&self, release: Release, promise: &str) -> Revision {
        match self.release(release).await {
            ReleaseReply::Released { revision, .. } => revision,
            reply => panic!("{promise}: the release was answered {reply:?}"),
        }
    }

    /// Releases, which must be refused, and says why it was.
    pub(super) async fn not_released(&self, release: Release, promise: &str) -> LossReason {
        match self.release(release).await {
            ReleaseReply::NotHeld(reason) => reason,
            reply => panic!("{promise}: the release was answered {reply:?}"),
        }
    }

    /// Extends, which must be refused, and says why it was.
    pub(super) async fn not_extended(&self, slot: u32, promise: &str) -> LossReason {
        match self.extend(slot, LONG).await {
            ExtendReply::NotHeld(reason) => reason,
            reply @ ExtendReply::Extended => {
                panic!("{promise}: the extension was answered {reply:?}")
            }
        }
    }
}

/// A watch, and what it was told.
pub(super) struct Watch {
    pub(super) watching: Watching,
    pub(super) hints: Hints,
}

impl Watch {
    /// Waits for news that a waiter acts on, whose last news was `known`. Hints may be told twice, and may be missed
    /// if that is told.
    pub(super) async fn told_after(&mut self, known: Revision, promise: &str) -> News {
        let told = async {
            loop {
                match self.hints.news().await {
                    News::Released { revision, .. } if revision <= known => {}
                    news => return news,
                }
            }
        };
        tokio::time::timeout(PATIENCE, told)
            .await
            .unwrap_or_else(|_| panic!("{promise}: nothing was told within {PATIENCE:?}"))
    }

    /// Waits for news of any kind, and takes what else there may be of it.
    pub(super) async fn told(&mut self, promise: &str) {
        self.told_after(Revision::default(), promise).await;
        self.settles().await;
    }

    /// Takes what was told, until nothing more comes.
    pub(super) async fn settles(&mut self) {
        while tokio::time::timeout(QUIET, self.hints.told()).await.is_ok() {}
    }

    pub(super) async fn stays_quiet(&mut self, promise: &str) {
        if let Ok(news) = tokio::time::timeout(QUIET, self.hints.news()).await {
            panic!("{promise}: {news:?} was told");
        }
    }
}

pub(super) async fn extend(store: &impl LeaseStore, batch: &[Extension]) -> Vec<ExtendReply> {
    let replies = store.extend(batch).await;
    replies
        .into_iter()
        .map(|reply| answered("extend", reply))
        .collect()
}

/// The slot has no holder any more, and no successor: stores may not know whether its time was over or somebody
/// deleted it, but nobody has taken it.
pub(super) fn assert_gone(reason: LossReason, promise: &str) {
    assert!(
        matches!(reason, LossReason::Expired | LossReason::Deleted),
        "{promise}: it is gone because it is {reason:?}"
    );
}

/// Asserts that a lease of `lease` is in force and was not shortened or begun anew: its end is as far as it was, but
/// for the time that a case takes.
pub(super) fn assert_lives(holder: &Holder, lease: Duration, promise: &str) {
    let remaining = holder.remaining();
    assert!(
        remaining > lease / 2 && remaining <= lease + GRANULARITY,
        "{promise}: {remaining:?} of {lease:?} remain"
    );
}

/// Two clocks, the store's and this one, may differ that much in rate and in resolution: what a candidate's own
/// reckoning allows for.
pub(super) fn less_drift(duration: Duration) -> Duration {
    duration.saturating_sub(duration / 100 + GRANULARITY)
}

pub(super) const GRANULARITY: Duration = Duration::from_millis(2);

/// Asserts that what was asked for at `asked` and is over now has lasted for `duration` at least.
pub(super) fn assert_lasted(asked: Instant, duration: Duration, promise: &str) {
    let lasted = asked.elapsed();
    assert!(
        lasted >= less_drift(duration),
        "{promise}: over after {lasted:?} of {duration:?}"
    );
}

fn answered<T>(step: &str, reply: Result<T, StoreError>) -> T {
    reply.unwrap_or_else(|error| panic!("a store that is up answers each {step}: {error}"))
}

/// Tries again and again until there is a value.
pub(super) async fn until<T>(promise: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = attempt().await {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "{promise}: not within {PATIENCE:?}"
        );
        sleep(PAUSE).await;
    }
}
