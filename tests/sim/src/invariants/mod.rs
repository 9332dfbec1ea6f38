//! What must hold, whatever happens: one file each, which opens with why people care.

mod bodies;
mod bounded;
mod conservative;
mod ends_well;
mod exclusion;
mod fencing;
mod freed;
mod honest;
mod in_order;
mod leads_again;
mod leftovers;
mod min_lease;
mod prompt;
mod register;
mod stopped;
mod told;
mod untouched;

use tokio::time::Instant;

use crate::event::Event;
use crate::facts::Facts;

/// `Err` says what does not hold.
pub(crate) type Verdict = Result<(), String>;

/// Something that must hold.
pub(crate) trait Invariant: Send {
    /// A short name.
    fn name(&self) -> &'static str;

    /// Looks at what has just happened; `facts` know of it already.
    fn see(&mut self, at: Instant, event: &Event, facts: &Facts) -> Verdict;
}

/// All of them.
pub(crate) fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(exclusion::Exclusion),
        Box::new(conservative::Conservative),
        Box::new(stopped::Stopped::default()),
        Box::new(ends_well::EndsWell),
        Box::new(fencing::Fencing::default()),
        Box::new(untouched::Untouched),
        Box::new(in_order::InOrder::default()),
        Box::new(bodies::Bodies),
        Box::new(honest::Honest::default()),
        Box::new(bounded::Bounded),
        Box::new(freed::Freed::default()),
        Box::new(min_lease::MinLease::default()),
        Box::new(told::Told::default()),
        Box::new(register::History::default()),
        Box::new(prompt::Prompt::default()),
        Box::new(leads_again::LeadsAgain::default()),
        Box::new(leftovers::Leftovers),
    ]
}

/// `Ok` when `holds`; `what` says what does not.
fn ensure(holds: bool, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(what()) }
}
