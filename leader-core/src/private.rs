//! What `#[leader_election]` expands to. Not public: it changes without notice.

use std::borrow::Borrow;
use std::marker::PhantomData;
use std::sync::OnceLock;

use crate::elector::Elector;
use crate::error::LeaderError;
use crate::ext::{self, Stood as Standing};
use crate::guard;
use crate::lease::{Lease, LeaseHandle};
use crate::name::LockName;
use crate::options::{LeaseOptions, LeaseOptionsBuilder};
use crate::outcome::Skipped;
use crate::returns::{FromLeaderError, FromSkip};
use crate::scope;

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

/// What the failure of the store means.
#[derive(Clone, Copy, Debug)]
pub enum OnError {
    Return,
    Skip,
    Run,
}

/// How standing for the body ended.
#[derive(Debug)]
pub enum Stood {
    Go(Go),
    Skipped(Skipped),
    Failed(LeaderError),
}

/// The leave to run the body.
#[derive(Debug)]
pub struct Go(Ground);

#[derive(Debug)]
enum Ground {
    Lease(Lease),
    Outer(LeaseHandle),
    Open,
}

pub async fn stand<E: Elector, O: Borrow<LeaseOptions>>(
    elector: Result<E, LeaderError>,
    name: Result<LockName, LeaderError>,
    options: Result<O, LeaderError>,
    on_error: OnError,
) -> Stood {
    let standing = async { ext::stand(&elector?, name?, options?.borrow()).await };
    match (standing.await, on_error) {
        (Ok(Standing::Elected(lease)), _) => Stood::Go(Go(Ground::Lease(lease))),
        (Ok(Standing::Within(lease)), _) => Stood::Go(Go(Ground::Outer(lease))),
        (Ok(Standing::Skipped(skipped)), _) => Stood::Skipped(skipped),
        (Err(error @ LeaderError::Backend { .. }), OnError::Skip) => {
            tracing::warn!(%error, "skipped");
            Stood::Skipped(Skipped::default())
        }
        (Err(error @ LeaderError::Backend { .. }), OnError::Run) => {
            tracing::warn!(%error, "running without a lease");
            Stood::Go(Go(Ground::Open))
        }
        (Err(error), _) => Stood::Failed(error),
    }
}

impl Go {
    pub async fn run<T, F, Fut>(self, make: F) -> Result<T, LeaderError>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        match self.0 {
            Ground::Lease(lease) => guard::run(lease, |_| make()).await,
            Ground::Outer(lease) => guard::run_nested(lease, |_| make()).await,
            Ground::Open => Ok(scope::without_lease(make).await),
        }
    }
}

/// How a function's own return type says "skipped" and "failed". Pointers, so that a type that cannot say it is one
/// error at one place, and so that nothing of the type has to cross a thread.
#[derive(Debug)]
pub struct Ends<T> {
    pub skipped: fn(Skipped) -> T,
    pub failed: fn(LeaderError) -> T,
}

/// For `on_error = "return"`.
pub fn ends<T: Says>() -> Ends<T> {
    Ends {
        skipped: T::from_skip,
        failed: T::from_leader_error,
    }
}

/// Both at once, so that a type that can say neither is told once.
pub trait Says: FromSkip + FromLeaderError {}

impl<T: FromSkip + FromLeaderError> Says for T {}

pub fn skipped<T: FromSkip>() -> fn(Skipped) -> T {
    T::from_skip
}

pub fn failed<T: FromLeaderError>() -> fn(LeaderError) -> T {
    T::from_leader_error
}

/// Tells rustc the type of a body; in code that never runs.
pub fn never<T>() -> T {
    unreachable!("behind `if false`")
}

/// For `on_error = "skip"` and `"run"`: a lost lease is said as an error where the type can, and logged where it
/// cannot. Method resolution finds out which: [`ByError`] is nearer than [`ByLog`].
#[derive(Debug)]
pub struct Lossy<T>(PhantomData<fn() -> T>);

impl<T> Lossy<T> {
    #[allow(clippy::new_without_default, reason = "not public")]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

pub trait ByError<T> {
    fn failed(&self, error: LeaderError) -> Result<T, Skipped>;
}

impl<T: FromLeaderError> ByError<T> for Lossy<T> {
    fn failed(&self, error: LeaderError) -> Result<T, Skipped> {
        Ok(T::from_leader_error(error))
    }
}

pub trait ByLog<T> {
    fn failed(&self, error: LeaderError) -> Result<T, Skipped>;
}

impl<T> ByLog<T> for &Lossy<T> {
    fn failed(&self, error: LeaderError) -> Result<T, Skipped> {
        tracing::error!(%error, "the function's return type has no value for this error; it returns as if skipped");
        Err(Skipped::default())
    }
}
