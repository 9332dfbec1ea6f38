//! Ten thousand tenures by twenty candidates across twenty failovers.
//!
//! # The order of grants
//!
//! Across a failover two holders may overlap, so the candidates cannot say who was first; the servers can. Each of them
//! executes its scripts one after the other, and tells a witness (`MONITOR`) what it executes. A replica is promoted only
//! after its primary was killed, so whatever it grants comes after all that the dead primary had granted. The order of
//! grants is then: all of the first primary, in its order, then all of the second, and so on. In that order fencing tokens
//! must increase strictly, also where a promoted replica lacks the grants of the end.
//!
//! # The failovers
//!
//! In every second one replication is cut off before the kill, so that the replica lacks the last grants, and one of the
//! holders at that moment stands still until a successor has written. Its write must be refused. In the others the kill
//! comes in the middle of everything.

#[path = "../../../../examples/fenced_postgres/accounts.rs"]
mod accounts;
mod candidate;
mod history;
mod site;
mod witness;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use leader_core::FencingToken;
use leader_tests::{Postgres, until};
use tokio::task::JoinSet;

use accounts::Accounts;
use candidate::{Candidate, Play};
use history::History;
use site::Site;

const CANDIDATES: usize = 20;
const TENURES: usize = 10_000;
const FAILOVERS: usize = 20;
const ACCOUNT: i64 = 7;
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g01_g02_tokens_increase_in_the_order_of_grants_and_the_row_never_goes_back() {
    let database = Postgres::start().await;
    let accounts = Accounts::connect(&database.url())
        .await
        .expect("it answers");
    accounts.create_table().await.expect("it is new");
    accounts
        .open(FencingToken::new(0), ACCOUNT, 0)
        .await
        .expect("it is new");
    let history = History::record(&database.url()).await;
    let mut site = Site::start().await;

    let play = Arc::new(Play::new(TENURES));
    let mut candidates = JoinSet::new();
    for number in 0..CANDIDATES {
        let candidate = Candidate::new(number, &site.url(), accounts.clone(), play.clone()).await;
        candidates.spawn(candidate.lead_until_enough());
    }

    for failover in 1..=FAILOVERS {
        let due = TENURES * failover / (FAILOVERS + 1);
        until("the next failover is due", LIMIT, async || {
            play.tenures() >= due
        })
        .await;
        if failover % 2 == 0 {
            site.fail_over().await;
            continue;
        }
        site.cut_off_the_replica();
        let straggler = play.hold_one_up().await;
        site.fail_over().await;
        until("a successor has written", LIMIT, async || {
            let row = accounts.read(ACCOUNT).await.expect("the database answers");
            row.is_some_and(|(_, fence)| fence > straggler.fence)
        })
        .await;
        straggler.go_on();
    }
    while let Some(ended) = candidates.join_next().await {
        ended.expect("no candidate panics");
    }

    let reigns = site.grants_of_all_primaries();
    let seen = play.take_outcome();
    check_order(&reigns, &seen.fences);
    // Each straggler was refused, and nobody who was not older than the row.
    assert!(
        seen.refused.len() >= FAILOVERS.div_ceil(2),
        "{:?}",
        seen.refused
    );
    assert!(
        seen.refused
            .iter()
            .all(|stale| stale.presented < stale.seen)
    );
    history.never_goes_back(seen.written).await;
}

/// `reigns`: the grants of each primary, as it told them; `fences`: those that candidates have seen.
fn check_order(reigns: &[Vec<u64>], fences: &[u64]) {
    assert_eq!(reigns.len(), FAILOVERS + 1);
    assert!(
        reigns.iter().all(|reign| !reign.is_empty()),
        "somebody led under each primary"
    );
    let order: Vec<u64> = reigns.iter().flatten().copied().collect();
    for pair in order.windows(2) {
        assert!(
            pair[0] < pair[1],
            "{} was granted, and then {}",
            pair[0],
            pair[1]
        );
    }
    // What the witnesses tell is what happened: no candidate saw a grant twice, and they missed none but, perhaps, the
    // last of a primary that was killed before it had told of it.
    let mut once = BTreeSet::new();
    assert!(
        fences.iter().all(|fence| once.insert(*fence)),
        "a token was seen twice"
    );
    assert!(fences.len() >= TENURES);
    let known: BTreeSet<u64> = order.into_iter().collect();
    let untold: Vec<&u64> = once.difference(&known).collect();
    assert!(untold.len() <= FAILOVERS, "{untold:?}");
    for fence in untold {
        let between = reigns
            .windows(2)
            .any(|pair| pair[0].last() < Some(fence) && Some(fence) < pair[1].first());
        assert!(between, "{fence} is not the last of a primary");
    }
}
