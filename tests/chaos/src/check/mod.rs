//! The checker: reads the logs of a run and judges. It knows nothing of what the director and the workers meant to do.
//!
//! | rule | what it says |
//! |---|---|
//! | `exclusion` | no slot is believed in by two at once, and no slot is beyond a name's number of slots |
//! | `fencing` | no token is given twice, and none is lower than that of an earlier grant |
//! | `stale write` | the fenced value never accepts a token lower than one it has seen, and refuses no other |
//! | `stopped` | a guarded body is not polled on after its lease is over |
//! | `recovery` | in a lull every name is led again within its lease and an allowance |
//! | `happened` | something was seen of all that is judged: names led, faults played, writes refused |
//!
//! # What is excused
//!
//! A fault may say whose grants it let the store forget, and by when: the failover of a primary in a cluster, since
//! replication is asynchronous there (`guide::accidents`: "two, for the names of its shard"). Two tenures of such a name
//! may overlap when the first began before the replica was promoted and the second after the fault began, and not longer
//! than one lease after the promotion: by then the first must have been told, or be at its deadline. These overlaps are
//! counted, and shown. Nothing else is excused, and stale writes never are.
//!
//! A lull that ends before a name's time is up says nothing about it; such cases are counted too.

mod exclusion;
mod fencing;
mod happened;
mod recovery;
mod stopped;
mod story;
#[cfg(test)]
mod tests;
mod writes;

use std::path::Path;

use serde::Serialize;

pub(crate) use recovery::{ALLOWANCE, Recovery, counted};
pub(crate) use story::{Close, Story, Tenure};

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Violation {
    /// The rule that it breaks.
    pub(crate) rule: &'static str,
    /// What happened.
    pub(crate) what: String,
    /// The lines of the logs that show it.
    pub(crate) lines: Vec<String>,
}

/// What the checker has found.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    /// What the logs tell.
    pub(crate) story: Story,
    /// What must not be.
    pub(crate) violations: Vec<Violation>,
    /// Overlaps that a fault explains.
    pub(crate) explained: Vec<String>,
    /// How leadership came back.
    pub(crate) recovery: Recovery,
}

/// Judges the run whose logs are in `dir`.
///
/// # Errors
///
/// The logs cannot be read, or there is no run in them.
pub(crate) fn check(dir: &Path) -> Result<Verdict, String> {
    Ok(judge(Story::read(dir)?))
}

/// Judges what the logs tell.
#[must_use]
pub(crate) fn judge(story: Story) -> Verdict {
    let (mut violations, explained) = exclusion::check(&story);
    violations.extend(fencing::check(&story));
    violations.extend(writes::check(&story));
    violations.extend(stopped::check(&story));
    let (recovery, late) = recovery::check(&story);
    violations.extend(late);
    violations.extend(happened::check(&story, &recovery));
    Verdict {
        story,
        violations,
        explained,
        recovery,
    }
}

/// Microseconds, for people.
fn ms(micros: u64) -> String {
    format!("{}.{:03} ms", micros / 1000, micros % 1000)
}
