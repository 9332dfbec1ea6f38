//! [`FenceGate`]: a value that can be reached with a fencing token only.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use super::{FencedError, FencedResource, StaleFence};
use crate::token::FencingToken;

/// A lock with a memory: only who presents a token at least as high as all before gets to the value behind it.
///
/// One gate is for one resource. What it has seen lives as long as it does: a gate that is made anew after a restart
/// admits any token, unless it is given the last one it had seen ([`resume`](Self::resume)).
///
/// Where the resource itself is elsewhere (a file, a device, a service that takes no token), the gate is one of `()`, and
/// the pass is held until the write is over:
///
/// ```
/// use leader_core::FencingToken;
/// use leader_core::fencing::{FenceGate, StaleFence};
///
/// # async fn print_labels() {}
/// # async fn example(gate: &FenceGate, fence: FencingToken) -> Result<(), StaleFence> {
/// let pass = gate.enter(fence).await?;
/// print_labels().await;
/// drop(pass);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct FenceGate<T = ()> {
    /// The highest token presented; 0 before the first, which is below every token that a store issues.
    seen: AtomicU64,
    value: Mutex<T>,
}

impl<T> FenceGate<T> {
    /// A gate that has seen no token.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            seen: AtomicU64::new(0),
            value: Mutex::new(value),
        }
    }

    /// A gate that has seen `seen`, for a value that was kept together with it.
    #[must_use]
    pub fn resume(value: T, seen: FencingToken) -> Self {
        Self {
            seen: AtomicU64::new(seen.get()),
            value: Mutex::new(value),
        }
    }

    /// Waits until whoever is inside has left, and gets to the value, unless a higher token was presented before.
    ///
    /// While the pass is held nobody else is inside, and whoever comes with a higher token waits for its end. So no write
    /// under a pass comes after one of a newer leader. A newer leader is not kept waiting by older ones that only queue:
    /// those are refused as soon as its token was presented.
    ///
    /// # Errors
    ///
    /// [`StaleFence`]: a higher token was presented before, also when its owner has not got in yet.
    ///
    /// # Cancellation safety
    ///
    /// The token counts as seen from the first poll on; dropped afterwards, the future leaves nothing else behind.
    pub async fn enter(&self, fence: FencingToken) -> Result<FencePass<'_, T>, StaleFence> {
        self.check(fence)?;
        let value = self.value.lock().await;
        // While this one queued, a higher one may have come.
        self.check(fence)?;
        Ok(FencePass { value, fence })
    }

    /// Presents a token, and gets nowhere. Takes no lock and does not wait.
    ///
    /// `Ok` says that no higher token had been presented *until now*. It promises nothing about a write that follows: a
    /// newer leader may come, and write, in between. It is right where a lock of your own is held across the check and
    /// the write, and as an early refusal before costly preparations. Otherwise take [`enter`](Self::enter).
    ///
    /// # Errors
    ///
    /// [`StaleFence`]: a higher token was presented before.
    pub fn check(&self, fence: FencingToken) -> Result<(), StaleFence> {
        // One step, so that of two who present at once the lower never thinks itself the higher. The order of everything
        // else is the lock's.
        let seen = self.seen.fetch_max(fence.get(), Ordering::AcqRel);
        if seen > fence.get() {
            return Err(StaleFence {
                presented: fence,
                seen: FencingToken::new(seen),
            });
        }
        Ok(())
    }

    /// The highest token that was presented; `None` before the first.
    #[must_use]
    pub fn seen(&self) -> Option<FencingToken> {
        match self.seen.load(Ordering::Acquire) {
            0 => None,
            seen => Some(FencingToken::new(seen)),
        }
    }

    /// Takes the gate down.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

/// Replaces the value, and gives the one before.
impl<T: Send> FencedResource for FenceGate<T> {
    type Write = T;
    type Output = T;
    type Error = std::convert::Infallible;

    async fn write(
        &self,
        fence: FencingToken,
        value: T,
    ) -> Result<T, FencedError<std::convert::Infallible>> {
        let mut pass = self.enter(fence).await?;
        Ok(std::mem::replace(&mut *pass, value))
    }
}

impl<T> fmt::Debug for FenceGate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FenceGate")
            .field("seen", &self.seen())
            .finish_non_exhaustive()
    }
}

/// The right to the value behind a [`FenceGate`], until it is dropped.
#[must_use = "it is given back when it is dropped; hold it until the write is over"]
pub struct FencePass<'a, T> {
    value: MutexGuard<'a, T>,
    fence: FencingToken,
}

impl<T> FencePass<'_, T> {
    /// The token with which it was got.
    #[must_use]
    pub fn fence(&self) -> FencingToken {
        self.fence
    }
}

impl<T> Deref for FencePass<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for FencePass<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> fmt::Debug for FencePass<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencePass")
            .field("fence", &self.fence)
            .finish_non_exhaustive()
    }
}
