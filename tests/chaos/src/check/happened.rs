//! `happened`: something was seen of all that is judged. A run in which nobody led breaks no other rule.

use std::collections::BTreeSet;

use super::{Recovery, Story, Violation};
use crate::fault::Kind;

/// Among so many writes some are late.
const MANY: usize = 500;

pub(super) fn check(story: &Story, recovery: &Recovery) -> Vec<Violation> {
    let mut missing = Vec::new();
    for job in &story.jobs {
        if !story.tenures.iter().any(|tenure| tenure.name == job.name) {
            missing.push(format!("nobody led {}", job.name));
        }
    }
    let led: BTreeSet<usize> = story.tenures.iter().map(|tenure| tenure.worker).collect();
    if led.len() < 2 {
        missing.push(format!("of the workers only these led: {led:?}"));
    }
    for kind in Kind::of(story.topology) {
        if !story.faults.iter().any(|fault| fault.kind == kind) {
            missing.push(format!("no {kind}"));
        }
    }
    let answers = |refused: bool| {
        let of = story
            .writes
            .iter()
            .filter_map(|write| write.answer.as_ref());
        of.filter(|answer| answer.seen.is_some() == refused).count()
    };
    if answers(false) == 0 {
        missing.push("no write was accepted".to_owned());
    }
    if answers(false) >= MANY && answers(true) == 0 {
        missing.push("no write was refused: nobody was late".to_owned());
    }
    if recovery.seen == 0 {
        missing.push("no lull in which anybody led".to_owned());
    }
    let violation = |what| Violation {
        rule: "happened",
        what,
        lines: Vec::new(),
    };
    missing.into_iter().map(violation).collect()
}
