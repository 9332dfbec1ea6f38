//! The conformance suite on quorums of local stores: all well, and with as many failing as may.

use leader_core::testing::{Fault, FaultyStore};
use leader_core::{BackendKind, LocalStore, Quorum, Step};

fn local(nodes: usize) -> Quorum<LocalStore> {
    Quorum::new((0..nodes).map(|_| LocalStore::new())).unwrap()
}

mod of_five {
    leader_core::conformance_tests!(store = async { super::local(5) }, start_paused = true);
}

mod of_one {
    leader_core::conformance_tests!(store = async { super::local(1) }, start_paused = true);
}

/// Two of five do not answer anything.
fn crippled() -> Quorum<FaultyStore<LocalStore>> {
    let stores: Vec<_> = (0..5)
        .map(|_| FaultyStore::new(LocalStore::new()))
        .collect();
    let steps = [
        Step::Claim,
        Step::Extend,
        Step::Release,
        Step::Watch,
        Step::Inspect,
        Step::Evict,
    ];
    for step in steps {
        stores[1]
            .faults()
            .always(step, Fault::Refuse(BackendKind::ReadOnly));
        stores[3].faults().always(step, Fault::HoldRequest);
    }
    Quorum::new(stores).unwrap()
}

mod with_two_of_five_failing {
    leader_core::conformance_tests!(store = async { super::crippled() }, start_paused = true);
}
