//! Shrinking: what can be taken out of a failing plan, while it still fails in the same way.

use crate::plan::{Deed, Plan};
use crate::run::{Tracing, play};

/// The least plan that breaks the same invariant as `plan`, as far as taking things out and shortening them leads.
#[must_use]
pub fn shrink(plan: &Plan) -> Plan {
    let Some(violation) = play(plan, Tracing::Off).violation else {
        return plan.clone();
    };
    let fails = |plan: &Plan| {
        play(plan, Tracing::Off)
            .violation
            .is_some_and(|found| found.invariant == violation.invariant)
    };
    let mut least = plan.clone();
    loop {
        let smaller = smaller(&least).into_iter().find(|plan| fails(plan));
        match smaller {
            Some(plan) => least = plan,
            None => return least,
        }
    }
}

/// Plans with one thing less, the boldest first.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut plans = Vec::new();
    let mut add = |change: &dyn Fn(&mut Plan)| {
        let mut less = plan.clone();
        change(&mut less);
        if less != *plan && less.stands().next().is_some() {
            plans.push(less);
        }
    };
    // A candidate's number decides its messages' fate: it is emptied rather than taken out, unless it is the last.
    for candidate in 0..plan.candidates.len() {
        if candidate + 1 == plan.candidates.len() && candidate > 0 {
            add(&|plan| _ = plan.candidates.pop());
        }
        add(&|plan| plan.candidates[candidate].tasks.clear());
        for task in 0..plan.candidates[candidate].tasks.len() {
            add(&|plan| _ = plan.candidates[candidate].tasks.remove(task));
        }
    }
    for fault in 0..plan.faults.len() {
        add(&|plan| _ = plan.faults.remove(fault));
    }
    for candidate in 0..plan.candidates.len() {
        for task in 0..plan.candidates[candidate].tasks.len() {
            for step in 0..plan.candidates[candidate].tasks[task].len() {
                add(&|plan| _ = plan.candidates[candidate].tasks[task].remove(step));
                add(&|plan| plan.candidates[candidate].tasks[task][step].pause = 0);
                let deed = &plan.candidates[candidate].tasks[task][step].deed;
                for act in 0..acts(deed) {
                    add(&|plan| {
                        if let Deed::Run { body: acts, .. } | Deed::Hold { acts, .. } =
                            &mut plan.candidates[candidate].tasks[task][step].deed
                        {
                            acts.remove(act);
                        }
                    });
                }
                add(&|plan| {
                    if let Deed::Run { stand, .. } | Deed::Hold { stand, .. } =
                        &mut plan.candidates[candidate].tasks[task][step].deed
                    {
                        stand.min_lease = 0;
                        stand.max_tenure = None;
                    }
                });
            }
        }
        add(&|plan| plan.candidates[candidate].rate_ppm = 0);
    }
    add(&|plan| plan.latency = 0);
    plans
}

fn acts(deed: &Deed) -> usize {
    match deed {
        Deed::Run { body: acts, .. } | Deed::Hold { acts, .. } => acts.len(),
        Deed::Shutdown => 0,
    }
}
