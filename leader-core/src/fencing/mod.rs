//! Fencing: resources that refuse a leader whose time is over.
//!
//! A lease cannot undo what has left the process. A leader is paused in the middle of a write, its lease ends, another
//! leads, and then the write arrives. Only the resource can refuse it: it remembers the highest [`FencingToken`] that
//! it has seen, and refuses a lower one. Every write carries [`lease.fence()`](crate::LeaseHandle::fence).
//!
//! | the resource | what makes it fenced |
//! |---|---|
//! | a value in this process | [`FenceGate`]: the value can be reached with a fencing token only |
//! | something else that this process alone writes: a file, a device | a [`FenceGate`] that is held across the write |
//! | a row of a SQL database | a column, and `WHERE fence <= $2` in the statement that writes; see the example `fenced_postgres` |
//! | a value in Redis | `leader_redis::FencedKey` |
//! | a service of your own | [`FencedResource`], and [`StaleFence`] in its answers |
//!
//! Equal tokens are admitted: one holder writes often. With several slots, each slot's holder has a token of its own, and
//! the one elected first has the lower: give each slot a resource of its own, or do not fence.
//!
//! ```
//! use leader_core::fencing::{FenceGate, StaleFence};
//! use leader_core::{ElectorExt, LeaseOptions, LocalElector};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let balance = FenceGate::new(100_u64);
//! let (elector, options) = (LocalElector::new(), LeaseOptions::default());
//!
//! let first = elector.try_acquire("account-7", &options).await?.ok_or("somebody else leads")?;
//! let old = first.fence();
//! *balance.enter(old).await? += 20;
//! first.release().await?;
//!
//! let second = elector.try_acquire("account-7", &options).await?.ok_or("somebody else leads")?;
//! *balance.enter(second.fence()).await? -= 50;
//!
//! // The first leader does not know yet that its time is over.
//! let refused = balance.enter(old).await.err().ok_or("it was let in")?;
//! assert_eq!(refused, StaleFence { presented: old, seen: second.fence() });
//! assert_eq!(balance.into_inner(), 70);
//! # Ok(())
//! # }
//! ```
//!
//! # A check alone promises little
//!
//! "Is this token still the highest?", and then the write: in between, a newer leader may have come and written, and the
//! old write lands on top of the new. The check and the write must be **one step**: one SQL statement, one script, one
//! lock held across both.
//!
//! # What fencing tokens assume
//!
//! - **The resource keeps what it has seen.** When it forgets (the row is deleted, the key expires, the process of a gate
//!   restarts) it admits anybody until the next leader writes.
//! - **The new leader writes.** A resource knows only the tokens that reached it. Until the new leader's first write,
//!   the old one's still count. A new leader that first reads, and then decides what to write, writes first: a statement
//!   that changes nothing but the token.
//! - **Tokens grow.** The store issues `max(last + 1, server time in microseconds)`. Where the last number was lost (a
//!   failover to a replica that lacked it, a flush), the order rests on the clock: that of the new primary must not be
//!   further behind the old one's than the failover took. See [`FencingToken`].
//! - **All tokens come from one name.** Those of two names, or of two stores, say nothing about each other. Guard a
//!   resource by one name.
//!
//! What can happen in which mode, and what to choose: [`guide::accidents`](crate::guide::accidents).

mod gate;
mod resource;

use std::fmt;

pub use gate::{FenceGate, FencePass};
pub use resource::{FencedError, FencedResource};

use crate::token::FencingToken;

/// A write was refused: the resource has seen a higher fencing token, so another has been elected since.
///
/// Its holder's lease is lost, whether or not it knows that yet. Trying again cannot help; standing again can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StaleFence {
    /// The token that came with the write.
    pub presented: FencingToken,
    /// The highest that the resource has seen; it is greater than `presented`.
    pub seen: FencingToken,
}

impl fmt::Display for StaleFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { presented, seen } = self;
        write!(
            f,
            "the write was refused: its fencing token {presented} is older than {seen}, which was seen already; another \
             has been elected since"
        )
    }
}

impl std::error::Error for StaleFence {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_both_numbers_and_is_an_error_among_others() {
        let (presented, seen) = (FencingToken::new(41), FencingToken::new(42));
        let stale: Box<dyn std::error::Error + Send + Sync> =
            Box::new(StaleFence { presented, seen });
        let told = stale.to_string();
        assert!(told.contains("41 is older than 42"), "{told}");
    }
}
