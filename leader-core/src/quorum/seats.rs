//! What a quorum knows of its tokens: which one stands for them on the nodes, and what was granted to it.
//!
//! A token that some nodes were told to give up is dead on those nodes, and a late copy of that request would end what
//! it is granted afterwards. So each round of claims has a token of its own, and only a round that failed for want of
//! answers is asked again with the same.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::nodes::NodeSet;
use crate::engine::kept;
use crate::options::LeaseOptions;
use crate::store::{Claim, Extension};
use crate::token::{FencingToken, Token};

/// For how long claims of a token that was ended are refused, when nobody says otherwise: as long as the engine does.
pub(super) const MARK: Duration = Duration::from_secs(60);

impl Seat {
    /// Of a token that nothing is known of, and that no node has.
    pub(super) fn unknown(token: Token) -> Self {
        Self {
            token,
            granted: None,
            unseen: NodeSet::default(),
            astray: NodeSet::default(),
            ending: false,
            until: Instant::now(),
        }
    }
}

/// A token's place on the nodes.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    /// What stands for the token on the nodes.
    pub(super) token: Token,
    /// The slot and the number, once they were granted.
    pub(super) granted: Option<(u32, FencingToken)>,
    /// The nodes that were sent a claim whose answer was not seen: it may yet arrive there.
    pub(super) unseen: NodeSet,
    /// The nodes that have granted another slot than the majority has.
    pub(super) astray: NodeSet,
    /// A release of it was sent: nothing of it is written any more.
    ending: bool,
    /// When nothing is left of it on any node.
    until: Instant,
}

enum Known {
    Seat(Seat),
    /// The token was ended while a claim of it might be on its way.
    Ended {
        until: Instant,
    },
}

impl Known {
    fn until(&self) -> Instant {
        match self {
            Self::Seat(seat) => seat.until,
            Self::Ended { until } => *until,
        }
    }
}

/// The tokens of one quorum. A token leaves with its release; those that nobody releases, since their lease is over, are
/// forgotten when there are many.
#[derive(Default)]
pub(super) struct Seats {
    known: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_token: HashMap<Token, Known>,
    /// How many tokens were drawn.
    drawn: u64,
    /// At how many to look for what can be forgotten.
    many: usize,
}

impl Table {
    fn put(&mut self, token: Token, known: Known) {
        const FEW: usize = 64;
        if self.by_token.len() >= self.many.max(FEW) {
            let now = Instant::now();
            self.by_token.retain(|_, known| known.until() > now);
            self.many = 2 * self.by_token.len();
        }
        self.by_token.insert(token, known);
    }

    /// The seat of `token`, if its token on the nodes is still `own`.
    fn seat(&mut self, token: Token, own: Token) -> Option<&mut Seat> {
        match self.by_token.get_mut(&token) {
            Some(Known::Seat(seat)) if seat.token == own => Some(seat),
            _ => None,
        }
    }
}

impl Seats {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The seat with which to claim, all nodes of it unseen from now on; `None` when the token was ended.
    pub(super) fn open(&self, claim: &Claim, all: NodeSet) -> Option<Seat> {
        let now = Instant::now();
        let until = now + kept(bounded(claim.lease)) + MARK;
        let mut table = self.lock();
        match table.by_token.get_mut(&claim.token) {
            Some(Known::Ended { until }) if *until > now => return None,
            Some(Known::Seat(seat)) if seat.until > now => {
                seat.until = seat.until.max(until);
                let as_it_was = seat.clone();
                seat.unseen = all;
                return Some(as_it_was);
            }
            _ => {}
        }
        table.drawn += 1;
        let seat = Seat {
            token: derived(claim.token, table.drawn),
            granted: None,
            unseen: NodeSet::default(),
            astray: NodeSet::default(),
            ending: false,
            until,
        };
        let unseen = Seat {
            unseen: all,
            ..seat.clone()
        };
        table.put(claim.token, Known::Seat(unseen));
        Some(seat)
    }

    /// Notes what was granted, or what is still open.
    pub(super) fn note(&self, token: Token, of: &Seat) {
        if let Some(seat) = self.lock().seat(token, of.token) {
            seat.granted = of.granted;
            seat.unseen = of.unseen;
            seat.astray = of.astray;
        }
    }

    /// Nodes are to be sent a claim whose answer nobody waits for. Not when a release was sent meanwhile: it would not
    /// find what arrives after it.
    pub(super) fn may_send(&self, token: Token, own: Token, nodes: NodeSet) -> bool {
        match self.lock().seat(token, own) {
            Some(seat) if !seat.ending => {
                seat.unseen |= nodes;
                true
            }
            _ => false,
        }
    }

    /// The seat of a token, and the lease it is to have.
    pub(super) fn extend(&self, extension: &Extension) -> Option<Seat> {
        let until = Instant::now() + kept(bounded(extension.lease)) + MARK;
        match self.lock().by_token.get_mut(&extension.token)? {
            Known::Seat(seat) => {
                seat.until = seat.until.max(until);
                Some(seat.clone())
            }
            Known::Ended { .. } => None,
        }
    }

    /// The seat of a token that is about to be released.
    pub(super) fn leave(&self, token: Token) -> Option<Seat> {
        match self.lock().by_token.get_mut(&token)? {
            Known::Seat(seat) => {
                seat.ending = true;
                Some(seat.clone())
            }
            Known::Ended { .. } => None,
        }
    }

    #[cfg(any(test, feature = "testing"))]
    pub(super) fn of(&self, token: Token) -> Option<Seat> {
        match self.lock().by_token.get(&token)? {
            Known::Seat(seat) => Some(seat.clone()),
            Known::Ended { .. } => None,
        }
    }

    /// The token on the nodes is dead: the next claim gets another.
    pub(super) fn forget(&self, token: Token, own: Token) {
        let mut table = self.lock();
        if table.seat(token, own).is_some() {
            table.by_token.remove(&token);
        }
    }

    /// Claims of the token are refused for `mark`.
    pub(super) fn end(&self, token: Token, mark: Duration) {
        let until = Instant::now() + kept(bounded(mark));
        self.lock().put(token, Known::Ended { until });
    }

    /// How many tokens may have something on the nodes.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn len(&self) -> usize {
        let now = Instant::now();
        let table = self.lock();
        let live = |known: &&Known| matches!(known, Known::Seat(seat) if seat.until > now);
        table.by_token.values().filter(live).count()
    }
}

/// What anybody asks for is bounded, so that adding it to a clock cannot overflow.
fn bounded(duration: Duration) -> Duration {
    duration.min(LeaseOptions::MAX_LEASE)
}

/// A token of its own for each round: as secret as the one that it comes from, and as different from all others.
fn derived(token: Token, drawn: u64) -> Token {
    let number = u128::from_be_bytes(*token.as_bytes());
    // An odd factor, so that no two of the first 2^64 are alike.
    let spread = u128::from(drawn).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    Token::from_bytes(number.wrapping_add(spread).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LockName, NodeId};

    fn claim(token: Token) -> Claim {
        let lease = Duration::from_secs(10);
        Claim::new(
            LockName::new("name").unwrap(),
            NodeId::new("node"),
            token,
            lease,
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_was_forgotten_comes_back_as_another() {
        let seats = Seats::default();
        let token = Token::random();
        let first = seats.open(&claim(token), NodeSet::all(3)).unwrap();
        let again = seats.open(&claim(token), NodeSet::all(3)).unwrap();
        assert!(first.token == again.token, "asked again with the same");
        assert_eq!(again.unseen, NodeSet::all(3), "the first was not answered");
        seats.forget(token, first.token);
        let next = seats.open(&claim(token), NodeSet::all(3)).unwrap();
        assert!(next.token != first.token, "a dead token is not used again");
        assert_eq!(next.unseen, NodeSet::default());
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_releases_is_forgotten() {
        let seats = Seats::default();
        for _ in 0..10_000 {
            let token = Token::random();
            seats.open(&claim(token), NodeSet::all(3)).unwrap();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let known = seats.lock().by_token.len();
        assert!(known <= 200, "{known} of 10000 tokens are still known");
    }
}
