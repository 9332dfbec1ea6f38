//! `stopped`: a guarded body is not polled on after its lease is over.
//!
//! Once it may find its lease gone: the process may be stopped between the guard's look at the clock and the body's. A
//! second poll has a look of its own before it, and no such excuse.

use super::{Story, Violation};

pub(super) fn check(story: &Story) -> Vec<Violation> {
    let polled_on = story
        .tenures
        .iter()
        .filter(|tenure| tenure.guarded && tenure.late > 1);
    polled_on
        .map(|tenure| Violation {
            rule: "stopped",
            what: format!(
                "the body that led {} under {} was polled {} times without a lease",
                tenure.name, tenure.fence, tenure.late
            ),
            lines: tenure.lines(),
        })
        .collect()
}
