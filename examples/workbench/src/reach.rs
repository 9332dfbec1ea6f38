//! [`Reach`]: a candidate's way to one node of the store, which can be cut, and whose far end can be stopped.

use std::sync::Arc;
use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, Hint, HintSender, LeaseStore, Release, ReleaseReply,
    Revision, StoreError, Watching, hints,
};
use leader_core::{BackendKind, Holder, LeaderError, LockName};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::line::Line;
use crate::site::Node;

/// A candidate's end of its ways to the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// What is asked arrives, and what is answered comes back.
    #[default]
    Up,
    /// What is asked gets lost, and nobody says so: a caller waits until its own time limit.
    Cut,
}

/// What leads to a node.
#[derive(Clone, Debug)]
pub(crate) enum Wire {
    /// The node is in this process.
    Memory,
    Redis(Line),
}

impl Wire {
    /// Whether it leads there, as soon as that is known.
    pub(crate) async fn is_open(&self) -> Result<(), LeaderError> {
        match self {
            Self::Memory => Ok(()),
            Self::Redis(line) => line.opened().await.map(drop),
        }
    }
}

/// A [`LeaseStore`] that is another one while the way to it is open. It adds no policy: steps pass, hang or are refused.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    node: Arc<Node>,
    wire: Wire,
    link: watch::Receiver<Link>,
}

/// One step of the store at the far end, whatever it is, if the way is open: the same call on each.
macro_rules! far_end {
    ($this:expr, |$store:ident| $call:expr) => {
        $this.pass(async {
            match &$this.wire {
                Wire::Memory => {
                    let $store = &$this.node.memory();
                    $call
                }
                Wire::Redis(line) => {
                    let $store = &line.store().await?;
                    $call
                }
            }
        })
    };
}

impl Reach {
    pub(crate) fn new(node: Arc<Node>, wire: Wire, link: watch::Receiver<Link>) -> Self {
        Self { node, wire, link }
    }

    fn is_cut(&self) -> bool {
        *self.link.borrow() == Link::Cut
    }

    fn is_stopped(&self) -> bool {
        self.node.power.borrow().stopped
    }

    /// Lets one step pass, if the way is open; its answer comes back if it is still open then.
    async fn pass<T>(
        &self,
        step: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if self.is_cut() {
            lost_on_the_way().await;
        }
        if self.is_stopped() {
            return Err(
                StoreError::new(BackendKind::Unreachable, "the store is stopped").not_run(),
            );
        }
        let answer = step.await;
        if self.is_cut() {
            lost_on_the_way().await;
        }
        answer
    }
}

/// The engine gives a step up after the command timeout, and drops it.
async fn lost_on_the_way() {
    std::future::pending::<()>().await;
}

impl LeaseStore for Reach {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        far_end!(self, |store| store.claim(claim).await).await
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        let extended = far_end!(self, |store| Ok(store.extend(batch).await));
        extended
            .await
            .unwrap_or_else(|error| batch.iter().map(|_| Err(error.clone())).collect())
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        far_end!(self, |store| store.release(release).await).await
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        self.pass(async {
            match &self.wire {
                Wire::Memory => Ok(self.watch_memory(name, since, hints)),
                Wire::Redis(line) => line.store().await?.watch(name, since, hints).await,
            }
        })
        .await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        far_end!(self, |store| store.inspect(name).await).await
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        far_end!(self, |store| store.evict(name).await).await
    }

    fn command_timeout(&self) -> Duration {
        match &self.wire {
            Wire::Memory => self.node.memory().command_timeout(),
            Wire::Redis(line) => line.command_timeout(),
        }
    }

    fn release_now(&self, release: &Release, now: Instant) -> Option<ReleaseReply> {
        if self.is_cut() || self.is_stopped() {
            return None;
        }
        match &self.wire {
            Wire::Memory => self.node.memory().release_now(release, now),
            Wire::Redis(line) => line.now()?.release_now(release, now),
        }
    }

    async fn close(&self) {
        match &self.wire {
            Wire::Memory => self.node.memory().close().await,
            Wire::Redis(line) => line.close().await,
        }
    }
}

impl Reach {
    /// Watches a node in memory as one behind a connection is watched: what is told while the way is cut gets lost, and
    /// afterwards the watch is made anew.
    fn watch_memory(&self, name: &LockName, since: Revision, told: HintSender) -> Watching {
        let (this, name) = (self.clone(), name.clone());
        let relay = tokio::spawn(async move {
            let mut power = this.node.power.subscribe();
            let mut link = this.link.clone();
            loop {
                let (near, mut far) = hints();
                let Ok(_watching) = this.node.memory().watch(&name, since, near).await else {
                    return;
                };
                loop {
                    let changed = tokio::select! {
                        hint = far.next() => {
                            if !this.is_cut() && !this.is_stopped() {
                                told.push(hint);
                            }
                            continue;
                        }
                        changed = power.changed() => changed,
                        changed = link.changed() => changed,
                    };
                    if changed.is_err() {
                        return;
                    }
                    if !this.is_cut() && !this.is_stopped() {
                        break;
                    }
                }
                told.push(Hint::Missed);
            }
        });
        Watching::new(EndOnDrop(relay.abort_handle()))
    }
}

/// A task that ends with what holds this.
#[derive(Debug)]
pub(crate) struct EndOnDrop(pub(crate) tokio::task::AbortHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
