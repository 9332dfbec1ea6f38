//! When everything is over nothing is left: no task, timer, map entry, subscription or slot. A service elects a
//! million times before it is restarted.

use leader_core::testing::Footprint;
use tokio::time::Instant;

use super::{Invariant, Verdict, ensure};
use crate::event::{Event, Left};
use crate::facts::Facts;

pub(super) struct Leftovers;

impl Invariant for Leftovers {
    fn name(&self) -> &'static str {
        "leftovers"
    }

    fn see(&mut self, _at: Instant, event: &Event, _facts: &Facts) -> Verdict {
        let Event::Finished { left } = event else {
            return Ok(());
        };
        let Left {
            footprints,
            slots,
            watchers,
            stores,
            tasks,
        } = left;
        let nothing = footprints
            .iter()
            .all(|footprint| *footprint == Footprint::default())
            && [*slots, *watchers, *stores, *tasks] == [0; 4];
        ensure(nothing, || format!("left behind: {left:?}"))
    }
}
