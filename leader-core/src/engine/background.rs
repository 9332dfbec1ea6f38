//! What the engine takes from its surroundings: tokens, and a place to run background work. Both can be replaced in
//! tests, so that a simulation decides every token and stops a candidate's every task.

use crate::token::Token;

#[cfg(any(test, feature = "testing"))]
use super::BoxFuture;

/// Where attempts get their tokens from.
#[derive(Default)]
pub(crate) struct Tokens {
    #[cfg(any(test, feature = "testing"))]
    seeded: Option<Seeded>,
}

#[cfg(any(test, feature = "testing"))]
struct Seeded {
    seed: u64,
    drawn: std::sync::atomic::AtomicU64,
}

impl Tokens {
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn seeded(seed: u64) -> Self {
        let drawn = std::sync::atomic::AtomicU64::new(0);
        Self {
            seeded: Some(Seeded { seed, drawn }),
        }
    }

    #[cfg_attr(
        not(any(test, feature = "testing")),
        expect(clippy::unused_self, reason = "only tests choose their tokens")
    )]
    pub(crate) fn fresh(&self) -> Token {
        #[cfg(any(test, feature = "testing"))]
        if let Some(Seeded { seed, drawn }) = &self.seeded {
            let drawn = drawn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let number = u128::from(*seed) << 64 | u128::from(drawn);
            return Token::from_bytes(number.to_be_bytes());
        }
        Token::random()
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
