//! What `#[leader_election]` expands to. Not public: it changes without notice.

pub use futures::Stream;

use std::borrow::Borrow;
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::sync::OnceLock;

use futures::FutureExt;
use futures::future::Either;

use crate::elector::Elector;
use crate::error::LeaderError;
use crate::ext::{self, Stood as Standing};
use crate::guard::{self, Hold};
use crate::name::LockName;
use crate::options::LeaseOptionsBuilder;
pub use crate::options::{LeaseOptions, OnLost};
use crate::outcome::Skipped;
pub use crate::returns::{FromLeaderError, FromSkip};
use crate::scope;
pub use crate::scope::current_elector;
use crate::stream::annotated::{LastItems, WhenFailing};

/// Options that are literals in an attribute: built once for the function, not once for the call.
#[derive(Debug)]
pub struct Options {
    make: fn(LeaseOptionsBuilder) -> LeaseOptionsBuilder,
    made: OnceLock<LeaseOptions>,
}

impl Options {
    pub const fn new(make: fn(LeaseOptionsBuilder) -> LeaseOptionsBuilder) -> Self {
        Self {
            make,
            made: OnceLock::new(),
        }
    }

    pub fn get(&self) -> Result<&LeaseOptions, LeaderError> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made = (self.make)(LeaseOptions::builder()).build()?;
        Ok(self.made.get_or_init(|| made))
    }
}

pub fn name<N>(name: N) -> Result<LockName, LeaderError>
where
    N: TryInto<LockName, Error: Into<LeaderError>>,
{
    name.try_into().map_err(Into::into)
}

/// Options of the user's own, labelled with the attribute's pattern unless they have one.
pub fn labelled(options: &LeaseOptions, pattern: &'static str) -> LeaseOptions {
    options.clone().labelled(pattern)
}

/// A copy of what a parameter borrows, for a body that is made when the borrow is over.
pub struct Copied<T: ToOwned + ?Sized>(T::Owned);

impl<T: ToOwned + ?Sized> Copied<T> {
    pub fn of(borrowed: &T) -> Self {
        Self(borrowed.to_owned())
    }

    pub fn get(&self) -> &T {
        self.0.borrow()
    }
}

impl<T: ToOwned + ?Sized> fmt::Debug for Copied<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Copied")
    }
}

/// A clone of the elector that is given, for what lives on when the call is over. Method resolution looks through a
/// reference to one that can be cloned before it takes the reference itself.
pub trait Keep {
    #[must_use]
    fn keep_elector(&self) -> Self;
}

impl<E: Clone> Keep for E {
    fn keep_elector(&self) -> Self {
        self.clone()
    }
}

/// How standing for the body ended.
#[derive(Debug)]
pub enum Stood {
    Go(Go),
    Skipped(Skipped),
    Failed(LeaderError),
}

/// The leave to run the body: under a lease, or without one.
#[derive(Debug)]
pub struct Go(Option<Hold>);

pub async fn stand<E: Elector, O: Borrow<LeaseOptions>>(
    elector: Result<E, LeaderError>,
    name: Result<LockName, LeaderError>,
    options: Result<O, LeaderError>,
    when_failing: WhenFailing,
) -> Stood {
    let standing = async { ext::stand(&elector?, name?, options?.borrow()).await };
    match (standing.await, when_failing) {
        (Ok(Standing::Leading(hold)), _) => Stood::Go(Go(Some(hold))),
        (Ok(Standing::Skipped(skipped)), _) => Stood::Skipped(skipped),
        (Err(error @ LeaderError::Backend { .. }), WhenFailing::Skip) => {
            tracing::warn!(%error, "skipped");
            Stood::Skipped(Skipped::default())
        }
        (Err(error @ LeaderError::Backend { .. }), WhenFailing::Run) => {
            tracing::warn!(%error, "running without a lease");
            Stood::Go(Go(None))
        }
        (Err(error), _) => Stood::Failed(error),
    }
}

impl Go {
    pub fn run<T, F, Fut>(self, make: F) -> impl Future<Output = Result<T, LeaderError>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        match self.0 {
            Some(hold) => Either::Left(guard::run(hold, |_| make())),
            None => Either::Right(scope::without_lease(make).map(Ok)),
        }
    }
}

/// Tells rustc the type of a body; in code that never runs.
pub fn never<T>() -> T {
    unreachable!("behind `if false`")
}

/// Whether a type can say an error. Method resolution finds out: the trait for the type that can is nearer than the
/// trait for any type.
#[derive(Debug)]
pub struct Probe<T>(PhantomData<fn() -> T>);

impl<T> Probe<T> {
    #[allow(clippy::new_without_default, reason = "not public")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

/// For `on_error = "skip"` and `"run"`: a lost lease is said as an error where the type can.
pub trait SaysError<T> {
    fn failed(&self, error: LeaderError) -> Result<T, Skipped>;
}

impl<T: FromLeaderError> SaysError<T> for Probe<T> {
    fn failed(&self, error: LeaderError) -> Result<T, Skipped> {
        Ok(T::from_leader_error(error))
    }
}

/// As [`SaysError`]; it is logged where the type cannot.
pub trait LogsError<T> {
    fn failed(&self, error: LeaderError) -> Result<T, Skipped>;
}

impl<T> LogsError<T> for &Probe<T> {
    fn failed(&self, error: LeaderError) -> Result<T, Skipped> {
        tracing::error!(%error, "the function's return type has no value for this error; it returns as if skipped");
        Err(Skipped::default())
    }
}

/// For streams: an error is the last item where items can say it.
pub trait LastIsError<T, L> {
    fn last_items(&self) -> LastItems<T, L>;
}

impl<T, E: From<LeaderError> + Send> LastIsError<Result<T, E>, E> for &&Probe<Result<T, E>> {
    fn last_items(&self) -> LastItems<Result<T, E>, E> {
        LastItems::errors()
    }
}

/// As [`LastIsError`], for errors that must not be kept where the stream is to be `Send`.
pub trait LastIsErrorAtOnce<T> {
    fn last_items(&self) -> LastItems<T, Infallible>;
}

impl<T, E: From<LeaderError>> LastIsErrorAtOnce<Result<T, E>> for &Probe<Result<T, E>> {
    fn last_items(&self) -> LastItems<Result<T, E>, Infallible> {
        LastItems::errors_at_once()
    }
}

/// As [`LastIsError`], for items that cannot.
pub trait LastIsItem<T> {
    fn last_items(&self) -> LastItems<T, Infallible>;
}

impl<T> LastIsItem<T> for Probe<T> {
    fn last_items(&self) -> LastItems<T, Infallible> {
        LastItems::none()
    }
}
