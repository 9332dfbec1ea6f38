//! The [`Facts`]: what has been seen of a run so far, for the invariants to judge by. They come from the store's own
//! doing and from what the candidates' code was told; nothing of it is asked of the engine, but the reckoning.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use leader_core::LeaseHandle;
use tokio::time::Instant;

use crate::event::{BodyEnd, Event, Op, Outcome, RunNo, Said, TokenNo, Turn};
use crate::freeze::Freezer;
use crate::plan::{Plan, Stand};
use crate::server::Slot;

/// What is known of a run by now.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) plan: Plan,
    pub(crate) begun: Instant,
    pub(crate) runs: Vec<RunFact>,
    pub(crate) tokens: Vec<TokenFact>,
    /// Which token has which fence, by name.
    pub(crate) holders: BTreeMap<(usize, u64), TokenNo>,
    /// The slots of each name as the store's last step left them.
    pub(crate) slots: Vec<Vec<Slot>>,
    /// Grants that the store has forgotten, in part at least: an operator or a failover took them away.
    pub(crate) forgotten: BTreeSet<(usize, u64)>,
    /// When the store last forgot something.
    pub(crate) last_forgot: Option<Instant>,
    /// When the faults were over.
    pub(crate) quiet: Option<Instant>,
    pub(crate) freezers: Vec<Freezer>,
}

/// One attempt, and what came of it.
#[derive(Debug)]
pub(crate) struct RunFact {
    pub(crate) node: usize,
    pub(crate) name: usize,
    pub(crate) stand: Stand,
    pub(crate) guarded: bool,
    /// One of those that stand once the faults are over.
    pub(crate) last: bool,
    pub(crate) begun: Instant,
    /// For how long the process had been frozen by then.
    pub(crate) frozen: Duration,
    pub(crate) lease: Option<LeaseHandle>,
    pub(crate) fence: Option<u64>,
    pub(crate) granted: Option<Instant>,
    pub(crate) bodies: u32,
    pub(crate) body_end: Option<(Instant, BodyEnd, bool)>,
    pub(crate) letting_go: Option<Instant>,
    /// Whether a lease held by hand is dropped at the end, not released.
    pub(crate) dropped: bool,
    pub(crate) over: Option<(Instant, Outcome)>,
}

/// One token, as the network saw it.
#[derive(Debug)]
pub(crate) struct TokenFact {
    pub(crate) run: Option<RunNo>,
    pub(crate) first_sent: Instant,
    pub(crate) last_claim_sent: Instant,
    pub(crate) lease: Duration,
    pub(crate) last_granted: Option<Instant>,
    pub(crate) release_sent: Option<Instant>,
    /// Whether a release was sent that leaves a mark.
    pub(crate) marked: bool,
    /// The request by which the store has ended it.
    pub(crate) released: Option<u64>,
    /// Whether that request came twice, so that its sender may have been told the answer to the second.
    pub(crate) repeated: bool,
}

impl RunFact {
    /// Until when the holder relies on its lease, if it does.
    pub(crate) fn relies_until(&self, at: Instant) -> Option<Instant> {
        self.lease
            .as_ref()
            .and_then(LeaseHandle::reckoning)
            .filter(|end| at < *end)
    }
}

impl Facts {
    pub(crate) fn new(plan: Plan, begun: Instant, freezers: Vec<Freezer>) -> Self {
        let slots = vec![Vec::new(); plan.names()];
        Self {
            plan,
            begun,
            runs: Vec::new(),
            tokens: Vec::new(),
            holders: BTreeMap::new(),
            slots,
            forgotten: BTreeSet::new(),
            last_forgot: None,
            quiet: None,
            freezers,
        }
    }

    /// The runs of `name` whose lease is valid at `at` by their own reckoning, and was not forgotten.
    pub(crate) fn valid(
        &self,
        name: usize,
        at: Instant,
    ) -> impl Iterator<Item = (RunNo, &RunFact)> {
        self.runs.iter().enumerate().filter(move |(_, run)| {
            run.name == name
                && run.relies_until(at).is_some()
                && run
                    .fence
                    .is_some_and(|fence| !self.forgotten.contains(&(name, fence)))
        })
    }

    /// How long a candidate's process has been frozen so far.
    pub(crate) fn frozen(&self, node: usize) -> Duration {
        self.freezers[node].total()
    }

    /// How long a step may take.
    pub(crate) fn command_timeout(&self) -> Duration {
        Duration::from_millis(self.plan.command_timeout)
    }

    /// The store has the slots of `name` like this now, and not by a step that somebody asked for.
    pub(crate) fn turn_slots(&mut self, name: usize, after: Vec<Slot>, at: Instant) {
        for old in self.slots[name]
            .iter()
            .filter(|old| old.in_force && old.ends > at)
        {
            let kept = after
                .iter()
                .find(|new| new.fence == old.fence && new.in_force);
            if kept.is_none_or(|new| new.ends < old.ends) {
                self.forgotten.insert((name, old.fence));
            }
        }
        self.last_forgot = Some(at);
        self.slots[name] = after;
    }

    pub(crate) fn learn(&mut self, at: Instant, event: &Event) {
        match event {
            Event::Sent {
                op: Op::Claim { token, lease, .. },
                run,
                ..
            } => {
                if let Some(known) = self.tokens.get_mut(*token) {
                    known.last_claim_sent = at;
                } else {
                    self.tokens.push(TokenFact {
                        run: *run,
                        first_sent: at,
                        last_claim_sent: at,
                        lease: *lease,
                        last_granted: None,
                        release_sent: None,
                        marked: false,
                        released: None,
                        repeated: false,
                    });
                }
            }
            Event::Sent {
                op: Op::Release { token, marks, .. },
                ..
            } => {
                if let Some(token) = self.tokens.get_mut(*token) {
                    token.release_sent.get_or_insert(at);
                    token.marked |= *marks;
                }
            }
            Event::Applied {
                message,
                name,
                op,
                said,
                after,
                ..
            } => {
                match (op, said) {
                    (Op::Claim { token, .. }, Said::Granted { fence, .. }) => {
                        self.holders.insert((*name, *fence), *token);
                        self.tokens[*token].last_granted = Some(at);
                    }
                    (Op::Release { token, .. }, Said::Released) => {
                        self.tokens[*token].released = Some(*message);
                    }
                    (Op::Release { token, .. }, Said::NotHeld(_)) => {
                        if let Some(token) = self.tokens.get_mut(*token) {
                            token.repeated |= token.released == Some(*message);
                        }
                    }
                    _ => {}
                }
                self.slots[*name].clone_from(after);
            }
            Event::Granted { run, fence, .. } => {
                self.runs[*run].fence = Some(*fence);
                self.runs[*run].granted = Some(at);
            }
            Event::BodyEnded { run, end, valid } => {
                self.runs[*run].body_end = Some((at, *end, *valid));
            }
            Event::LettingGo { run } => self.runs[*run].letting_go = Some(at),
            Event::Over { run, outcome } => self.runs[*run].over = Some((at, outcome.clone())),
            Event::Turn(Turn::Quiet) => self.quiet = Some(at),
            _ => {}
        }
    }
}
