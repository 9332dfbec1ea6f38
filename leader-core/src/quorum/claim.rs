//! Claiming: a slot counts as taken when a majority has granted it, the same one, with the same number.
//!
//! 1. Every node is asked at once, and the same number is proposed to all. Each that grants issues this one, or another of
//!    its own that is greater than all it has issued.
//! 2. The greatest number is written back to those of a majority that have a lower one: any later majority has a node
//!    in common with this one, and that node issues a greater number from then on. Where the nodes agree already,
//!    there is nothing to write.
//! 3. Where no majority grants, whatever a node has granted is given back, with the token that stood for the claim: it
//!    is not used again, so that late copies of these requests find nothing that counts.
//!
//! When nobody has a majority because several claim at once, or since nodes disagree about which slot is free, the
//! claim is put again a few times, after pauses that differ from one candidate to the other.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::Shared;
use super::failure::{disagreed, ended, failure, not_yet};
use super::nodes::NodeSet;
use super::proposal::proposal;
use super::round::{Round, claim_of, release_of};
use super::seats::{MARK, Seat};
use crate::engine::chance;
use crate::node::NodeId;
use crate::store::{Claim, ClaimReply, LeaseStore, Release, ReleaseReply, Revision, StoreError};
use crate::token::FencingToken;

/// How often a number may be written back before the nodes have it.
const MOST_OUTDONE: u32 = 10;
/// How often a claim that nobody has won is put again.
const MORE_TRIES: u32 = 3;

/// What a node has said.
enum Vote {
    Awaited,
    Granted {
        slot: u32,
        fence: u64,
        /// The number that is being written back to it.
        floor: Option<u64>,
    },
    Taken {
        retry_after: Duration,
        holder: Option<NodeId>,
        revision: u64,
    },
    Failed(StoreError),
}

/// How a round came out.
enum Outcome {
    Granted { slot: u32, fence: FencingToken },
    Refused,
    Failed(StoreError),
}

/// One round of claims, with a token of its own.
struct Ballot<'a, S> {
    shared: &'a Arc<Shared<S>>,
    claim: &'a Claim,
    seat: Seat,
    /// What the nodes are sent.
    put: Claim,
    votes: Vec<Vote>,
    /// The number to write back.
    target: u64,
    /// How often a number was written back and not taken.
    outdone: u32,
    begun: Instant,
}

pub(super) async fn claim<S: LeaseStore>(
    shared: &Arc<Shared<S>>,
    claim: &Claim,
) -> Result<ClaimReply, StoreError> {
    let place = shared.turns.queue(claim.token);
    // As long as one that does not wait may take.
    let patience = shared.timeout.saturating_mul(2);
    let Ok(_turn) = timeout(patience, place.turn()).await else {
        return Err(StoreError::no_answer(patience));
    };
    let begun = Instant::now();
    // The last try begins before that: two rounds and giving back must fit into what is left of the step's time, and of
    // the lease, which counts from here.
    let patience = shared.timeout.min(claim.lease) / 2;
    let mut exact = claim.slot;
    let mut tries = 0;
    loop {
        let Some(seat) = shared.seats.open(claim, shared.all()) else {
            return Ok(ClaimReply::Ended);
        };
        let mut ballot = Ballot::new(shared, claim, seat, exact);
        match ballot.run().await {
            Outcome::Granted { slot, fence } => return Ok(ClaimReply::Granted { slot, fence }),
            // The seat stays: asked again, the nodes that have granted it will know it.
            Outcome::Failed(error) => return Err(error),
            Outcome::Refused => {}
        }
        let given_back = ballot.give_back().await;
        let is_late = begun.elapsed() >= patience / 2;
        if !ballot.is_worth_another_try() || tries >= MORE_TRIES || is_late {
            return Ok(ballot.taken(ballot.undecided(), &given_back));
        }
        if claim.slot.is_none() {
            exact = ballot.slot_that_may_do(tries);
        }
        let round = ballot.begun.elapsed().max(SHORTEST_PAUSE);
        let pause = (round * (2 << tries)).min(patience.saturating_sub(begun.elapsed()));
        sleep(ballot.chance(pause)).await;
        tries += 1;
    }
}

const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// After how long to ask again where nobody has won: at least this, and up to so much more.
const ASK_AGAIN: Duration = Duration::from_millis(50);
const SPREAD: Duration = Duration::from_millis(200);

impl<'a, S: LeaseStore> Ballot<'a, S> {
    fn new(shared: &'a Arc<Shared<S>>, claim: &'a Claim, seat: Seat, exact: Option<u32>) -> Self {
        let mut put = claim.clone().proposing(proposal(shared));
        put.token = seat.token;
        put.slot = exact;
        if let Some((slot, fence)) = seat.granted {
            // In force already: the nodes that have lost it are to have the same.
            put.slot = Some(slot);
            put.at_least = put.at_least.max(Revision::from(fence));
        }
        Self {
            shared,
            claim,
            seat,
            put,
            votes: shared.nodes.iter().map(|_| Vote::Awaited).collect(),
            target: 0,
            outdone: 0,
            begun: Instant::now(),
        }
    }

    async fn run(&mut self) -> Outcome {
        let shared = self.shared;
        let ask = |node| claim_of(shared.clone(), node, self.put.clone());
        let mut round = Round::new((0..self.votes.len()).map(ask));
        let outcome = loop {
            let answers = round.answers().await;
            for (node, answer) in answers {
                self.note(node, answer);
            }
            if let Some(outcome) = self.decide() {
                break outcome;
            }
            for (node, slot) in self.too_low() {
                let number = Revision::new(self.target);
                let raise = self.put.clone().of_slot(slot).at_least(number);
                round.ask(claim_of(shared.clone(), node, raise));
            }
        };
        for (node, answer) in round.rest(shared).await {
            self.note(node, answer);
        }
        self.close(&outcome);
        outcome
    }

    fn note(&mut self, node: usize, answer: Result<ClaimReply, StoreError>) {
        let Some(vote) = self.votes.get_mut(node) else {
            return;
        };
        *vote = match answer {
            Ok(ClaimReply::Granted { slot, fence }) => {
                let fence = fence.get();
                if let Vote::Granted { floor, .. } = vote
                    && floor.is_some_and(|floor| floor != fence)
                {
                    self.outdone += 1;
                }
                Vote::Granted {
                    slot,
                    fence,
                    floor: None,
                }
            }
            Ok(ClaimReply::Taken {
                retry_after,
                holder,
                revision,
            }) => Vote::Taken {
                retry_after,
                holder,
                revision: revision.get(),
            },
            Ok(ClaimReply::Ended) => Vote::Failed(ended()),
            // What it has granted before, it still has.
            Err(error) if matches!(vote, Vote::Granted { .. }) => {
                Vote::Failed(error.that_may_have_run(true))
            }
            Err(error) => Vote::Failed(error),
        };
    }

    /// Every slot that a node has granted.
    fn granted(&self) -> impl Iterator<Item = (usize, u32, u64, bool)> {
        let votes = self.votes.iter().enumerate();
        votes.filter_map(|(node, vote)| match vote {
            Vote::Granted { slot, fence, floor } => Some((node, *slot, *fence, floor.is_some())),
            _ => None,
        })
    }

    fn count(&self, counts: impl Fn(&Vote) -> bool) -> usize {
        self.votes.iter().filter(|vote| counts(vote)).count()
    }

    /// The slot that most nodes have granted, and how many.
    fn best_slot(&self) -> (u32, usize) {
        let of = |slot| self.granted().filter(|(_, of, ..)| *of == slot).count();
        let each = self.granted().map(|(_, slot, ..)| (slot, of(slot)));
        each.max_by_key(|(slot, count)| (*count, *slot))
            .unwrap_or_default()
    }

    fn greatest(&self, slot: u32) -> Option<u64> {
        let of_slot = self.granted().filter(|(_, of, ..)| *of == slot);
        of_slot.map(|(_, _, fence, _)| fence).max()
    }

    /// The number that a majority has on `slot`.
    fn agreed(&self, slot: u32) -> Option<u64> {
        let numbers = || {
            let settled = self
                .granted()
                .filter(|(_, of, _, awaited)| *of == slot && !awaited);
            settled.map(|(_, _, fence, _)| fence)
        };
        let agree = |number: &u64| numbers().filter(|other| other == number).count();
        numbers().find(|number| agree(number) >= self.shared.size.majority())
    }

    fn decide(&self) -> Option<Outcome> {
        let size = self.shared.size;
        let (slot, most) = self.best_slot();
        if most >= size.majority() {
            if self.outdone > MOST_OUTDONE {
                return Some(Outcome::Failed(disagreed()));
            }
            return self.agreed(slot).map(|fence| Outcome::Granted {
                slot,
                fence: FencingToken::new(fence),
            });
        }
        let failed = self.count(|vote| matches!(vote, Vote::Failed(_)));
        if failed > size.spare() {
            return Some(Outcome::Failed(self.failure()));
        }
        let awaited = self.count(|vote| matches!(vote, Vote::Awaited));
        // Who has not answered could make it a majority, or a failure.
        let open = most + awaited >= size.majority() || failed + awaited > size.spare();
        (!open).then_some(Outcome::Refused)
    }

    fn failure(&self) -> StoreError {
        let (mut failed, mut open) = (Vec::new(), false);
        for (node, vote) in self.votes.iter().enumerate() {
            match vote {
                Vote::Failed(error) => failed.push((node, error.clone())),
                Vote::Awaited => failed.push((node, not_yet())),
                Vote::Granted { .. } => open = true,
                Vote::Taken { .. } => {}
            }
        }
        let answered = self.votes.len() - failed.len();
        let error = failure(self.shared.size, answered, failed);
        let open = open || error.may_have_run() || !self.seat.unseen.is_empty();
        error.that_may_have_run(open)
    }

    /// The nodes whose number is to be written anew, and their slot; none while no majority has granted one.
    fn too_low(&mut self) -> Vec<(usize, u32)> {
        let (slot, most) = self.best_slot();
        if most < self.shared.size.majority() || self.may_be_known_again() {
            return Vec::new();
        }
        // Whichever number a majority agrees on is greater than all that were granted before: it has a node in common
        // with each earlier majority, which has issued a greater one. So the first is kept to while a majority can have
        // it, and a node that is ahead of it is left alone.
        let can_have_it =
            |(_, of, fence, _): &(usize, u32, u64, bool)| *of == slot && *fence <= self.target;
        if self.granted().filter(can_have_it).count() < self.shared.size.majority() {
            // Other slots take numbers meanwhile: ahead of their time, none of them is in the way.
            let ahead = match self.outdone {
                0 => 0,
                times => 1000 << times,
            };
            let greatest = self.greatest(slot).unwrap_or_default();
            self.target = greatest.saturating_add(ahead);
        }
        let (target, mut low) = (self.target, Vec::new());
        for (node, vote) in self.votes.iter_mut().enumerate() {
            if let Vote::Granted {
                slot: of,
                fence,
                floor: floor @ None,
            } = vote
                && *of == slot
                && *fence < target
            {
                *floor = Some(target);
                low.push((node, slot));
            }
        }
        low
    }

    /// Whether a majority may still answer with what an earlier copy of the claim was granted: it is to be granted the
    /// same, whatever the other nodes have, and whoever answers first.
    fn may_be_known_again(&self) -> bool {
        let Some((of, number)) = self.seat.granted else {
            return false;
        };
        let number = number.get();
        let may_be = self.count(|vote| match vote {
            Vote::Awaited => true,
            Vote::Granted { slot, fence, .. } => (*slot, *fence) == (of, number),
            _ => false,
        });
        may_be >= self.shared.size.majority()
    }

    /// Notes in the seat what is known of the nodes now.
    fn close(&mut self, outcome: &Outcome) {
        let unseen = self
            .votes
            .iter()
            .enumerate()
            .filter(|(_, vote)| match vote {
                Vote::Awaited => true,
                // Where the round has failed, the next one may not hear of this grant again.
                Vote::Granted { floor, .. } => {
                    floor.is_some() || matches!(outcome, Outcome::Failed(_))
                }
                Vote::Failed(error) => error.may_have_run(),
                Vote::Taken { .. } => false,
            });
        // What an earlier round has left open stays so.
        self.seat.unseen |= unseen.map(|(node, _)| node).collect();
        if let Outcome::Granted { slot, fence } = outcome {
            let astray = self.granted().filter(|(_, of, ..)| of != slot);
            let astray: NodeSet = astray.map(|(node, ..)| node).collect();
            self.seat.granted = Some((*slot, *fence));
            self.seat.astray |= astray;
        }
        self.shared.seats.note(self.claim.token, &self.seat);
    }

    /// Gives back what a minority has granted, and ends the token on the nodes that may yet grant it. Answers with the
    /// place of each release in its node's history.
    async fn give_back(&mut self) -> Vec<(usize, u64)> {
        let (shared, token, name) = (self.shared, self.seat.token, &self.claim.name);
        // From here on the token is dead, whatever becomes of this future.
        shared.seats.forget(self.claim.token, token);
        let open = self.seat.unseen;
        let granted: Vec<_> = self.granted().map(|(node, ..)| node).collect();
        let releases = (0..self.votes.len()).filter_map(|node| {
            let release = if open.contains(node) {
                Release::abandoned(name.clone(), token, MARK)
            } else if granted.contains(&node) {
                let mut release = Release::abandoned(name.clone(), token, MARK);
                release.mark = None;
                release
            } else {
                return None;
            };
            Some(release_of(shared.clone(), node, release))
        });
        let mut round = Round::new(releases);
        let (tell, told) = tokio::sync::oneshot::channel();
        let mut missing: NodeSet = granted
            .into_iter()
            .filter(|node| !open.contains(*node))
            .collect();
        if missing.is_empty() && open.is_empty() {
            return Vec::new();
        }
        let awaited = missing;
        // In a task, which goes on when this future is dropped.
        shared.spawn(async move {
            let (mut given_back, mut tell) = (Vec::new(), Some(tell));
            loop {
                if missing.is_empty()
                    && let Some(tell) = tell.take()
                {
                    let _ = tell.send(std::mem::take(&mut given_back));
                }
                let answers = round.answers().await;
                if answers.is_empty() {
                    return;
                }
                for (node, answer) in answers {
                    missing.remove(node);
                    if let Ok(ReleaseReply::Released { revision, .. }) = answer {
                        given_back.push((node, revision.get()));
                    }
                }
            }
        });
        if awaited.is_empty() {
            return Vec::new();
        }
        told.await.unwrap_or_default()
    }

    /// Whether nobody may have won: not too few nodes were free, or nobody has enough of them.
    fn undecided(&self) -> bool {
        let size = self.shared.size;
        let taken = || {
            self.votes.iter().filter_map(|vote| match vote {
                Vote::Taken { holder, .. } => Some(holder),
                _ => None,
            })
        };
        if taken().count() <= size.spare() {
            return true;
        }
        if self.claim.slots > 1 {
            // Nodes name the lease that ends first, of several.
            return false;
        }
        let of = |holder: &Option<NodeId>| taken().filter(|other| *other == holder).count();
        !taken().any(|holder| of(holder) >= size.majority())
    }

    /// Whether to put the claim again at once. Of several slots it cannot be seen whether somebody has won: where a node
    /// had one free, this candidate may have been in the others' way as they were in its own.
    fn is_worth_another_try(&self) -> bool {
        self.undecided() || (self.claim.slots > 1 && self.granted().next().is_some())
    }

    /// A slot that a majority may have free, of those that a node has granted: the others below it are taken there.
    fn slot_that_may_do(&self, tries: u32) -> Option<u32> {
        let may_do = |slot| self.granted().filter(|(_, of, ..)| *of <= slot).count();
        let known = |slot| self.granted().filter(|(_, of, ..)| *of == slot).count();
        let mut slots: Vec<u32> = self.granted().map(|(_, slot, ..)| slot).collect();
        slots.sort_unstable_by_key(|slot| std::cmp::Reverse((known(*slot), *slot)));
        slots.dedup();
        slots.retain(|slot| may_do(*slot) >= self.shared.size.majority());
        let nth = (tries as usize).checked_rem(slots.len())?;
        slots.get(nth).copied()
    }

    /// A duration below `limit` that is another's for every token.
    fn chance(&self, limit: Duration) -> Duration {
        let number = u128::from_be_bytes(*self.seat.token.as_bytes()) & u128::from(u64::MAX);
        chance::below(limit, u64::try_from(number).unwrap_or_default())
    }

    fn taken(&self, undecided: bool, given_back: &[(usize, u64)]) -> ClaimReply {
        let mut taken: Vec<(Duration, &Option<NodeId>)> = Vec::new();
        let mut seen = vec![None; self.votes.len()];
        let mut free = 0;
        for (node, vote) in self.votes.iter().enumerate() {
            match vote {
                Vote::Taken {
                    retry_after,
                    holder,
                    revision,
                } => {
                    taken.push((*retry_after, holder));
                    seen[node] = Some(*revision);
                }
                Vote::Granted { fence, .. } => {
                    free += 1;
                    seen[node] = Some(*fence);
                }
                Vote::Awaited | Vote::Failed(_) => {}
            }
        }
        if self.claim.slots == 1 {
            // Nobody else can have released there between this claim's own grant and its end.
            for (node, revision) in given_back {
                seen[*node] = Some(*revision);
            }
        }
        taken.sort_by_key(|(retry_after, _)| *retry_after);
        // So many of these leases must end before a majority is free.
        let nth = self.shared.size.majority().saturating_sub(free);
        let last_to_leave = taken.get(nth.saturating_sub(1)).or(taken.last());
        let holder = last_to_leave.and_then(|(_, holder)| (*holder).clone());
        let mut retry_after = last_to_leave.map_or(Duration::MAX, |(retry_after, _)| *retry_after);
        if undecided {
            retry_after = retry_after.min(ASK_AGAIN + self.chance(SPREAD));
        }
        let revision = seen.iter().flatten().max().copied().unwrap_or_default();
        let revision = Revision::new(revision);
        self.shared
            .sightings
            .note(&self.claim.name, revision, &seen);
        ClaimReply::Taken {
            retry_after,
            holder,
            revision,
        }
    }
}
