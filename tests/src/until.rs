//! Waiting for a condition: no test sleeps for a time that somebody guessed.

use std::panic::Location;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

const PAUSE: Duration = Duration::from_millis(3);

/// Polls `condition` every few milliseconds until it holds.
///
/// Time is Tokio's, so under `tokio::time::pause` the limit passes without waiting.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use leader_tests::until;
/// use std::time::Duration;
///
/// let mut asked = 0;
/// until("the third question is asked", Duration::from_secs(1), async || {
///     asked += 1;
///     asked == 3
/// })
/// .await;
/// # }
/// ```
///
/// # Panics
///
/// When the condition does not hold within `limit`; the panic's text has `what` and the place of the call.
#[track_caller]
pub fn until(
    what: &str,
    limit: Duration,
    mut condition: impl AsyncFnMut() -> bool,
) -> impl Future<Output = ()> {
    until_some(what, limit, async move || condition().await.then_some(()))
}

/// Polls `attempt` every few milliseconds until it gives a value.
///
/// # Panics
///
/// When there is no value within `limit`; the panic's text has `what` and the place of the call.
#[track_caller]
pub fn until_some<T>(
    what: &str,
    limit: Duration,
    mut attempt: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + limit;
        loop {
            // The attempt itself may hang, on a frozen server for one.
            match timeout_at(deadline, attempt()).await {
                Ok(Some(value)) => return value,
                Ok(None) if Instant::now() < deadline => sleep(PAUSE).await,
                Ok(None) | Err(_) => panic!("not within {limit:?}: {what} (awaited at {caller})"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "not within 1s: pigs fly")]
    async fn a_condition_that_hangs_still_ends() {
        until("pigs fly", Duration::from_secs(1), std::future::pending).await;
    }
}
