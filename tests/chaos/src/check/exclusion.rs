//! `exclusion`: no slot is believed in by two at once.

use std::collections::BTreeMap;

use super::{Story, Tenure, Violation, ms};

/// The violations, and the overlaps that a fault explains.
pub(super) fn check(story: &Story) -> (Vec<Violation>, Vec<String>) {
    let (mut violations, mut explained) = (Vec::new(), Vec::new());
    let mut slots: BTreeMap<(&str, u32), Vec<&Tenure>> = BTreeMap::new();
    for tenure in &story.tenures {
        let job = story.jobs.iter().find(|job| job.name == tenure.name);
        if job.is_none_or(|job| tenure.slot >= job.slots) {
            violations.push(Violation {
                rule: "exclusion",
                what: format!("{} has no slot {}", tenure.name, tenure.slot),
                lines: tenure.lines(),
            });
        }
        let slot = slots.entry((&tenure.name, tenure.slot)).or_default();
        slot.push(tenure);
    }
    for tenures in slots.into_values() {
        // Those before that are believed in longest: the next one is compared with each that it may overlap.
        let mut standing: Vec<&Tenure> = Vec::new();
        for next in tenures {
            standing.retain(|earlier| earlier.end > next.begin);
            for earlier in &standing {
                let (from, to) = (next.begin, earlier.end.min(next.end));
                let overlap = to.saturating_sub(from);
                if overlap == 0 {
                    continue;
                }
                let what = format!(
                    "{}#{} is believed in by two for {}: worker {} under {} and worker {} under {}",
                    next.name,
                    next.slot,
                    ms(overlap),
                    earlier.worker,
                    earlier.fence,
                    next.worker,
                    next.fence
                );
                if let Some(why) = excuse(story, earlier, next, to) {
                    explained.push(format!("{what}; {why}"));
                } else {
                    let lines = [earlier.lines(), next.lines()].concat();
                    violations.push(Violation {
                        rule: "exclusion",
                        what,
                        lines,
                    });
                }
            }
            standing.push(next);
        }
    }
    (violations, explained)
}

/// The fault that let the store forget the earlier tenure, if it can have done so, and if the two ended in time.
fn excuse(story: &Story, earlier: &Tenure, next: &Tenure, to: u64) -> Option<String> {
    let job = story.jobs.iter().find(|job| job.name == next.name)?;
    let fault = story.faults.iter().find(|fault| {
        fault.forgot.as_ref().is_some_and(|forgot| {
            forgot.names.contains(&next.name)
                && earlier.begin < forgot.by
                && next.begin > fault.from
                && to <= forgot.by + job.lease_ms * 1000
        })
    })?;
    Some(format!(
        "a {} may have lost the first ({})",
        fault.kind, fault.place
    ))
}
