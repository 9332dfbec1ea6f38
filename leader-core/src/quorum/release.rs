//! Releasing: every node is told, and a majority must have heard.

use std::sync::Arc;

use tokio::time::Instant;

use super::Shared;
use super::failure::{failure, not_yet};
use super::round::{Round, release_of};
use super::seats::{MARK, Seat};
use crate::error::LossReason;
use crate::store::{LeaseStore, Release, ReleaseReply, Revision, StoreError};

pub(super) async fn release<S: LeaseStore>(
    shared: &Arc<Shared<S>>,
    release: &Release,
) -> Result<ReleaseReply, StoreError> {
    let Some(seat) = seat(shared, release) else {
        return Ok(nowhere(shared, release));
    };
    let ask = |node| release_of(shared.clone(), node, on_node(release, &seat, node));
    let mut round = Round::new((0..shared.nodes.len()).map(ask));
    let mut replies = Replies::of(shared.size.nodes());
    while !replies.are_enough(shared) {
        for (node, answer) in round.answers().await {
            replies.note(node, answer);
        }
    }
    for (node, answer) in round.rest(shared).await {
        replies.note(node, answer);
    }
    let reply = replies.sum_up(shared)?;
    over(shared, release, &seat);
    Ok(reply)
}

/// Without waiting; `None` when the nodes cannot.
pub(super) fn release_now<S: LeaseStore>(
    shared: &Arc<Shared<S>>,
    release: &Release,
    now: Instant,
) -> Option<ReleaseReply> {
    let Some(seat) = seat(shared, release) else {
        return Some(nowhere(shared, release));
    };
    let mut replies = Replies::of(shared.size.nodes());
    for (index, node) in shared.nodes.iter().enumerate() {
        let reply = node.store.release_now(&on_node(release, &seat, index), now);
        // Nodes are alike: if the first cannot, nothing has been done yet.
        if index == 0 && reply.is_none() {
            return None;
        }
        if let Some(reply) = reply {
            replies.note(index, Ok(reply));
        }
    }
    let reply = replies.sum_up(shared).ok()?;
    over(shared, release, &seat);
    Some(reply)
}

/// What a node is sent: it is marked for the token where a claim may yet arrive, and looks for the slot by itself where
/// it may have granted another.
fn on_node(release: &Release, seat: &Seat, node: usize) -> Release {
    let mut here = release.clone();
    here.token = seat.token;
    // A token of the quorum's is dead after this; where a claim of it may yet arrive, the node must know.
    here.mark = None;
    if seat.unseen.contains(node) {
        here.mark = Some(release.mark.unwrap_or_default().max(MARK));
    }
    if seat.unseen.contains(node) || seat.astray.contains(node) {
        here.slot = None;
    }
    here
}

/// What is known of the token; `None` when no node can have anything of it.
fn seat<S>(shared: &Shared<S>, release: &Release) -> Option<Seat> {
    let known = shared.seats.leave(release.token);
    // Of whose slot it may be instead, the nodes know.
    known.or_else(|| release.slot.map(|_| Seat::unknown(release.token)))
}

/// A token that no node has anything of.
fn nowhere<S>(shared: &Shared<S>, release: &Release) -> ReleaseReply {
    if let Some(mark) = release.mark {
        shared.seats.end(release.token, mark);
    }
    ReleaseReply::NotHeld(LossReason::Deleted)
}

fn over<S>(shared: &Shared<S>, release: &Release, seat: &Seat) {
    shared.seats.forget(release.token, seat.token);
    if let Some(mark) = release.mark {
        shared.seats.end(release.token, mark);
    }
}

struct Replies {
    each: Vec<Option<Result<ReleaseReply, StoreError>>>,
}

impl Replies {
    fn of(nodes: usize) -> Self {
        Self {
            each: vec![None; nodes],
        }
    }

    fn note(&mut self, node: usize, answer: Result<ReleaseReply, StoreError>) {
        if let Some(reply) = self.each.get_mut(node) {
            *reply = Some(answer);
        }
    }

    fn answered(&self) -> impl Iterator<Item = ReleaseReply> {
        let each = self.each.iter().flatten();
        each.filter_map(|reply| reply.as_ref().ok().copied())
    }

    /// Whether a majority has answered, or cannot any more.
    fn are_enough<S>(&self, shared: &Shared<S>) -> bool {
        let failed = self.each.iter().flatten().filter(|reply| reply.is_err());
        self.answered().count() >= shared.size.majority() || failed.count() > shared.size.spare()
    }

    fn sum_up<S>(&self, shared: &Shared<S>) -> Result<ReleaseReply, StoreError> {
        let size = shared.size;
        let answered = self.answered().count();
        if answered < size.majority() {
            let each = self.each.iter().enumerate();
            let failed = each.filter_map(|(node, reply)| match reply {
                Some(Ok(_)) => None,
                Some(Err(error)) => Some((node, error.clone())),
                None => Some((node, not_yet())),
            });
            return Err(failure(size, answered, failed.collect()));
        }
        let reasons = self.answered().filter_map(|reply| match reply {
            ReleaseReply::NotHeld(reason) => Some(reason),
            ReleaseReply::Released { .. } => None,
        });
        let reasons: Vec<LossReason> = reasons.collect();
        // Held on so few nodes that it was no majority.
        if let Some(reason) = most_frequent(&reasons)
            && reasons.len() > size.spare()
        {
            return Ok(ReleaseReply::NotHeld(reason));
        }
        let mut sum = (Revision::default(), 0);
        for reply in self.answered() {
            if let ReleaseReply::Released { revision, told } = reply {
                sum = (sum.0.max(revision), sum.1.max(told));
            }
        }
        let (revision, told) = sum;
        Ok(ReleaseReply::Released { revision, told })
    }
}

/// The reason that most nodes give; of those as frequent, the one that says most.
pub(super) fn most_frequent(reasons: &[LossReason]) -> Option<LossReason> {
    let count = |reason: LossReason| {
        let weight = match reason {
            LossReason::Taken => 2,
            LossReason::Expired => 1,
            _ => 0,
        };
        let alike = reasons.iter().filter(|other| **other == reason).count();
        (alike, weight)
    };
    reasons.iter().copied().max_by_key(|reason| count(*reason))
}
