//! No body is polled once its deadline has passed, however late the process wakes up: this is what a lock that is
//! merely checked before the work cannot give.

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::Event;
use crate::facts::Facts;

pub(super) struct Stopped;

impl Invariant for Stopped {
    fn name(&self) -> &'static str {
        "stopped"
    }

    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict {
        let Event::Polled { run: number } = event else {
            return Ok(());
        };
        let run = &facts.runs[*number];
        ensure(run.stand.notify || run.relies_until(at).is_some(), || {
            format!("the body of run {number} was polled without a valid lease")
        })
    }
}
