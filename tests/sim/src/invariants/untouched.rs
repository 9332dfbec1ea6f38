//! A request of one holder never changes the lease of another: a late extend or release of a leader that was paused
//! must not lengthen or free what its successor holds.

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Op, Said};
use crate::facts::Facts;

pub(super) struct Untouched;

impl Invariant for Untouched {
    fn name(&self) -> &'static str {
        "untouched"
    }

    fn see(&mut self, _at: Instant, event: &Event, facts: &Facts) -> Verdict {
        let Event::Applied {
            name,
            op,
            said,
            before,
            after,
            ..
        } = event
        else {
            return Ok(());
        };
        let own = match op {
            Op::Claim { token, .. } | Op::Extend { token, .. } | Op::Release { token, .. } => {
                Some(*token)
            }
            Op::Watch | Op::Inspect => None,
            Op::Evict => return Ok(()),
        };
        let is_own =
            |fence: u64| own.is_some() && facts.holders.get(&(*name, fence)) == own.as_ref();
        for slot in before
            .iter()
            .filter(|slot| !(slot.in_force && is_own(slot.fence)))
        {
            ensure(after.contains(slot), || {
                format!(
                    "{op:?} of n{name} changed what is not its own: {before:?} became {after:?}"
                )
            })?;
        }
        let added = after
            .iter()
            .filter(|slot| before.iter().all(|old| old.fence != slot.fence));
        for slot in added {
            let granted = matches!((op, said), (Op::Claim { .. }, Said::Granted { fence, .. }) if *fence == slot.fence);
            ensure(granted, || {
                format!("{op:?} of n{name}, answered {said:?}, made a lease: {slot:?}")
            })?;
        }
        if let (Op::Claim { slots, .. }, Said::Granted { .. }) = (op, said) {
            let new = after.len() > before.len();
            ensure(!new || before.len() < *slots as usize, || {
                format!(
                    "a claim of one of {slots} slots of n{name} was granted when {} were taken",
                    before.len()
                )
            })?;
        }
        Ok(())
    }
}
