//! Every grant of a name carries a fencing token greater than all before it, also after the store forgot everything or
//! an old copy took over: a resource that checks it can tell the new leader from the old.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Op, Said, TokenNo};
use crate::facts::Facts;

#[derive(Default)]
pub(super) struct Fencing {
    /// By name: the last grant.
    last: BTreeMap<usize, u64>,
    /// What was granted, to which token.
    grants: BTreeMap<(usize, u64), TokenNo>,
}

impl Invariant for Fencing {
    fn name(&self) -> &'static str {
        "fencing"
    }

    fn see(&mut self, _at: Instant, event: &Event, facts: &Facts) -> Verdict {
        match event {
            Event::Applied {
                name,
                op: Op::Claim { token, .. },
                said: Said::Granted { fence, .. },
                before,
                ..
            } => {
                let again = before
                    .iter()
                    .any(|slot| slot.in_force && slot.fence == *fence);
                if again {
                    // A failover may have brought back a grant that is older than the last.
                    return ensure(self.grants.get(&(*name, *fence)) == Some(token), || {
                        format!(
                            "a claim of t{token} was answered with fence {fence}, which is another's"
                        )
                    });
                }
                let last = self.last.insert(*name, *fence);
                self.grants.insert((*name, *fence), *token);
                ensure(last.is_none_or(|last| last < *fence), || {
                    format!("n{name} was granted with fence {fence} after {last:?}")
                })
            }
            Event::Granted {
                run, name, fence, ..
            } => {
                let granted = facts
                    .holders
                    .get(&(*name, *fence))
                    .map(|token| facts.tokens[*token].run);
                ensure(granted == Some(Some(*run)), || {
                    format!(
                        "run {run} leads n{name} with fence {fence}, which was granted to {granted:?}"
                    )
                })
            }
            Event::Nested { run, fence } => ensure(facts.runs[*run].fence == Some(*fence), || {
                format!("a run nested in run {run} has another lease, with fence {fence}")
            }),
            _ => Ok(()),
        }
    }
}
