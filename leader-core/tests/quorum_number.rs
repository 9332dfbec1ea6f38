//! The fencing token on a quorum of stores in this process: what it costs to agree on it, and when it counts.

use std::time::Duration;

use leader_core::store::{Claim, ClaimReply, LeaseStore, Release, Revision};
use leader_core::testing::FaultyStore;
use leader_core::{FencingToken, LocalStore, LockName, NodeId, Quorum, Step, Token};
use tokio::time::advance;

type Node = FaultyStore<LocalStore>;

const LEASE: Duration = Duration::from_secs(60);

/// Five nodes, each so much ahead of the one before it, and two candidates.
fn five(apart: Duration) -> ([Quorum<Node>; 2], Vec<Node>) {
    let begun = Duration::from_secs(1_700_000_000);
    let nodes: Vec<Node> = (0..5)
        .map(|node| FaultyStore::new(LocalStore::starting_at(begun + apart * node)))
        .collect();
    let candidate = || Quorum::new(nodes.clone()).unwrap();
    ([candidate(), candidate()], nodes)
}

fn name() -> LockName {
    LockName::new("settlement").unwrap()
}

async fn granted(store: &impl LeaseStore, claim: &Claim) -> (u32, FencingToken) {
    match store.claim(claim).await {
        Ok(ClaimReply::Granted { slot, fence }) => (slot, fence),
        other => panic!("not granted: {other:?}"),
    }
}

/// Leads for a moment: the fencing token, and on how many of the nodes it stood.
async fn lead(store: &impl LeaseStore, nodes: &[Node]) -> (FencingToken, usize) {
    let claim = Claim::new(name(), NodeId::new("a"), Token::random(), LEASE);
    let (slot, fence) = granted(store, &claim).await;
    let mut with_it = 0;
    for node in nodes {
        let holders = node.inner().inspect(&name()).await.unwrap();
        with_it += holders.iter().filter(|h| h.fence() == fence).count();
    }
    let release = Release::new(name(), claim.token, slot);
    store.release(&release).await.unwrap();
    (fence, with_it)
}

fn asked(nodes: &[Node], step: Step) -> Vec<usize> {
    nodes.iter().map(|node| node.faults().asked(step)).collect()
}

#[tokio::test(start_paused = true)]
async fn h02_a_run_costs_two_commands_on_each_node() {
    let (candidates, nodes) = five(Duration::from_millis(100));
    let mut last = FencingToken::new(0);
    for run in 1..=20 {
        let (fence, with_it) = lead(&candidates[run % 2], &nodes).await;
        assert!(fence > last, "{last} was followed by {fence}");
        assert_eq!(with_it, 5, "on how many nodes {fence} is");
        for step in [Step::Claim, Step::Release] {
            assert_eq!(asked(&nodes, step), [run; 5], "{step:?}");
        }
        last = fence;
        advance(Duration::from_millis(run as u64)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn g01_where_clocks_are_far_apart_the_greatest_number_is_written_back() {
    let (candidates, nodes) = five(Duration::from_secs(3600));
    let mut last = FencingToken::new(0);
    for run in 0..20 {
        let (fence, with_it) = lead(&candidates[run % 2], &nodes).await;
        assert!(fence > last, "{last} was followed by {fence}");
        assert!(with_it >= 3, "{fence} is on {with_it} nodes");
        last = fence;
        advance(Duration::from_millis(1)).await;
    }
    let claims: usize = asked(&nodes, Step::Claim).iter().sum();
    assert!(claims > 100, "{claims} claims");
}

#[tokio::test(start_paused = true)]
async fn g01_a_number_that_a_minority_is_ahead_of_is_not_granted_below_it() {
    let (candidates, nodes) = five(Duration::ZERO);
    // Two that are down now had granted numbers of their own, as had one that is there.
    for (node, ahead) in [(2, 7), (3, 3), (4, 5)] {
        let inner = nodes[node].inner();
        let now = inner.time_by_now().unwrap() + Duration::from_secs(3600 * ahead);
        let number = u64::try_from(now.as_micros()).unwrap();
        let earlier = Claim::new(name(), NodeId::new("b"), Token::random(), LEASE);
        let earlier = earlier.at_least(Revision::new(number));
        let (slot, fence) = granted(inner, &earlier).await;
        assert_eq!(fence.get(), number);
        let release = Release::new(name(), earlier.token, slot);
        inner.release(&release).await.unwrap();
    }
    for node in &nodes[3..] {
        node.faults().stop(leader_core::BackendKind::Unreachable);
    }
    let two = nodes[2].inner().time_by_now().unwrap() + Duration::from_secs(3600 * 7);
    let (fence, with_it) = lead(&candidates[0], &nodes).await;
    assert!(u128::from(fence.get()) > two.as_micros());
    assert_eq!(with_it, 3, "a majority has it");
}
