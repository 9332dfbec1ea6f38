//! Extending: a majority must have extended a lease, in the same request. A node that has lost the record, while a
//! majority still has it, is given it again.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::failure::{failure, not_yet};
use super::nodes::NodeSet;
use super::release::most_frequent;
use super::round::{Round, claim_of};
use super::seats::Seat;
use crate::error::{BackendKind, LossReason};
use crate::store::{Claim, ExtendReply, Extension, LeaseStore, Revision, StoreError};

type Answers = Vec<Result<ExtendReply, StoreError>>;

pub(super) async fn extend<S: LeaseStore>(shared: &Arc<Shared<S>>, batch: &[Extension]) -> Answers {
    if batch.is_empty() {
        return Vec::new();
    }
    let known = batch.iter().map(|extension| {
        let seat = shared.seats.extend(extension);
        seat.unwrap_or_else(|| Seat::unknown(extension.token))
    });
    let seats: Vec<Seat> = known.collect();
    let on_nodes = batch.iter().zip(&seats).map(|(extension, seat)| {
        let mut here = extension.clone();
        here.token = seat.token;
        here
    });
    let on_nodes: Arc<[Extension]> = on_nodes.collect();
    let ask = |node| extend_of(shared.clone(), node, on_nodes.clone());
    let mut round = Round::new((0..shared.nodes.len()).map(ask));
    let mut answers: Vec<Option<Answers>> = vec![None; shared.nodes.len()];
    let is_decided = |answers: &[Option<Answers>]| {
        (0..on_nodes.len()).all(|which| Tally::of(shared, answers, which).is_decided())
    };
    while !is_decided(&answers) {
        for (node, answer) in round.answers().await {
            answers[node] = Some(answer);
        }
    }
    for (node, answer) in round.rest(shared).await {
        answers[node] = Some(answer);
    }
    let each = batch.iter().zip(&seats).enumerate();
    let each = each.map(|(which, (extension, seat))| {
        let tally = Tally::of(shared, &answers, which);
        if tally.is_ours() {
            give_again(shared, extension, seat, &tally);
        }
        tally.sum_up()
    });
    each.collect()
}

/// What node `node` says to `batch`.
async fn extend_of<S: LeaseStore>(
    shared: Arc<Shared<S>>,
    node: usize,
    batch: Arc<[Extension]>,
) -> (usize, Answers) {
    let Some(at) = shared.nodes.get(node) else {
        return (node, vec![Err(super::failure::unknown_node()); batch.len()]);
    };
    let answers = tokio::time::timeout(at.timeout, at.store.extend(&batch)).await;
    let no_answer = |_| vec![Err(StoreError::no_answer(at.timeout)); batch.len()];
    (node, answers.unwrap_or_else(no_answer))
}

/// What the nodes say of one lease.
struct Tally<'a, S> {
    shared: &'a Arc<Shared<S>>,
    extended: NodeSet,
    not_held: Vec<(usize, LossReason)>,
    failed: Vec<(usize, StoreError)>,
    awaited: Vec<usize>,
}

impl<'a, S: LeaseStore> Tally<'a, S> {
    fn of(shared: &'a Arc<Shared<S>>, answers: &[Option<Answers>], which: usize) -> Self {
        let mut tally = Self {
            shared,
            extended: NodeSet::default(),
            not_held: Vec::new(),
            failed: Vec::new(),
            awaited: Vec::new(),
        };
        for (node, answers) in answers.iter().enumerate() {
            let Some(answers) = answers else {
                tally.awaited.push(node);
                continue;
            };
            match answers.get(which) {
                Some(Ok(ExtendReply::Extended)) => tally.extended.insert(node),
                Some(Ok(ExtendReply::NotHeld(reason))) => tally.not_held.push((node, *reason)),
                Some(Err(error)) => tally.failed.push((node, error.clone())),
                None => tally.failed.push((node, unanswered())),
            }
        }
        tally
    }

    fn is_ours(&self) -> bool {
        self.extended.len() >= self.shared.size.majority()
    }

    /// So many nodes do not have it that no majority can.
    fn is_lost(&self) -> bool {
        self.not_held.len() > self.shared.size.spare()
    }

    fn is_decided(&self) -> bool {
        let size = self.shared.size;
        let awaited = self.awaited.len();
        self.is_ours()
            || self.is_lost()
            || (self.extended.len() + awaited < size.majority()
                && self.not_held.len() + awaited <= size.spare())
    }

    fn sum_up(self) -> Result<ExtendReply, StoreError> {
        if self.is_ours() {
            return Ok(ExtendReply::Extended);
        }
        if self.is_lost() {
            let reasons = self.not_held.iter().map(|(_, reason)| *reason);
            let reasons: Vec<LossReason> = reasons.collect();
            let reason = most_frequent(&reasons).unwrap_or(LossReason::Deleted);
            return Ok(ExtendReply::NotHeld(reason));
        }
        let mut failed = self.failed;
        failed.extend(self.awaited.into_iter().map(|node| (node, not_yet())));
        let answered = self.shared.size.nodes() - failed.len();
        // A minority may have extended it.
        let may_have_run = !self.extended.is_empty();
        let error = failure(self.shared.size, answered, failed);
        let may_have_run = may_have_run || error.may_have_run();
        Err(error.that_may_have_run(may_have_run))
    }
}

/// Claims the same slot with the same number on the nodes that have lost it, while a majority has just confirmed that
/// it is this tenure's: one more node is no majority for anybody, and nobody waits for it.
fn give_again<S: LeaseStore>(
    shared: &Arc<Shared<S>>,
    extension: &Extension,
    seat: &Seat,
    tally: &Tally<'_, S>,
) {
    let lost = tally.not_held.iter().filter(|(_, reason)| {
        // Taken by another, it is free once that one gives it back, and the next extension finds it.
        matches!(reason, LossReason::Expired | LossReason::Deleted)
    });
    let lost: NodeSet = lost.map(|(node, _)| *node).collect();
    let Some(granted) = &extension.granted else {
        return;
    };
    if lost.is_empty() {
        return;
    }
    let again = Claim::new(
        extension.name.clone(),
        granted.node_id.clone(),
        seat.token,
        extension.lease.min(LONGEST_GIVEN),
    )
    .of_slots(granted.slots)
    .of_slot(extension.slot)
    .at_least(Revision::from(granted.fence));
    if !shared.seats.may_send(extension.token, seat.token, lost) {
        return;
    }
    let claims = lost
        .iter()
        .map(|node| claim_of(shared.clone(), node, again.clone()));
    let mut round = Round::new(claims);
    shared.spawn(async move { while !round.answers().await.is_empty() {} });
}

/// No lease is longer.
const LONGEST_GIVEN: Duration = crate::options::LeaseOptions::MAX_LEASE;

fn unanswered() -> StoreError {
    StoreError::new(
        BackendKind::MalformedReply,
        "an extension was left unanswered",
    )
}
