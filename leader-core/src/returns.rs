//! [`FromSkip`] and [`FromLeaderError`]: how an annotated function's own return type says "skipped" and "failed".

use crate::error::LeaderError;
use crate::outcome::{RunOutcome, Skipped};

/// A return type that can say that the function was skipped, since somebody else leads.
///
/// `()`, `Option<T>` (`None`), `RunOutcome<T, E>` (`Skipped`) and a `Result` whose `Ok` can say it. Implement it for a
/// type of your own, or give `#[leader_election(.., skipped = <expression>)]`. With both traits a response of axum's says
/// it with a status:
///
// Tested where axum is, in `examples`.
#[cfg_attr(not(doctest), doc = include_str!("axum_response.md"))]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say that the run was skipped",
    label = "when somebody else leads, the body does not run, and this type has no value for that",
    note = "return `()`, `Option<T>`, `RunOutcome<T>`, or a `Result` of one of them; or write `skipped = <expression>` in the attribute; or implement `FromSkip` for a type of your own"
)]
pub trait FromSkip: Sized {
    /// What to return when the body did not run.
    fn from_skip(skipped: Skipped) -> Self;
}

impl FromSkip for () {
    fn from_skip(_: Skipped) {}
}

impl<T> FromSkip for Option<T> {
    fn from_skip(_: Skipped) -> Self {
        None
    }
}

impl<T, E> FromSkip for RunOutcome<T, E> {
    fn from_skip(skipped: Skipped) -> Self {
        Self::Skipped(skipped)
    }
}

impl<T: FromSkip, E> FromSkip for Result<T, E> {
    fn from_skip(skipped: Skipped) -> Self {
        Ok(T::from_skip(skipped))
    }
}

/// A return type that can say that the store failed, or that the lease was lost.
///
/// `Result<T, E>` can where `E: From<LeaderError>`. Implement it for a type of your own, as [`FromSkip`] shows; or
/// write `on_error = "skip"` or `"run"` in the attribute.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say that the store failed or that the lease was lost",
    label = "this type has no value for a `LeaderError`",
    note = "return a `Result<T, E>` where `E: From<LeaderError>`, that has a variant `Leader(#[from] LeaderError)` say; or write `on_error = \"skip\"` or `on_error = \"run\"` in the attribute; or implement `FromLeaderError` for a type of your own"
)]
pub trait FromLeaderError: Sized {
    /// What to return when there was no election, or no valid lease to the end.
    fn from_leader_error(error: LeaderError) -> Self;
}

// What is missing is said by the trait's own words, which know what is meant.
#[diagnostic::do_not_recommend]
impl<T, E: From<LeaderError>> FromLeaderError for Result<T, E> {
    fn from_leader_error(error: LeaderError) -> Self {
        Err(E::from(error))
    }
}
