//! What stands behind the network: the model store, or the library's own local store in its place.

use std::time::Duration;

use futures::FutureExt;
use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, LeaseStore, Release, ReleaseReply, Revision,
};
use leader_core::{LocalStore, LockName, LossReason, Token};
use tokio::time::Instant;

use crate::model::{Model, Moment};
use crate::plan::ServerKind;

/// A store, each of whose steps is over when it returns.
#[derive(Debug)]
pub(crate) enum Server {
    Model(Model),
    Local(LocalStore),
}

/// A taken slot, as an onlooker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) number: u32,
    pub(crate) fence: u64,
    /// Whether a tenure is in force; else a minimum lease keeps the slot.
    pub(crate) in_force: bool,
    pub(crate) ends: Instant,
}

impl Server {
    pub(crate) fn new(kind: ServerKind, micros: u64) -> Self {
        match kind {
            ServerKind::Model => Self::Model(Model::default()),
            ServerKind::Local => {
                Self::Local(LocalStore::starting_at(Duration::from_micros(micros)))
            }
        }
    }

    pub(crate) fn claim(&mut self, claim: &Claim, moment: Moment) -> ClaimReply {
        match self {
            Self::Model(model) => model.claim(claim, moment),
            Self::Local(store) => at_once(store.claim(claim)).unwrap_or(ClaimReply::Ended),
        }
    }

    pub(crate) fn extend(&mut self, extension: &Extension, now: Instant) -> ExtendReply {
        match self {
            Self::Model(model) => model.extend(extension, now),
            Self::Local(store) => at_once(store.extend(std::slice::from_ref(extension)))
                .into_iter()
                .next()
                .and_then(Result::ok)
                .unwrap_or(ExtendReply::NotHeld(LossReason::Deleted)),
        }
    }

    pub(crate) fn release(
        &mut self,
        release: &Release,
        moment: Moment,
    ) -> (ReleaseReply, Duration) {
        match self {
            Self::Model(model) => model.release(release, moment),
            Self::Local(store) => {
                let kept = |slots: Vec<Slot>| {
                    slots
                        .into_iter()
                        .find(|slot| Some(slot.number) == release.slot)
                };
                let reply = at_once(store.release(release))
                    .unwrap_or(ReleaseReply::NotHeld(LossReason::Deleted));
                let free_in = kept(local_slots(store, &release.name, moment.now))
                    .filter(|slot| !slot.in_force)
                    .map_or(Duration::ZERO, |slot| slot.ends - moment.now);
                (reply, free_in)
            }
        }
    }

    pub(crate) fn evict(&mut self, name: &LockName, moment: Moment) -> (u32, Revision) {
        match self {
            Self::Model(model) => model.evict(name, moment),
            Self::Local(store) => (
                at_once(store.evict(name)).unwrap_or(0),
                Revision::new(moment.micros),
            ),
        }
    }

    pub(crate) fn is_news(&mut self, name: &LockName, since: Revision, now: Instant) -> bool {
        match self {
            Self::Model(model) => model.is_news(name, since, now),
            // The network keeps the watchers; to be told once too often is harmless.
            Self::Local(_) => true,
        }
    }

    pub(crate) fn slots(&mut self, name: &LockName, now: Instant) -> Vec<Slot> {
        match self {
            Self::Model(model) => {
                let slot = |(slot, entry): (&u32, &crate::model::Entry)| Slot {
                    number: *slot,
                    fence: entry.fence,
                    in_force: entry.token.is_some(),
                    ends: entry.ends,
                };
                model.slots(name, now).iter().map(slot).collect()
            }
            Self::Local(store) => local_slots(store, name, now),
        }
    }
}

fn local_slots(store: &LocalStore, name: &LockName, now: Instant) -> Vec<Slot> {
    let slot = |holder: leader_core::Holder| Slot {
        number: holder.slot(),
        fence: holder.fence().get(),
        in_force: !holder.is_retained(),
        ends: now + holder.remaining(),
    };
    let holders = at_once(store.inspect(name)).unwrap_or_default();
    holders.into_iter().map(slot).collect()
}

/// The local store's steps never wait.
fn at_once<T>(step: impl Future<Output = T>) -> T {
    match step.now_or_never() {
        Some(answer) => answer,
        None => unreachable!("a step of the local store waited"),
    }
}

/// A token as a key.
pub(crate) fn key(token: Token) -> [u8; 16] {
    *token.as_bytes()
}
