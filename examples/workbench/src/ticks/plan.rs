//! [`Plan`]: who stands when, and the time limits, in ticks.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// A candidate, by its letter: `a` to `f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "char", try_from = "char")]
pub struct Candidate(u8);

impl Candidate {
    /// The first.
    pub const A: Self = Self(0);
    /// How many there can be.
    pub const MAX: u8 = 6;

    /// The candidate of that number, from 0.
    #[must_use]
    pub fn number(number: usize) -> Option<Self> {
        u8::try_from(number)
            .ok()
            .filter(|number| *number < Self::MAX)
            .map(Self)
    }

    /// How many candidates come after this one.
    pub(super) fn after(self) -> u32 {
        u32::from(Self::MAX - 1 - self.0)
    }
}

impl From<Candidate> for char {
    fn from(candidate: Candidate) -> Self {
        char::from(b'a' + candidate.0)
    }
}

impl TryFrom<char> for Candidate {
    type Error = PlanError;

    fn try_from(letter: char) -> Result<Self, PlanError> {
        let number = u32::from(letter).checked_sub(u32::from('a'));
        number
            .and_then(|number| Self::number(number as usize))
            .ok_or_else(|| {
                let reason = format!("`{letter}` is no candidate; they are `a` to `f`");
                PlanError::new("candidate", reason, None)
            })
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(*self))
    }
}

/// A candidate stands for election at a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stand {
    /// Who.
    pub candidate: Candidate,
    /// When.
    pub tick: u32,
}

/// A candidate is frozen as one tick begins and thawed as another does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Who.
    pub candidate: Candidate,
    /// The tick in which it is frozen.
    pub from: u32,
    /// The tick in which it is thawed.
    pub until: u32,
}

/// What the work does when its lease is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnLost {
    /// It is dropped: [`leader_core::OnLost::Cancel`].
    #[default]
    Stop,
    /// It goes on, and does not even ask: a bad citizen under [`leader_core::OnLost::Notify`].
    Continue,
}

/// What is played. The default is the scenario `contention`. Checked by whoever plays it, and by [`check`](Self::check).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    /// How long a lease lives after a grant or an extension.
    pub lease: u32,
    /// How long the work takes.
    pub work: u32,
    /// How long a candidate waits to be elected; 0 is exactly one attempt.
    pub wait: u32,
    /// How long a slot is kept even when the work ends early.
    pub min_lease: u32,
    /// How many may lead at once.
    pub slots: u32,
    /// Whether leases are extended while the work runs.
    pub auto_extend: bool,
    /// What the work does when its lease is lost.
    pub on_lost: OnLost,
    /// Whether each work writes to a fenced resource as it begins and as it ends.
    pub writes: bool,
    /// Who stands when.
    pub stands: Vec<Stand>,
    /// Who is frozen when.
    pub pauses: Vec<Pause>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            lease: 10,
            work: 8,
            wait: 2,
            min_lease: 1,
            slots: 1,
            auto_extend: false,
            on_lost: OnLost::Stop,
            writes: false,
            stands: Self::one_each([0, 1, 9]),
            pauses: Vec::new(),
        }
    }
}

impl Plan {
    /// What `lease` can be: no longer, so that a lease is lost in the tick in which it ends.
    pub const LEASE: RangeInclusive<u32> = 1..=30;
    /// What `work` can be.
    pub const WORK: RangeInclusive<u32> = 1..=60;
    /// What `wait` can be.
    pub const WAIT: RangeInclusive<u32> = 0..=60;
    /// What `slots` can be.
    pub const SLOTS: RangeInclusive<u32> = 1..=4;
    /// The ticks in which candidates can stand, or be frozen and thawed.
    pub const TICKS: RangeInclusive<u32> = 0..=60;
    /// How often candidates can stand, all in all.
    pub const STANDS: RangeInclusive<u32> = 1..=12;

    /// The first candidate stands at the first of `ticks`, the second at the second, and so on; at most
    /// [`Candidate::MAX`] of them.
    #[must_use]
    pub fn one_each(ticks: impl IntoIterator<Item = u32>) -> Vec<Stand> {
        let stand = |(number, tick)| {
            Some(Stand {
                candidate: Candidate::number(number)?,
                tick,
            })
        };
        ticks.into_iter().enumerate().map_while(stand).collect()
    }

    /// Who takes part, in the order of their letters.
    #[must_use]
    pub fn candidates(&self) -> BTreeSet<Candidate> {
        self.stands.iter().map(|stand| stand.candidate).collect()
    }

    /// Whether the plan can be played.
    ///
    /// # Errors
    ///
    /// [`PlanError`] names the first field that cannot be, and says what it takes.
    pub fn check(&self) -> Result<(), PlanError> {
        within("lease", self.lease, Self::LEASE)?;
        within("work", self.work, Self::WORK)?;
        within("wait", self.wait, Self::WAIT)?;
        if self.min_lease > self.lease {
            let reason = format!(
                "{} is more than the lease; it takes 0 to {} ticks",
                self.min_lease, self.lease
            );
            let range = Some((0, self.lease));
            return Err(PlanError::new("min_lease", reason, range));
        }
        within("slots", self.slots, Self::SLOTS)?;
        let stands = u32::try_from(self.stands.len()).unwrap_or(u32::MAX);
        if !Self::STANDS.contains(&stands) {
            let (from, to) = Self::STANDS.into_inner();
            let reason = format!("there are {stands}; a plan takes {from} to {to}");
            return Err(PlanError::new("stands", reason, Some((from, to))));
        }
        for stand in &self.stands {
            within("stands", stand.tick, Self::TICKS)?;
        }
        self.check_pauses()
    }

    /// What a field takes, where that is a number between two others.
    pub(crate) fn range_of(field: &str) -> Option<(u32, u32)> {
        let range = match field {
            "lease" => Self::LEASE,
            // And no more than the lease.
            "min_lease" => 0..=*Self::LEASE.end(),
            "work" => Self::WORK,
            "wait" => Self::WAIT,
            "slots" => Self::SLOTS,
            _ => return None,
        };
        Some(range.into_inner())
    }

    fn check_pauses(&self) -> Result<(), PlanError> {
        let refuse = |reason| Err(PlanError::new("pauses", reason, None));
        for (index, pause) in self.pauses.iter().enumerate() {
            let Pause {
                candidate,
                from,
                until,
            } = *pause;
            within("pauses", until, Self::TICKS)?;
            if from == 0 || from >= until {
                return refuse(format!(
                    "{candidate} is frozen from {from} to {until}; it takes a first tick from 1, and a later one"
                ));
            }
            if !self.candidates().contains(&candidate) {
                return refuse(format!("{candidate} never stands"));
            }
            let during = |tick| (from..until).contains(&tick);
            let stands_frozen = |stand: &&Stand| stand.candidate == candidate && during(stand.tick);
            if let Some(stand) = self.stands.iter().find(stands_frozen) {
                return refuse(format!(
                    "{candidate} is frozen at tick {}, and cannot stand then",
                    stand.tick
                ));
            }
            let earlier = self.pauses.iter().take(index);
            let overlaps = |other: &Pause| {
                other.candidate == candidate && other.from <= until && from <= other.until
            };
            if earlier.into_iter().any(overlaps) {
                return refuse(format!("two pauses of {candidate} meet"));
            }
        }
        Ok(())
    }
}

fn within(field: &'static str, ticks: u32, range: RangeInclusive<u32>) -> Result<(), PlanError> {
    if range.contains(&ticks) {
        return Ok(());
    }
    let (from, to) = range.into_inner();
    let reason = format!("{ticks} is out of range; it takes {from} to {to}");
    Err(PlanError::new(field, reason, Some((from, to))))
}

/// Why a plan cannot be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    field: &'static str,
    reason: String,
    range: Option<(u32, u32)>,
}

impl PlanError {
    pub(super) fn new(field: &'static str, reason: String, range: Option<(u32, u32)>) -> Self {
        Self {
            field,
            reason,
            range,
        }
    }

    /// The field of [`Plan`] that is at fault.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// What the field takes, from the first number to the last, where that is all that is wrong with it.
    #[must_use]
    pub fn range(&self) -> Option<(u32, u32)> {
        self.range
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.field, self.reason)
    }
}

impl std::error::Error for PlanError {}
