//! The history check: what the fenced register accepted could have happened without any fault, one leader after the
//! other, each counting on from where the last one stopped. No update is lost, although leaders were.

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Register};
use crate::facts::Facts;

#[derive(Default)]
pub(super) struct History {
    value: u64,
    last: u64,
}

impl Invariant for History {
    fn name(&self) -> &'static str {
        "history"
    }

    fn see(&mut self, _at: Instant, event: &Event, facts: &Facts) -> Verdict {
        let Event::Register {
            run,
            fence,
            what: Register::Wrote { value },
        } = event
        else {
            return Ok(());
        };
        ensure(facts.runs[*run].fence == Some(*fence), || {
            format!("run {run} wrote with fence {fence}, which was never its own")
        })?;
        ensure(*fence >= self.last, || {
            format!(
                "a write with fence {fence} was accepted after one with {}",
                self.last
            )
        })?;
        self.last = *fence;
        let before = std::mem::replace(&mut self.value, *value);
        ensure(*value == before + 1, || {
            format!("run {run} wrote {value} over {before}: an update was lost")
        })
    }
}
