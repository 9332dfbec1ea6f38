//! `fencing`: tokens grow in the order of grants.
//!
//! The order of two grants is known when the second was asked for after the first had begun its work, or, while the
//! store forgets nothing, when one slot was believed in by one after the other.

use std::collections::BTreeMap;

use super::{Story, Tenure, Violation};

pub(super) fn check(story: &Story) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut names: BTreeMap<&str, Vec<&Tenure>> = BTreeMap::new();
    for tenure in &story.tenures {
        names.entry(&tenure.name).or_default().push(tenure);
    }
    for (name, tenures) in names {
        twice(&tenures, &mut violations);
        asked_later(&tenures, &mut violations);
        let forgotten = story.faults.iter().any(|fault| {
            let forgot = fault.forgot.as_ref();
            forgot.is_some_and(|forgot| forgot.names.iter().any(|one| one == name))
        });
        if !forgotten {
            one_after_the_other(&tenures, &mut violations);
        }
    }
    violations
}

fn twice(tenures: &[&Tenure], violations: &mut Vec<Violation>) {
    let mut known: BTreeMap<u64, &Tenure> = BTreeMap::new();
    for tenure in tenures {
        if let Some(other) = known.insert(tenure.fence, tenure) {
            violations.push(broken("one token for two tenures", other, tenure));
        }
    }
}

fn asked_later(tenures: &[&Tenure], violations: &mut Vec<Violation>) {
    let mut asked: Vec<(u64, &Tenure)> = tenures
        .iter()
        .filter_map(|tenure| Some((tenure.asked?, *tenure)))
        .collect();
    asked.sort_by_key(|(asked, _)| *asked);
    // `tenures` are in the order of their begin.
    let mut begun = tenures.iter().peekable();
    let mut highest: Option<&Tenure> = None;
    for (asked, tenure) in asked {
        while let Some(earlier) = begun.next_if(|earlier| earlier.begin <= asked) {
            if highest.is_none_or(|highest| highest.fence < earlier.fence) {
                highest = Some(earlier);
            }
        }
        if let Some(highest) = highest.filter(|highest| highest.fence >= tenure.fence) {
            violations.push(broken(
                "asked for later, and a lower token",
                highest,
                tenure,
            ));
        }
    }
}

fn one_after_the_other(tenures: &[&Tenure], violations: &mut Vec<Violation>) {
    let mut last: BTreeMap<u32, &Tenure> = BTreeMap::new();
    for tenure in tenures {
        if let Some(last) = last.insert(tenure.slot, tenure)
            && last.end <= tenure.begin
            && last.fence >= tenure.fence
        {
            violations.push(broken("elected later, and a lower token", last, tenure));
        }
    }
}

fn broken(what: &str, first: &Tenure, second: &Tenure) -> Violation {
    Violation {
        rule: "fencing",
        what: format!(
            "{}: {what}: {} and then {}",
            second.name, first.fence, second.fence
        ),
        lines: [first.lines(), second.lines()].concat(),
    }
}
