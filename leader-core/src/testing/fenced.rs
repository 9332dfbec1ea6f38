//! What a [`FencedResource`] promises, asked of any implementation.

use std::fmt::Debug;

use futures::future::join_all;

use crate::fencing::{FencedError, FencedResource, StaleFence};
use crate::token::FencingToken;

/// Checks a resource that has seen no fencing token yet. `write` makes what is written, a different thing for each number.
///
/// It tells numbers apart that differ in length, in their last digit, and where a double's precision ends; asks that a
/// refusal has both numbers and changes nothing of what was seen; and has many tokens presented at once.
///
/// ```
/// use leader_core::fencing::FenceGate;
/// use leader_core::testing::check_fenced_resource;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// check_fenced_resource(&FenceGate::new(0), |number| number).await;
/// # }
/// ```
///
/// # Panics
///
/// When a promise is broken; the text says which.
pub async fn check_fenced_resource<R>(resource: &R, write: impl Fn(u64) -> R::Write)
where
    R: FencedResource<Output: Debug, Error: Debug>,
{
    let present = |token: u64| resource.write(FencingToken::new(token), write(token));
    let admitted = async |token: u64| {
        let answer = present(token).await;
        assert!(answer.is_ok(), "{token} is not lower: {answer:?}");
    };
    let refused = async |token: u64, seen: u64| {
        let (presented, seen) = (FencingToken::new(token), FencingToken::new(seen));
        let answer = present(token).await;
        let stale = answer.as_ref().err().and_then(FencedError::stale);
        let expected = Some(StaleFence { presented, seen });
        assert_eq!(stale, expected, "{token} is lower: {answer:?}");
    };

    admitted(9).await;
    admitted(9).await;
    refused(8, 9).await;
    admitted(10).await;
    refused(9, 10).await;
    admitted(100).await;
    refused(99, 100).await;
    refused(20, 100).await;

    // Microseconds of today, and of the next century.
    for highest in [1_760_000_000_000_001, (1 << 52) + 1] {
        admitted(highest).await;
        refused(highest - 1, highest).await;
        // What was refused is not what was seen.
        refused(highest - 2, highest).await;
        admitted(highest).await;
    }

    // The last numbers before doubles have gaps; neither ascending nor descending.
    let last = (1 << 53) - 1;
    let tokens: Vec<u64> = (0..64).map(|n| last - (n * 29 + 7) % 64).collect();
    let answers = join_all(tokens.iter().map(|token| present(*token))).await;
    for (token, answer) in tokens.iter().zip(answers) {
        if let Err(error) = answer {
            let stale = error.stale();
            let stale = stale.unwrap_or_else(|| panic!("{token} brought {error:?}"));
            assert!(stale.seen > stale.presented, "{stale:?}");
            assert_eq!(stale.presented.get(), *token);
        }
    }
    refused(last - 1, last).await;
    admitted(last).await;
}
