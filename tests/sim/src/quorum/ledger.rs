//! What was granted, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, HintSender, LeaseStore, Release, ReleaseReply,
    Revision, StoreError, Watching,
};
use leader_core::{Holder, LeaseHandle, LockName, Quorum, Token};
use tokio::time::Instant;

use super::network::{NodeStore, World};
use crate::world::Violation;

/// The grants of a run, and the first thing that did not hold.
#[derive(Default)]
pub(super) struct Ledger {
    grants: Vec<Grant>,
    pub(super) held: Vec<Held>,
    pub(super) granted: u64,
    /// Grants and extensions during which a node lost what it had said yes to, by their fencing tokens.
    doubtful: BTreeSet<u64>,
    last_loss: Option<Instant>,
    /// Since when each token was asked for.
    asked: BTreeMap<[u8; 16], Instant>,
    /// What stood on the nodes for leases whose holders were told that they have lost them.
    lost: BTreeSet<[u8; 16]>,
    pub(super) violation: Option<Violation>,
}

/// A claim that was granted: between these two moments.
struct Grant {
    token: Token,
    /// What stands for the token on the nodes.
    on_nodes: Option<Token>,
    granted: Instant,
    fence: u64,
}

/// A lease that a candidate has.
pub(super) struct Held {
    pub(super) candidate: usize,
    pub(super) lease: LeaseHandle,
    /// What stands for it on the nodes: others of its candidate's claims may be under way at the same time.
    on_nodes: Option<Token>,
    /// So many nodes have lost their memory of it that no majority has it any more.
    pub(super) forgotten: bool,
}

impl World {
    pub(super) fn fail(&self, invariant: &'static str, what: String) {
        self.say(|| format!("{invariant}: {what}"));
        let violation = &mut self.lock().ledger.violation;
        violation.get_or_insert(Violation { invariant, what });
        self.bell.notify_one();
    }

    /// A lease is held from now on.
    pub(super) fn hold(&self, candidate: usize, lease: LeaseHandle) {
        let fence = lease.fence().get();
        let mut state = self.lock();
        let grant = state
            .ledger
            .grants
            .iter()
            .rfind(|grant| grant.fence == fence);
        let on_nodes = grant.and_then(|grant| grant.on_nodes);
        state.ledger.held.push(Held {
            candidate,
            lease,
            on_nodes,
            forgotten: false,
        });
        drop(state);
        self.bell.notify_one();
        self.look();
    }

    /// A node has said yes since `asked`, and may have lost it since.
    fn doubt(&self, asked: Instant, fence: u64) {
        let ledger = &mut self.lock().ledger;
        if ledger.last_loss.is_some_and(|loss| loss >= asked) {
            ledger.doubtful.insert(fence);
        }
    }

    /// A claim is sent to a node: not for a lease that is lost.
    pub(super) fn note_claim(&self, node: usize, token: Token) {
        if self.lock().ledger.lost.contains(token.as_bytes()) {
            let what = format!("a lease that was lost is written again on node {node}");
            self.fail("untouched", what);
        }
    }

    fn note_asked(&self, token: Token, asked: Instant) {
        let known = &mut self.lock().ledger.asked;
        known.entry(*token.as_bytes()).or_insert(asked);
    }

    pub(super) fn is_broken(&self) -> bool {
        self.lock().ledger.violation.is_some()
    }

    /// Fencing tokens grow: with every grant that was claimed after another had been granted.
    fn note_grant(&self, (token, on_nodes): (Token, Option<Token>), asked: Instant, fence: u64) {
        let state = &mut *self.lock();
        let earlier = state.ledger.grants.iter();
        // Asked again while it is in force, beside others that were granted a slot since: when it was granted is known to
        // the nodes alone, after it was first asked for.
        let again = |grant: &Grant| grant.token == token && grant.fence == fence;
        if self.plan.slots > 1 && earlier.clone().any(again) {
            return;
        }
        let first = state.ledger.asked.get(token.as_bytes()).copied();
        let asked = first.filter(|_| self.plan.slots > 1).unwrap_or(asked);
        let wrong = earlier
            .filter(|grant| grant.token != token)
            .find(|grant| grant.fence == fence || (grant.granted < asked && grant.fence > fence));
        let wrong = wrong.map(|grant| grant.fence);
        let granted = Instant::now();
        state.ledger.granted += 1;
        state.ledger.grants.push(Grant {
            token,
            on_nodes,
            granted,
            fence,
        });
        if let Some(other) = wrong {
            let what = format!("{fence} was granted after {other}");
            state.ledger.violation.get_or_insert(Violation {
                invariant: "fencing",
                what,
            });
        }
    }

    /// On how many nodes a candidate has `slot` until `ends`.
    fn holds(nodes: &mut [crate::model::Model], held: &Held, ends: Instant) -> usize {
        let now = Instant::now();
        let (name, slot) = (held.lease.name(), held.lease.slot());
        let has = |model: &mut crate::model::Model| {
            model.slots(name, now).get(&slot).is_some_and(|entry| {
                entry.token.is_some() && entry.token == held.on_nodes && entry.ends >= ends
            })
        };
        nodes.iter_mut().map(has).filter(|has| *has).count()
    }

    /// What must hold of the leases at any moment.
    pub(super) fn look(&self) {
        let now = Instant::now();
        let state = &mut *self.lock();
        state.ledger.held.retain(|held| held.lease.is_valid());
        let majority = self.plan.nodes / 2 + 1;
        let mut held = std::mem::take(&mut state.ledger.held);
        for one in &mut held {
            let ends = now + one.lease.remaining();
            one.forgotten |= state.ledger.doubtful.contains(&one.lease.fence().get())
                && Self::holds(&mut state.nodes, one, ends) < majority;
        }
        let counted = held.iter().filter(|held| !held.forgotten).count();
        let mut broken = None;
        if counted > self.plan.slots as usize {
            let who: Vec<usize> = held.iter().map(|held| held.candidate).collect();
            broken = Some(("exclusion", format!("{who:?} all rely on their leases")));
        }
        for one in held.iter().filter(|held| !held.forgotten) {
            let ends = now + one.lease.remaining();
            let nodes = Self::holds(&mut state.nodes, one, ends);
            if nodes < majority {
                let what = format!(
                    "c{} relies on slot {} for {:?}, and {nodes} nodes keep it for so long",
                    one.candidate,
                    one.lease.slot(),
                    one.lease.remaining()
                );
                broken.get_or_insert(("conservative", what));
            }
        }
        state.ledger.held = held;
        if let Some((invariant, what)) = broken {
            state
                .ledger
                .violation
                .get_or_insert(Violation { invariant, what });
        }
    }

    /// A node is about to lose what it knows, or has lost it: whose majority falls with it is on its own.
    pub(super) fn forget(&self, node: usize) {
        let state = &mut *self.lock();
        let ahead = state.nodes[node].clock_ahead;
        state.nodes[node] = crate::model::Model::ahead(ahead);
        self.excuse(state);
    }

    /// An operator deletes the name on one node.
    pub(super) fn delete(&self, node: usize, name: &LockName) {
        let state = &mut *self.lock();
        let micros = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or_default();
        let moment = crate::model::Moment {
            now: Instant::now(),
            micros,
        };
        state.nodes[node].evict(name, moment);
        self.excuse(state);
    }

    fn excuse(&self, state: &mut super::network::State) {
        let now = Instant::now();
        state.ledger.last_loss = Some(now);
        let majority = self.plan.nodes / 2 + 1;
        let mut held = std::mem::take(&mut state.ledger.held);
        for one in &mut held {
            let ends = now + one.lease.remaining();
            one.forgotten |= Self::holds(&mut state.nodes, one, ends) < majority;
        }
        state.ledger.held = held;
    }
}

/// The quorum, whose grants are noted.
pub(super) struct Recorder {
    pub(super) quorum: Quorum<NodeStore>,
    pub(super) world: Arc<World>,
}

impl LeaseStore for Recorder {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        let asked = Instant::now();
        self.world.note_asked(claim.token, asked);
        let reply = self.quorum.claim(claim).await;
        self.world
            .say(|| format!("{} was answered {reply:?}", claim.node_id));
        if let Ok(ClaimReply::Granted { fence, .. }) = &reply {
            let tokens = (claim.token, self.quorum.on_nodes(claim.token));
            self.world.note_grant(tokens, asked, fence.get());
            self.world.doubt(asked, fence.get());
        }
        reply
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        let asked = Instant::now();
        let replies = self.quorum.extend(batch).await;
        // The leases are longer now.
        self.world.bell.notify_one();
        for (extension, reply) in batch.iter().zip(&replies) {
            if let (Ok(ExtendReply::NotHeld(_)), Some(token)) =
                (reply, self.quorum.on_nodes(extension.token))
            {
                self.world.lock().ledger.lost.insert(*token.as_bytes());
            }
            self.world
                .say(|| format!("an extension was answered {replies:?}"));
            if let Some(granted) = &extension.granted {
                self.world.doubt(asked, granted.fence.get());
            }
        }
        replies
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        self.quorum.release(release).await
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        self.quorum.watch(name, since, hints).await
    }

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        self.quorum.inspect(name).await
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        self.quorum.evict(name).await
    }

    fn command_timeout(&self) -> Duration {
        self.quorum.command_timeout()
    }
}
