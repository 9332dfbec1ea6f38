//! `happened`: something was seen of all that is judged. A run in which nobody led breaks no other rule.

use super::{Recovery, Story, Violation};
use crate::fault::Kind;

pub(super) fn check(story: &Story, recovery: &Recovery) -> Vec<Violation> {
    let mut missing = Vec::new();
    for job in &story.jobs {
        if !story.tenures.iter().any(|tenure| tenure.name == job.name) {
            missing.push(format!("nobody led {}", job.name));
        }
    }
    for worker in 0..story.workers {
        if !story.tenures.iter().any(|tenure| tenure.worker == worker) {
            missing.push(format!("worker {worker} never led"));
        }
    }
    for kind in Kind::of(story.topology) {
        if !story.faults.iter().any(|fault| fault.kind == kind) {
            missing.push(format!("no {kind}"));
        }
    }
    let answers = || {
        story
            .writes
            .iter()
            .filter_map(|write| write.answer.as_ref())
    };
    if !answers().any(|answer| answer.seen.is_none()) {
        missing.push("no write was accepted".to_owned());
    }
    if !answers().any(|answer| answer.seen.is_some()) {
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
