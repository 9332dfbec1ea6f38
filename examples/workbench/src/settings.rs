//! [`Settings`]: what a person can move, within which range, and what the library makes of it.

use std::ops::RangeInclusive;
use std::time::Duration;

use leader_core::{LeaderError, LeaseOptions, OnLost};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The most candidates that fit on the bench.
pub(crate) const MOST_CANDIDATES: u64 = 6;
/// The most slots; each has a resource of its own.
pub(crate) const MOST_SLOTS: u64 = 4;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Settings {
    /// How long the work takes.
    pub(crate) work_ms: u64,
    pub(crate) lease_ms: u64,
    pub(crate) wait_ms: u64,
    pub(crate) min_lease_ms: u64,
    /// From the end of one run to the next stand.
    pub(crate) pause_ms: u64,
    pub(crate) slots: u64,
    pub(crate) candidates: u64,
    pub(crate) auto_extend: bool,
    /// Whether work that has lost its lease is only told, and not dropped.
    pub(crate) notify: bool,
    /// Whether a candidate stands again after a run.
    pub(crate) repeat: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            work_ms: 3_000,
            lease_ms: 6_000,
            wait_ms: 2_000,
            min_lease_ms: 1_000,
            pause_ms: 1_000,
            slots: 1,
            candidates: 3,
            auto_extend: true,
            notify: false,
            repeat: true,
        }
    }
}

/// The numbers that can be set, and their ranges.
pub(crate) const RANGES: [(&str, RangeInclusive<u64>); 7] = [
    ("work_ms", 0..=600_000),
    ("lease_ms", 10..=60_000),
    ("wait_ms", 0..=60_000),
    ("min_lease_ms", 0..=60_000),
    ("pause_ms", 1..=60_000),
    ("slots", 1..=MOST_SLOTS),
    ("candidates", 2..=MOST_CANDIDATES),
];

/// Why a setting was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) field: String,
    pub(crate) error: String,
    /// What would have been taken, where that is a list or a range.
    pub(crate) range: Option<Value>,
}

impl Refused {
    pub(crate) fn new(field: &str, error: impl Into<String>, range: Option<Value>) -> Self {
        Self {
            field: field.to_owned(),
            error: error.into(),
            range,
        }
    }
}

impl Settings {
    /// These settings with the changes, or why not; one wrong change takes none of them.
    pub(crate) fn changed(&self, changes: &Map<String, Value>) -> Result<Self, Refused> {
        let mut settings = self.clone();
        for (field, value) in changes {
            settings.set(field, value)?;
        }
        settings.options().map_err(|error| match error {
            LeaderError::InvalidOptions { option, reason, .. } => {
                let range = (option == "min_lease").then(|| json!([0, settings.lease_ms]));
                Refused::new(&format!("{option}_ms"), reason, range)
            }
            other => Refused::new("", other.to_string(), None),
        })?;
        Ok(settings)
    }

    fn set(&mut self, field: &str, value: &Value) -> Result<(), Refused> {
        if let Some((_, range)) = RANGES.iter().find(|(name, _)| *name == field) {
            let (least, most) = (*range.start(), *range.end());
            let number = value.as_u64().filter(|number| range.contains(number));
            let number = number.ok_or_else(|| {
                let error = format!("`{field}` must be a whole number from {least} to {most}");
                Refused::new(field, error, Some(json!([least, most])))
            })?;
            match field {
                "work_ms" => self.work_ms = number,
                "lease_ms" => self.lease_ms = number,
                "wait_ms" => self.wait_ms = number,
                "min_lease_ms" => self.min_lease_ms = number,
                "pause_ms" => self.pause_ms = number,
                "slots" => self.slots = number,
                _ => self.candidates = number,
            }
            return Ok(());
        }
        match field {
            "auto_extend" => self.auto_extend = flag(field, value)?,
            "repeat" => self.repeat = flag(field, value)?,
            "on_lost" => {
                self.notify = match value.as_str() {
                    Some("cancel") => false,
                    Some("notify") => true,
                    _ => {
                        let error = "`on_lost` must be \"cancel\" or \"notify\"";
                        return Err(Refused::new(
                            field,
                            error,
                            Some(json!(["cancel", "notify"])),
                        ));
                    }
                }
            }
            _ => {
                let mut fields: Vec<&str> = RANGES.iter().map(|(name, _)| *name).collect();
                fields.extend(["auto_extend", "repeat", "on_lost"]);
                let field: String = field.chars().take(40).collect();
                return Err(Refused::new(
                    &field,
                    "there is no such setting",
                    Some(json!(fields)),
                ));
            }
        }
        Ok(())
    }

    /// What a candidate stands with.
    pub(crate) fn options(&self) -> Result<LeaseOptions, LeaderError> {
        let on_lost = if self.notify {
            OnLost::Notify
        } else {
            OnLost::Cancel
        };
        LeaseOptions::builder()
            .wait(Duration::from_millis(self.wait_ms))
            .lease(Duration::from_millis(self.lease_ms))
            .min_lease(Duration::from_millis(self.min_lease_ms))
            .auto_extend(self.auto_extend)
            .on_lost(on_lost)
            .slots(u32::try_from(self.slots).unwrap_or(u32::MAX))
            .build()
    }

    /// As the interface shows them.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = json!(self);
        if let Some(fields) = shown.as_object_mut() {
            fields.remove("notify");
            let on_lost = if self.notify { "notify" } else { "cancel" };
            fields.insert("on_lost".to_owned(), json!(on_lost));
        }
        shown
    }
}

fn flag(field: &str, value: &Value) -> Result<bool, Refused> {
    let error = || {
        Refused::new(
            field,
            format!("`{field}` must be true or false"),
            Some(json!([true, false])),
        )
    };
    value.as_bool().ok_or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(changes: &Value) -> Result<Settings, Refused> {
        Settings::default().changed(changes.as_object().unwrap())
    }

    #[test]
    fn each_number_is_taken_at_the_ends_of_its_range_and_refused_beyond() {
        for (field, range) in RANGES {
            for inside in [*range.start(), *range.end()] {
                // A minimum lease has the lease as its bound, too.
                let settings =
                    changed(&json!({ "lease_ms": 60_000, "min_lease_ms": 0, field: inside }));
                let settings = settings.unwrap_or_else(|refused| panic!("{inside}: {refused:?}"));
                assert_eq!(settings.shown()[field], inside);
            }
            for outside in [
                json!(range.end() + 1),
                json!(-1),
                json!(1.5),
                json!("1"),
                json!(null),
            ] {
                let refused = changed(&json!({ field: outside })).unwrap_err();
                assert_eq!(refused.field, field);
                assert_eq!(refused.range, Some(json!([range.start(), range.end()])));
            }
        }
    }

    #[test]
    fn a_minimum_lease_above_the_lease_is_refused_with_the_lease_as_its_range() {
        let refused = changed(&json!({ "lease_ms": 500, "min_lease_ms": 501 })).unwrap_err();
        assert_eq!(refused.field, "min_lease_ms");
        assert_eq!(refused.range, Some(json!([0, 500])));
    }

    #[test]
    fn what_is_shown_can_be_set() {
        let settings = Settings {
            notify: true,
            slots: 3,
            ..Settings::default()
        };
        let shown = settings.shown();
        assert_eq!(changed(&shown), Ok(settings));
    }
}
