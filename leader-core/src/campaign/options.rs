//! [`CampaignOptions`]: the lease, and what a campaign does beyond it.

use std::time::Duration;

use crate::campaign::BodyEnd;
use crate::error::LeaderError;
use crate::options::LeaseOptions;

/// How to lead for long: the lease, and what happens around it.
///
/// Wherever these are asked for, [`LeaseOptions`] alone will do; the rest is then the default.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `grace` | 5 s | how long a body that is asked to stop may take; then it is dropped |
/// | `rest` | one lease | for how long a candidate that has resigned lets the others lead |
/// | `when_body_returns` | stand again, 1 s to 60 s | what happens when the body returns by itself |
/// | `when_body_fails` | stand again, 1 s to 60 s | what happens when it returns an error or panics |
///
/// Of the lease options, two are a campaign's own business: it waits until it is elected, whatever `wait` says, and its
/// lease is always extended. A stand that ended and began anew would only lose its place in the queue.
///
/// ```
/// use leader_core::{CampaignOptions, LeaseOptions, WhenBodyEnds};
/// use std::time::Duration;
///
/// let lease = LeaseOptions::builder().lease(Duration::from_secs(10)).build()?;
/// let options = CampaignOptions::builder(&lease)
///     .grace(Duration::from_secs(2))
///     .when_body_returns(WhenBodyEnds::Stop)
///     .when_body_fails(WhenBodyEnds::StandAgain {
///         pause: Duration::from_millis(100),
///         longest: Duration::from_secs(10),
///     })
///     .build()?;
/// # Ok::<(), leader_core::LeaderError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CampaignOptions {
    lease: LeaseOptions,
    grace: Duration,
    rest: Option<Duration>,
    returns: WhenBodyEnds,
    fails: WhenBodyEnds,
}

/// What a campaign does when its body has ended by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhenBodyEnds {
    /// It stands again after a pause, in which others may lead. The pause doubles with each body that ends sooner than
    /// `longest`, up to `longest`, and is spread a little, so that many candidates with one trouble do not move in step.
    StandAgain {
        /// The first pause; 10 ms at least.
        pause: Duration,
        /// The longest pause.
        longest: Duration,
    },
    /// The campaign ends.
    Stop,
}

impl WhenBodyEnds {
    /// The shortest pause: a body that ends at once is no hot loop.
    pub const MIN_PAUSE: Duration = Duration::from_millis(10);

    fn check(self, option: &'static str) -> Result<(), LeaderError> {
        let Self::StandAgain { pause, longest } = self else {
            return Ok(());
        };
        if pause < Self::MIN_PAUSE {
            let reason = format!("a pause of {pause:?} is too short; it is 10 ms at least");
            return Err(LeaderError::invalid_options(option, reason));
        }
        if longest < pause {
            let reason =
                format!("the longest pause, {longest:?}, is shorter than the first, {pause:?}");
            return Err(LeaderError::invalid_options(option, reason));
        }
        Ok(())
    }
}

impl Default for WhenBodyEnds {
    fn default() -> Self {
        Self::StandAgain {
            pause: Duration::from_secs(1),
            longest: Duration::from_secs(60),
        }
    }
}

impl CampaignOptions {
    /// Starts from the defaults, with these options for the lease.
    pub fn builder(lease: &LeaseOptions) -> CampaignOptionsBuilder {
        CampaignOptionsBuilder {
            options: lease.into(),
        }
    }

    /// The options of the lease.
    #[must_use]
    pub fn lease_options(&self) -> &LeaseOptions {
        &self.lease
    }

    /// How long a body that is asked to stop may take.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// For how long a candidate that has resigned lets the others lead.
    #[must_use]
    pub fn rest(&self) -> Duration {
        self.rest.unwrap_or(self.lease.lease())
    }

    pub(crate) fn when(&self, end: &BodyEnd) -> WhenBodyEnds {
        match end {
            BodyEnd::Returned => self.returns,
            BodyEnd::Failed(_) | BodyEnd::Panicked(_) => self.fails,
        }
    }
}

impl From<LeaseOptions> for CampaignOptions {
    fn from(lease: LeaseOptions) -> Self {
        Self {
            lease,
            grace: Duration::from_secs(5),
            rest: None,
            returns: WhenBodyEnds::default(),
            fails: WhenBodyEnds::default(),
        }
    }
}

impl From<&LeaseOptions> for CampaignOptions {
    fn from(lease: &LeaseOptions) -> Self {
        lease.clone().into()
    }
}

impl From<&CampaignOptions> for CampaignOptions {
    fn from(options: &CampaignOptions) -> Self {
        options.clone()
    }
}

/// Builds [`CampaignOptions`]; see there for each option's meaning and default.
#[derive(Clone, Debug)]
#[must_use = "options are made by `build()`"]
pub struct CampaignOptionsBuilder {
    options: CampaignOptions,
}

impl CampaignOptionsBuilder {
    /// How long a body that is asked to stop may take; then it is dropped. Zero drops it at once. Default 5 s.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.options.grace = grace;
        self
    }

    /// For how long a candidate that has resigned lets the others lead, unless it is told to
    /// [`stand`](crate::Campaign::stand). Default one lease.
    pub fn rest(mut self, rest: Duration) -> Self {
        self.options.rest = Some(rest);
        self
    }

    /// What happens when the body ends by itself, whether it returns, fails or panics.
    pub fn when_body_ends(self, then: WhenBodyEnds) -> Self {
        self.when_body_returns(then).when_body_fails(then)
    }

    /// What happens when the body returns, and what it returns is no error.
    pub fn when_body_returns(mut self, then: WhenBodyEnds) -> Self {
        self.options.returns = then;
        self
    }

    /// What happens when the body returns an error, or panics.
    pub fn when_body_fails(mut self, then: WhenBodyEnds) -> Self {
        self.options.fails = then;
        self
    }

    /// Checks the options.
    ///
    /// # Errors
    ///
    /// [`LeaderError::InvalidOptions`] when a pause is below 10 ms, or above the longest one.
    pub fn build(self) -> Result<CampaignOptions, LeaderError> {
        self.options.returns.check("when_body_returns")?;
        self.options.fails.check("when_body_fails")?;
        Ok(self.options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_makes_a_hot_loop_is_refused() {
        let built = |pause, longest| {
            CampaignOptions::builder(&LeaseOptions::default())
                .when_body_fails(WhenBodyEnds::StandAgain { pause, longest })
                .build()
        };
        let second = Duration::from_secs(1);
        assert!(built(second, second).is_ok());
        for (pause, longest) in [(Duration::ZERO, second), (second, Duration::ZERO)] {
            let error = built(pause, longest).unwrap_err();
            assert!(error.to_string().contains("when_body_fails"), "{error}");
        }
    }
}
