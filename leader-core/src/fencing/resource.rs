//! [`FencedResource`]: what a resource promises that takes fencing tokens.

use std::error::Error;
use std::fmt;

use super::StaleFence;
use crate::token::FencingToken;

/// A resource that refuses a fencing token lower than the highest it has seen.
///
/// What an implementation promises:
///
/// - The check and the write are one step. No newer leader's write can come in between.
/// - A token that is as high as the highest seen, or higher, is admitted and remembered; a lower one is
///   [`Stale`](FencedError::Stale), with both numbers, and changes nothing.
/// - A write that failed, or whose end is not known, may have been remembered, and may have been made.
///
/// The feature `testing` has a suite that asks this of any implementation: `testing::check_fenced_resource`.
///
/// ```
/// use leader_core::FencingToken;
/// use leader_core::fencing::{FencedError, FencedResource, StaleFence};
///
/// # type Pool = ();
/// # #[derive(Debug)] struct DbError;
/// struct Balance { pool: Pool, account: i64 }
///
/// impl FencedResource for Balance {
///     type Write = i64;
///     type Output = ();
///     type Error = DbError;
///
///     async fn write(&self, fence: FencingToken, balance: i64) -> Result<(), FencedError<DbError>> {
///         // UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
/// #       let (rows, seen) = (0, fence);
///         if rows == 0 {
///             // SELECT fence FROM accounts WHERE id = $3
///             return Err(StaleFence { presented: fence, seen }.into());
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait FencedResource: Send + Sync {
    /// What is written.
    type Write: Send;
    /// What a write gives back.
    type Output;
    /// Why a resource fails, apart from refusing a token.
    type Error;

    /// Writes, if no higher token than `fence` was seen before.
    ///
    /// # Errors
    ///
    /// [`FencedError::Stale`] when one was, and nothing has changed; [`FencedError::Resource`] when the resource failed.
    ///
    /// # Cancellation safety
    ///
    /// When the future is dropped, the write may have been made, and may yet be.
    fn write(
        &self,
        fence: FencingToken,
        write: Self::Write,
    ) -> impl Future<Output = Result<Self::Output, FencedError<Self::Error>>> + Send;
}

/// Why a fenced write was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FencedError<E> {
    /// A higher fencing token was seen before: another has been elected since.
    Stale(StaleFence),
    /// The resource failed. Whether the write was made is for its error to say.
    Resource(E),
}

impl<E> FencedError<E> {
    /// The refusal, if it was one.
    #[must_use]
    pub fn stale(&self) -> Option<StaleFence> {
        match self {
            Self::Stale(stale) => Some(*stale),
            Self::Resource(_) => None,
        }
    }
}

impl<E> From<StaleFence> for FencedError<E> {
    fn from(stale: StaleFence) -> Self {
        Self::Stale(stale)
    }
}

impl<E: fmt::Display> fmt::Display for FencedError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale(stale) => fmt::Display::fmt(stale, f),
            Self::Resource(error) => fmt::Display::fmt(error, f),
        }
    }
}

/// Transparent: the message is the inner error's, and so is the source.
impl<E: Error + 'static> Error for FencedError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Stale(stale) => stale.source(),
            Self::Resource(error) => error.source(),
        }
    }
}
