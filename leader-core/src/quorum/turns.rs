//! [`Turns`]: copies of one claim are put one after the other.
//!
//! Each of them would write back a number of its own, by the nodes that happened to answer it first; after the first one
//! the others find what it was granted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::token::Token;

type Gate = Arc<tokio::sync::Mutex<()>>;

/// The claims that are under way.
#[derive(Default)]
pub(super) struct Turns {
    by_token: Mutex<HashMap<Token, Queue>>,
}

#[derive(Default)]
struct Queue {
    gate: Gate,
    /// How many copies there are.
    copies: usize,
}

impl Turns {
    /// A place among the copies of the claim of `token`.
    pub(super) fn queue(&self, token: Token) -> Place<'_> {
        let mut table = self.lock();
        let queue = table.entry(token).or_default();
        queue.copies += 1;
        Place {
            turns: self,
            token,
            gate: queue.gate.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Token, Queue>> {
        self.by_token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Place<'a> {
    turns: &'a Turns,
    token: Token,
    gate: Gate,
}

impl Place<'_> {
    /// Waits until the copies before this one are through; it is this one's turn until the guard is dropped.
    pub(super) async fn turn(&self) -> OwnedMutexGuard<()> {
        self.gate.clone().lock_owned().await
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut table = self.turns.lock();
        if let Some(queue) = table.get_mut(&self.token) {
            queue.copies -= 1;
            if queue.copies == 0 {
                table.remove(&self.token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn copies_go_one_after_the_other_and_leave_nothing() {
        let (turns, token) = (Turns::default(), Token::random());
        let (first, second, third) = (turns.queue(token), turns.queue(token), turns.queue(token));
        let other = turns.queue(Token::random());
        let turn = first.turn().await;
        assert!(other.turn().now_or_never().is_some(), "another claim");
        assert!(second.turn().now_or_never().is_none());
        drop(second);
        drop((turn, first));
        assert!(third.turn().now_or_never().is_some());
        drop((third, other));
        assert!(turns.lock().is_empty());
    }
}
