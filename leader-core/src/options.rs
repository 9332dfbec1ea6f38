//! [`LeaseOptions`]: the four time limits and how they fit together, checked when built.

use std::sync::Arc;
use std::time::Duration;

use crate::error::LeaderError;

/// What happens to the guarded work when its lease is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnLost {
    /// The guarded future is dropped and never polled again. The default, and what keeps two leaders from working at
    /// the same time.
    #[default]
    Cancel,
    /// The guarded future goes on; [`LeaseHandle::cancellation_token`](crate::LeaseHandle::cancellation_token) fires,
    /// and the body is trusted to come to an end by itself. The run still ends with
    /// [`LeaderError::LeaseLost`](crate::LeaderError::LeaseLost).
    Notify,
}

/// How to stand for election, and what the lease is like.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `wait` | 5 s | how long a candidate waits to be elected; zero is exactly one attempt, [`Duration::MAX`] waits for ever |
/// | `lease` | 60 s | how long a lease lives after a grant or an extension; 10 ms to 365 days |
/// | `min_lease` | 0 | how long the slot is kept even when the work ends early, so that clocks which disagree do not run a job twice |
/// | `auto_extend` | `false` | extend in the background, at a third of the lease, while the work runs |
/// | `on_lost` | [`OnLost::Cancel`] | what happens to the work when the lease is lost |
/// | `slots` | 1 | how many may lead at once; 1 to 1024 |
/// | `max_tenure` | none | after it, extension stops and the lease is lost: a stuck body cannot lead for ever |
/// | `name_pattern` | the name | the label of spans and metrics, when names are filled in from data |
///
/// For a job that five schedulers start at about the same time, and that must run once: `wait` zero, so that who comes
/// second is skipped, and a `min_lease` above the spread of their clocks, so that who comes late is skipped too. A
/// `wait` that outlasts `min_lease` would run the job again.
///
/// With a `wait`, a store that fails for a moment is asked again until the wait is over; a `wait` of zero asks once.
///
/// ```
/// use leader_core::LeaseOptions;
/// use std::time::Duration;
///
/// let options = LeaseOptions::builder()
///     .wait(Duration::from_millis(500))
///     .lease(Duration::from_secs(10))
///     .min_lease(Duration::from_secs(1))
///     .auto_extend(true)
///     .build()?;
/// assert_eq!(options.slots(), 1);
///
/// let mistake = LeaseOptions::builder()
///     .lease(Duration::from_secs(1))
///     .min_lease(Duration::from_secs(2))
///     .build();
/// assert!(mistake.is_err());
/// # Ok::<(), leader_core::LeaderError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    wait: Duration,
    lease: Duration,
    min_lease: Duration,
    auto_extend: bool,
    on_lost: OnLost,
    slots: u32,
    max_tenure: Option<Duration>,
    name_pattern: Option<Arc<str>>,
    fail_fast: bool,
}

impl Default for LeaseOptions {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(5),
            lease: Duration::from_secs(60),
            min_lease: Duration::ZERO,
            auto_extend: false,
            on_lost: OnLost::default(),
            slots: 1,
            max_tenure: None,
            name_pattern: None,
            fail_fast: false,
        }
    }
}

impl LeaseOptions {
    /// The shortest lease: below it, clock granularity and a round trip leave nothing to work with.
    pub const MIN_LEASE: Duration = Duration::from_millis(10);
    /// The longest lease. A longer one is a lock that nobody ever gets back after a crash.
    pub const MAX_LEASE: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    /// The largest number of slots of one name.
    pub const MAX_SLOTS: u32 = 1024;

    /// Starts from the defaults.
    pub fn builder() -> LeaseOptionsBuilder {
        LeaseOptionsBuilder {
            options: Self::default(),
        }
    }

    /// How long a candidate waits to be elected.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// How long a lease lives after a grant or an extension.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// How long the slot is kept even when the work ends early.
    #[must_use]
    pub fn min_lease(&self) -> Duration {
        self.min_lease
    }

    /// Whether the lease is extended in the background while the work runs.
    #[must_use]
    pub fn auto_extend(&self) -> bool {
        self.auto_extend
    }

    /// What happens to the work when the lease is lost.
    #[must_use]
    pub fn on_lost(&self) -> OnLost {
        self.on_lost
    }

    /// How many may lead at once.
    #[must_use]
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// The longest time from grant to end, extensions included.
    #[must_use]
    pub fn max_tenure(&self) -> Option<Duration> {
        self.max_tenure
    }

    /// The label of spans and metrics, when one was set.
    #[must_use]
    pub fn name_pattern(&self) -> Option<&str> {
        self.name_pattern.as_deref()
    }

    pub(crate) fn shared_pattern(&self) -> Option<Arc<str>> {
        self.name_pattern.clone()
    }

    /// With `pattern` as the label of spans and metrics, unless there is one.
    pub(crate) fn labelled(mut self, pattern: &str) -> Self {
        self.name_pattern.get_or_insert_with(|| Arc::from(pattern));
        self
    }

    /// For a campaign: one attempt waits until it is elected, its lease is extended, and a store that fails is told of
    /// at once, since a campaign has a pace of its own for asking again.
    pub(crate) fn for_a_campaign(mut self) -> Self {
        self.wait = Duration::MAX;
        self.auto_extend = true;
        self.fail_fast = true;
        self
    }

    /// Whether an attempt ends with the first failure of the store, however long its wait.
    pub(crate) fn fails_fast(&self) -> bool {
        self.fail_fast
    }

    /// A lease's time, or the error that names `option`.
    pub(crate) fn check_lease(option: &'static str, lease: Duration) -> Result<(), LeaderError> {
        if lease < Self::MIN_LEASE {
            return Err(invalid(
                option,
                format!("{lease:?} is too short; a lease lives 10 ms at least"),
            ));
        }
        if lease > Self::MAX_LEASE {
            return Err(invalid(
                option,
                format!("{lease:?} is too long; a lease lives 365 days at most"),
            ));
        }
        Ok(())
    }
}

fn invalid(option: &'static str, reason: String) -> LeaderError {
    LeaderError::InvalidOptions { option, reason }
}

/// Builds [`LeaseOptions`]; see there for each option's meaning and default.
#[derive(Clone, Debug)]
#[must_use = "options are made by `build()`"]
pub struct LeaseOptionsBuilder {
    options: LeaseOptions,
}

impl LeaseOptionsBuilder {
    /// How long to wait to be elected. Default 5 s.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.options.wait = wait;
        self
    }

    /// How long a lease lives after a grant or an extension. Default 60 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.lease = lease;
        self
    }

    /// How long the slot is kept even when the work ends early. Default 0.
    pub fn min_lease(mut self, min_lease: Duration) -> Self {
        self.options.min_lease = min_lease;
        self
    }

    /// Whether to extend in the background while the work runs. Default `false`.
    pub fn auto_extend(mut self, auto_extend: bool) -> Self {
        self.options.auto_extend = auto_extend;
        self
    }

    /// What happens to the work when the lease is lost. Default [`OnLost::Cancel`].
    pub fn on_lost(mut self, on_lost: OnLost) -> Self {
        self.options.on_lost = on_lost;
        self
    }

    /// How many may lead at once. Default 1.
    pub fn slots(mut self, slots: u32) -> Self {
        self.options.slots = slots;
        self
    }

    /// The longest time from grant to end, extensions included. Default none.
    pub fn max_tenure(mut self, max_tenure: Duration) -> Self {
        self.options.max_tenure = Some(max_tenure);
        self
    }

    /// The label of spans and metrics when names are filled in from data, `report:{tenant}` say. Default the name itself.
    pub fn name_pattern(mut self, pattern: impl AsRef<str>) -> Self {
        self.options.name_pattern = Some(Arc::from(pattern.as_ref()));
        self
    }

    /// Checks the options against each other.
    ///
    /// # Errors
    ///
    /// [`LeaderError::InvalidOptions`] names the option that cannot be honoured: a lease below 10 ms or above 365
    /// days, `min_lease` over `lease`, no slots or more than 1024, `max_tenure` below `lease`.
    pub fn build(self) -> Result<LeaseOptions, LeaderError> {
        let LeaseOptions {
            lease,
            min_lease,
            slots,
            max_tenure,
            ..
        } = self.options;
        LeaseOptions::check_lease("lease", lease)?;
        if min_lease > lease {
            return Err(invalid(
                "min_lease",
                format!(
                    "{min_lease:?} is longer than the lease of {lease:?}; shorten it or lengthen the lease"
                ),
            ));
        }
        if slots == 0 || slots > LeaseOptions::MAX_SLOTS {
            return Err(invalid(
                "slots",
                format!(
                    "{slots} is out of range; a name has 1 to {} slots",
                    LeaseOptions::MAX_SLOTS
                ),
            ));
        }
        if let Some(max_tenure) = max_tenure
            && max_tenure < lease
        {
            return Err(invalid(
                "max_tenure",
                format!(
                    "{max_tenure:?} is shorter than the lease of {lease:?}; lengthen it or shorten the lease"
                ),
            ));
        }
        Ok(self.options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(lease: Duration) -> Result<LeaseOptions, LeaderError> {
        LeaseOptions::builder().lease(lease).build()
    }

    #[track_caller]
    fn refused(result: Result<LeaseOptions, LeaderError>, named: &str) {
        match result {
            Err(LeaderError::InvalidOptions { option, .. }) => assert_eq!(option, named),
            other => panic!("`{named}` was not refused: {other:?}"),
        }
    }

    #[test]
    fn a07_extreme_time_limits_are_honoured_or_refused() {
        for short in [
            Duration::ZERO,
            Duration::from_nanos(1),
            Duration::from_micros(999),
            Duration::from_micros(9_999),
        ] {
            refused(lease(short), "lease");
        }
        refused(lease(Duration::MAX), "lease");
        assert!(lease(Duration::from_millis(10)).is_ok());
        assert!(lease(LeaseOptions::MAX_LEASE).is_ok());
        assert!(LeaseOptions::builder().wait(Duration::MAX).build().is_ok());
    }

    #[test]
    fn options_are_checked_against_each_other() {
        let second = Duration::from_secs(1);
        refused(
            LeaseOptions::builder()
                .lease(second)
                .min_lease(second * 2)
                .build(),
            "min_lease",
        );
        refused(LeaseOptions::builder().slots(0).build(), "slots");
        refused(LeaseOptions::builder().slots(1025).build(), "slots");
        refused(
            LeaseOptions::builder().max_tenure(second).build(),
            "max_tenure",
        );
        assert!(
            LeaseOptions::builder()
                .lease(second)
                .min_lease(second)
                .max_tenure(second)
                .build()
                .is_ok()
        );
    }
}
