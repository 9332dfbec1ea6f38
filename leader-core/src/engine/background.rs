//! What the engine takes from its surroundings: tokens, and a place to run background work. Both can be replaced in
//! tests, so that a simulation decides every token and stops a candidate's every task.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use crate::token::Token;

#[cfg(any(test, feature = "testing"))]
use super::BoxFuture;

/// Where attempts get their tokens from. Randomness is drawn for many of them at once, since each draw is a system call.
///
/// A process that forks has what was drawn twice, and two holders of one token would be taken for the same. No elector is
/// meant to live on in both halves, since they would share its connections; for one that does all the same, the time of
/// each attempt, which the operating system's bytes hide, makes its tokens differ.
pub(crate) struct Tokens {
    begun: Instant,
    drawn: Mutex<Vec<u128>>,
    #[cfg(any(test, feature = "testing"))]
    seeded: Option<Seeded>,
}

/// For how many tokens randomness is drawn at once.
const DRAWN: usize = 64;

#[cfg(any(test, feature = "testing"))]
struct Seeded {
    seed: u64,
    drawn: std::sync::atomic::AtomicU64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            drawn: Mutex::default(),
            #[cfg(any(test, feature = "testing"))]
            seeded: None,
        }
    }
}

impl Tokens {
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn seeded(seed: u64) -> Self {
        let drawn = std::sync::atomic::AtomicU64::new(0);
        Self {
            seeded: Some(Seeded { seed, drawn }),
            ..Self::default()
        }
    }

    /// The token of an attempt that begins `now`.
    pub(crate) fn fresh(&self, now: Instant) -> Token {
        #[cfg(any(test, feature = "testing"))]
        if let Some(Seeded { seed, drawn }) = &self.seeded {
            let drawn = drawn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let number = u128::from(*seed) << 64 | u128::from(drawn);
            return Token::from_bytes(number.to_be_bytes());
        }
        let time = now.saturating_duration_since(self.begun).as_nanos();
        self.draw().map_or_else(Token::random, |random| {
            Token::from_bytes((random ^ time).to_ne_bytes())
        })
    }

    fn draw(&self) -> Option<u128> {
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.is_empty() {
            let mut bytes = [0; 16 * DRAWN];
            getrandom::fill(&mut bytes).ok()?;
            let (numbers, _) = bytes.as_chunks();
            drawn.extend(numbers.iter().copied().map(u128::from_ne_bytes));
        }
        drawn.pop()
    }
}

/// How background work becomes a task.
#[derive(Default)]
pub(crate) struct Background {
    #[cfg(any(test, feature = "testing"))]
    pub(crate) wrap: Option<Wrap>,
}

/// Makes of background work what is to be spawned in its place.
#[cfg(any(test, feature = "testing"))]
pub(crate) type Wrap = Box<dyn Fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send + Sync>;

impl Background {
    #[cfg(not(any(test, feature = "testing")))]
    #[expect(clippy::unused_self, reason = "only tests wrap background work")]
    pub(crate) fn wrap<F>(&self, work: F) -> F {
        work
    }

    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn wrap(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> BoxFuture<'static, ()> {
        match &self.wrap {
            Some(wrap) => wrap(Box::pin(work)),
            None => Box::pin(work),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_token_is_given_twice() {
        let (tokens, now) = (Tokens::default(), Instant::now());
        let given: HashSet<Token> = (0..3 * DRAWN).map(|_| tokens.fresh(now)).collect();
        assert_eq!(given.len(), 3 * DRAWN);
    }

    #[test]
    fn both_halves_of_a_forked_process_draw_tokens_of_their_own() {
        let (parent, child) = (Tokens::default(), Tokens::default());
        let now = Instant::now();
        parent.fresh(now);
        child
            .drawn
            .lock()
            .unwrap()
            .clone_from(&parent.drawn.lock().unwrap());
        let in_the_child = Tokens {
            begun: parent.begun,
            ..child
        };
        assert_ne!(
            parent.fresh(now),
            in_the_child.fresh(now + Duration::from_nanos(1))
        );
    }
}
