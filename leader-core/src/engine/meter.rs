//! What the engine counts and measures, in one place: the feature `metrics` decides whether that is anything.

#[cfg(not(feature = "metrics"))]
mod nothing;
#[cfg(feature = "metrics")]
mod recorded;

#[cfg(not(feature = "metrics"))]
pub(crate) use self::nothing::*;
#[cfg(feature = "metrics")]
pub(crate) use self::recorded::*;

/// What came of a request to extend one lease.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extension {
    Done,
    Lost,
    Failed,
}
