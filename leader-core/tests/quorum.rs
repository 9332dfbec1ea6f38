//! A quorum of five stores in this process, some of which fail: what it costs, and what is never wrong.

use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, Granted, LeaseStore, Release, hints,
};
use leader_core::testing::{Fault, FaultyStore};
use leader_core::{
    BackendKind, ElectorExt, FencingToken, LeaderError, LeaseOptions, LocalStore, LockName,
    LossReason, NodeId, Quorum, Step, StoreElector, Token,
};
use tokio::time::{Instant, timeout};

type Node = FaultyStore<LocalStore>;

const LEASE: Duration = Duration::from_secs(60);
/// A local store's time limit.
const LIMIT: Duration = Duration::from_millis(500);

/// Five nodes whose clocks differ: the last is the furthest ahead.
fn five() -> (Quorum<Node>, Vec<Node>) {
    let clocks = (0..5).map(|hours| Duration::from_secs(1_700_000_000 + 3600 * hours));
    let nodes: Vec<Node> = clocks
        .map(|clock| FaultyStore::new(LocalStore::starting_at(clock)))
        .collect();
    (Quorum::new(nodes.clone()).unwrap(), nodes)
}

fn name() -> LockName {
    LockName::new("settlement").unwrap()
}

fn claim(token: Token) -> Claim {
    Claim::new(name(), NodeId::new("a"), token, LEASE)
}

fn fails(node: &Node, fault: Fault) {
    for step in [
        Step::Claim,
        Step::Extend,
        Step::Release,
        Step::Watch,
        Step::Inspect,
    ] {
        node.faults().always(step, fault);
    }
}

async fn granted(store: &impl LeaseStore, claim: &Claim) -> (u32, FencingToken) {
    match store.claim(claim).await {
        Ok(ClaimReply::Granted { slot, fence }) => (slot, fence),
        other => panic!("not granted: {other:?}"),
    }
}

/// What each node has: the slots and their fencing tokens.
async fn slots(nodes: &[Node]) -> Vec<Vec<(u32, FencingToken)>> {
    let mut all = Vec::new();
    for node in nodes {
        let holders = node.inner().inspect(&name()).await.unwrap();
        all.push(holders.iter().map(|h| (h.slot(), h.fence())).collect());
    }
    all
}

#[tokio::test]
async fn as_many_nodes_as_are_named_and_no_fewer_than_one() {
    for (nodes, majority, spare) in [(1, 1, 0), (2, 2, 0), (3, 2, 1), (4, 3, 1), (5, 3, 2)] {
        let quorum = Quorum::new((0..nodes).map(|_| LocalStore::new())).unwrap();
        assert_eq!((quorum.majority(), quorum.tolerates()), (majority, spare));
    }
    for nodes in [0, 32] {
        let refused = Quorum::new((0..nodes).map(|_| LocalStore::new()));
        assert!(matches!(refused, Err(LeaderError::InvalidOptions { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn h02_two_that_hang_cost_less_than_one_time_limit_over_a_whole_run() {
    let (quorum, nodes) = five();
    fails(&nodes[1], Fault::HoldRequest);
    fails(&nodes[4], Fault::HoldRequest);
    let elector = StoreElector::builder(quorum.clone()).build();
    let options = LeaseOptions::builder().build().unwrap();
    let begun = Instant::now();
    let ran = elector
        .run_if_leader("settlement", &options, |_| async {})
        .await;
    assert_eq!(ran.unwrap(), Some(()));
    assert!(begun.elapsed() < LIMIT, "{:?}", begun.elapsed());

    // What they were sent late has found its end by then.
    tokio::time::sleep(LIMIT * 3).await;
    for node in &nodes {
        node.faults().heal();
    }
    tokio::time::sleep(LIMIT).await;
    assert!(slots(&nodes).await.iter().all(Vec::is_empty));
    assert_eq!(quorum.footprint(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn h02_three_that_are_down_are_an_error_at_once_which_says_why() {
    let (quorum, nodes) = five();
    for node in &nodes[..3] {
        fails(node, Fault::Refuse(BackendKind::Unreachable));
    }
    let elector = StoreElector::builder(quorum.clone()).build();
    let options = LeaseOptions::builder()
        .wait(Duration::ZERO)
        .build()
        .unwrap();
    let begun = Instant::now();
    let error = elector
        .try_acquire("settlement", &options)
        .await
        .unwrap_err();
    assert!(
        begun.elapsed() <= Duration::from_millis(2),
        "{:?}",
        begun.elapsed()
    );
    let words = error.to_string();
    assert!(
        words.contains("2 of 5 nodes have answered, and 3 must"),
        "{words}"
    );
    assert!(words.contains("node 3 is unreachable"), "{words}");

    // A minority frees what it got.
    while slots(&nodes).await.iter().any(|slots| !slots.is_empty()) {
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(begun.elapsed() < LIMIT, "the minority is still taken");
    }
}

#[tokio::test(start_paused = true)]
async fn h02_a_minority_that_was_granted_is_free_at_once() {
    let (quorum, nodes) = five();
    let peer = claim(Token::random());
    for node in &nodes[..3] {
        granted(node.inner(), &peer).await;
    }
    let reply = quorum.claim(&claim(Token::random())).await.unwrap();
    assert!(matches!(reply, ClaimReply::Taken { .. }), "{reply:?}");
    let taken: Vec<usize> = slots(&nodes).await.iter().map(Vec::len).collect();
    assert_eq!(taken, [1, 1, 1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn h02_a_node_that_restarted_empty_lets_no_peer_in_and_is_given_its_record_again() {
    let (quorum, nodes) = five();
    let holder = claim(Token::random());
    let (slot, fence) = granted(&quorum, &holder).await;
    nodes[0].inner().evict(&name()).await.unwrap();
    let peer = quorum.claim(&claim(Token::random())).await.unwrap();
    assert!(matches!(peer, ClaimReply::Taken { .. }), "{peer:?}");

    let extension = Extension::new(name(), holder.token, slot, LEASE).of(Granted::new(
        NodeId::new("a"),
        1,
        fence,
    ));
    let replies = quorum.extend(std::slice::from_ref(&extension)).await;
    assert!(
        matches!(replies[..], [Ok(ExtendReply::Extended)]),
        "{replies:?}"
    );
    tokio::time::sleep(Duration::from_millis(1)).await;
    let on_node = slots(&nodes).await;
    assert_eq!(on_node[0].len(), 1, "the record is there again");
}

#[tokio::test(start_paused = true)]
async fn h02_a_lease_that_a_majority_has_lost_is_lost_and_not_written_again() {
    let (quorum, nodes) = five();
    let holder = claim(Token::random());
    let (slot, fence) = granted(&quorum, &holder).await;
    for node in &nodes[..3] {
        node.inner().evict(&name()).await.unwrap();
    }
    let asked: Vec<usize> = nodes
        .iter()
        .map(|node| node.faults().asked(Step::Claim))
        .collect();
    let extension = Extension::new(name(), holder.token, slot, LEASE).of(Granted::new(
        NodeId::new("a"),
        1,
        fence,
    ));
    let replies = quorum.extend(&[extension]).await;
    let lost = Ok(ExtendReply::NotHeld(LossReason::Deleted));
    assert_eq!(
        replies
            .into_iter()
            .map(|r| r.map_err(|e| e.to_string()))
            .collect::<Vec<_>>(),
        [lost]
    );
    tokio::time::sleep(LIMIT).await;
    let again: Vec<usize> = nodes
        .iter()
        .map(|node| node.faults().asked(Step::Claim))
        .collect();
    assert_eq!(again, asked, "no node is claimed again");
}

#[tokio::test(start_paused = true)]
async fn g01_the_greatest_number_is_on_a_majority_before_the_grant_counts() {
    let (quorum, nodes) = five();
    let first = claim(Token::random());
    let (slot, fence) = granted(&quorum, &first).await;
    let with_it = slots(&nodes).await;
    let with_it = with_it
        .iter()
        .filter(|slots| slots.contains(&(slot, fence)));
    assert!(with_it.count() >= 3);
    quorum
        .release(&Release::new(name(), first.token, slot))
        .await
        .unwrap();

    // The node that issued it is gone, and the clocks of the others are hours behind it.
    fails(&nodes[4], Fault::Refuse(BackendKind::Unreachable));
    let (_, next) = granted(&quorum, &claim(Token::random())).await;
    assert!(next > fence, "{fence} was followed by {next}");
}

#[tokio::test(start_paused = true)]
async fn a03_copies_of_a_claim_are_granted_the_same_whoever_answers_first() {
    let (quorum, nodes) = five();
    let late = Fault::DelayReply(Duration::from_millis(50));
    // Those that are ahead are late for the first copy, and one of the others is for all that come after.
    for node in &nodes[3..] {
        node.faults().once(Step::Claim, late);
    }
    let first = claim(Token::random());
    let copies = async {
        let copy = async {
            tokio::task::yield_now().await;
            nodes[2].faults().always(Step::Claim, late);
            granted(&quorum, &first).await
        };
        tokio::join!(granted(&quorum, &first), copy)
    };
    let (one, other) = timeout(LIMIT, copies).await.unwrap();
    assert_eq!(one, other);
    let again = granted(&quorum, &first).await;
    assert_eq!(one, again, "nor does one that comes later");
}

#[tokio::test(start_paused = true)]
async fn g01_the_number_that_is_read_is_the_one_that_was_granted() {
    let (quorum, nodes) = five();
    let late = Fault::DelayReply(Duration::from_millis(50));
    // Those that are ahead were late for the claim, and have numbers of their own; the others are late when it is read.
    for node in &nodes[3..] {
        node.faults().once(Step::Claim, late);
    }
    let (_, fence) = granted(&quorum, &claim(Token::random())).await;
    for node in &nodes[1..3] {
        node.faults().once(Step::Inspect, late);
    }
    let holders = quorum.inspect(&name()).await.unwrap();
    assert_eq!(holders[0].fence(), fence);
}

#[tokio::test(start_paused = true)]
async fn e01_a_slot_is_the_same_one_on_a_majority() {
    let (quorum, nodes) = five();
    // Slot 0 is taken on two nodes, by somebody who has given up elsewhere.
    let peer = claim(Token::random()).of_slots(2);
    for node in &nodes[..2] {
        granted(node.inner(), &peer).await;
    }
    fails(&nodes[2], Fault::Refuse(BackendKind::Unreachable));
    let (slot, _) = granted(&quorum, &claim(Token::random()).of_slots(2)).await;
    assert_eq!(slot, 1, "the only slot that three of the four have free");
    let same = slots(&nodes).await;
    let same = same
        .iter()
        .filter(|slots| slots.iter().any(|(of, _)| *of == 1));
    assert!(same.count() >= 3);
}

#[tokio::test(start_paused = true)]
async fn a11_a_waiter_is_woken_by_those_that_still_tell() {
    let (quorum, nodes) = five();
    let holder = claim(Token::random());
    let (slot, _) = granted(&quorum, &holder).await;
    let Ok(ClaimReply::Taken { revision, .. }) = quorum.claim(&claim(Token::random())).await else {
        panic!("the name is held");
    };
    fails(&nodes[0], Fault::HoldRequest);
    fails(&nodes[4], Fault::Refuse(BackendKind::Unreachable));
    let (sender, mut told) = hints();
    let _watching = quorum.watch(&name(), revision, sender).await.unwrap();
    quorum
        .release(&Release::new(name(), holder.token, slot))
        .await
        .unwrap();
    timeout(LIMIT, told.told()).await.expect("three nodes tell");

    fails(&nodes[1], Fault::Refuse(BackendKind::Denied));
    let (sender, _told) = hints();
    let error = quorum.watch(&name(), revision, sender).await.unwrap_err();
    assert!(error.to_string().contains("and 3 must"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a13_a_node_that_was_late_for_the_claim_wakes_nobody_in_vain() {
    let (quorum, nodes) = five();
    let first = claim(Token::random());
    let (slot, _) = granted(&quorum, &first).await;
    // What the node that is ahead tells of this is more than the others have told by then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let release = Release::new(name(), first.token, slot);
    quorum.release(&release).await.unwrap();
    let late = Fault::DelayReply(Duration::from_millis(50));
    nodes[3].faults().once(Step::Claim, late);
    nodes[4].faults().times(2, Step::Claim, late);
    let holder = claim(Token::random());
    let (slot, _) = granted(&quorum, &holder).await;
    let Ok(ClaimReply::Taken { revision, .. }) = quorum.claim(&claim(Token::random())).await else {
        panic!("two led");
    };
    let (post, mut ear) = hints();
    let _watching = quorum.watch(&name(), revision, post).await.unwrap();
    let woken = timeout(Duration::from_secs(5), ear.told()).await;
    assert!(woken.is_err(), "nobody has released anything");
    let release = Release::new(name(), holder.token, slot);
    quorum.release(&release).await.unwrap();
    timeout(LIMIT, ear.told()).await.expect("it is woken now");
}

#[tokio::test(start_paused = true)]
async fn candidates_who_ask_at_once_do_not_all_come_away_empty() {
    let (_, nodes) = five();
    let electors: Vec<_> = (0..3)
        .map(|_| StoreElector::builder(Quorum::new(nodes.clone()).unwrap()).build())
        .collect();
    // Each finds another node first.
    for (index, node) in nodes.iter().enumerate() {
        for turn in 0..3 {
            let delay = Duration::from_millis(1 + (index as u64 + turn * 2) % 5);
            node.faults().once(Step::Claim, Fault::DelayRequest(delay));
        }
    }
    let options = LeaseOptions::builder()
        .wait(Duration::ZERO)
        .build()
        .unwrap();
    let attempts = electors
        .iter()
        .map(|elector| elector.try_acquire("settlement", &options));
    let leases = futures::future::join_all(attempts).await;
    let elected = leases
        .iter()
        .filter(|lease| matches!(lease, Ok(Some(_))))
        .count();
    assert_eq!(elected, 1, "{leases:?}");
}

/// Candidates whose requests find each another node first.
fn at_odds(candidates: usize, nodes: &[Node]) -> Vec<StoreElector<Quorum<Node>>> {
    for (index, node) in nodes.iter().enumerate() {
        for turn in 0..candidates {
            let delay = Duration::from_millis(1 + ((index + turn * 2) % nodes.len()) as u64);
            node.faults().once(Step::Claim, Fault::DelayRequest(delay));
        }
    }
    (0..candidates)
        .map(|_| StoreElector::builder(Quorum::new(nodes.to_vec()).unwrap()).build())
        .collect()
}

async fn all_stand(electors: &[StoreElector<Quorum<Node>>], slots: u32) -> usize {
    let options = LeaseOptions::builder().wait(Duration::ZERO).slots(slots);
    let options = options.build().unwrap();
    let attempts = electors
        .iter()
        .map(|elector| elector.try_acquire("settlement", &options));
    let leases = futures::future::join_all(attempts).await;
    leases
        .iter()
        .filter(|lease| matches!(lease, Ok(Some(_))))
        .count()
}

#[tokio::test(start_paused = true)]
async fn two_who_have_half_of_an_even_number_of_nodes_do_not_both_come_away_empty() {
    for count in [2, 4] {
        let nodes: Vec<Node> = (0..count)
            .map(|_| FaultyStore::new(LocalStore::new()))
            .collect();
        // The first half hears the first candidate first.
        for (index, node) in nodes.iter().enumerate() {
            let delays = if index < count / 2 { [1, 2] } else { [2, 1] };
            for delay in delays.map(Duration::from_millis) {
                node.faults().once(Step::Claim, Fault::DelayRequest(delay));
            }
        }
        let electors: Vec<_> = (0..2)
            .map(|_| StoreElector::builder(Quorum::new(nodes.clone()).unwrap()).build())
            .collect();
        assert_eq!(all_stand(&electors, 1).await, 1, "of {count} nodes");
    }
}

#[tokio::test(start_paused = true)]
async fn five_who_ask_at_once_for_two_slots_do_not_all_come_away_empty() {
    let (_, nodes) = five();
    let electors = at_odds(5, &nodes);
    assert!(all_stand(&electors, 2).await >= 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_refuses_the_number_is_told_to_free_what_it_had_granted() {
    let clocks = [0, 3600, 7200].map(|hours| Duration::from_secs(1_700_000_000 + hours));
    let nodes = clocks.map(|clock| FaultyStore::new(LocalStore::starting_at(clock)));
    let quorum = Quorum::new(nodes.clone()).unwrap();
    // The third is a peer's, and answers late; the first two grant, and the first then refuses the greater number.
    granted(nodes[2].inner(), &claim(Token::random())).await;
    let late = Duration::from_millis(20);
    nodes[2]
        .faults()
        .once(Step::Claim, Fault::DelayRequest(late));
    nodes[0]
        .faults()
        .once(Step::Claim, Fault::DelayRequest(Duration::ZERO));
    nodes[0]
        .faults()
        .once(Step::Claim, Fault::Refuse(BackendKind::OutOfMemory));
    for _ in 0..4 {
        nodes[0]
            .faults()
            .once(Step::Claim, Fault::Refuse(BackendKind::OutOfMemory));
    }
    let reply = quorum.claim(&claim(Token::random())).await.unwrap();
    assert!(matches!(reply, ClaimReply::Taken { .. }), "{reply:?}");
    tokio::time::sleep(LIMIT).await;
    let taken: Vec<usize> = slots(&nodes).await.iter().map(Vec::len).collect();
    assert_eq!(taken, [0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_round_was_granted_is_free_when_the_next_one_does_not_hear_of_it() {
    let (quorum, nodes) = five();
    let nodes_of_failure = &nodes[1..4];
    for node in nodes_of_failure {
        node.faults()
            .once(Step::Claim, Fault::Refuse(BackendKind::Unreachable));
    }
    let own = claim(Token::random());
    quorum.claim(&own).await.unwrap_err();
    // Asked again: a peer has three nodes, and one that had granted the claim refuses to answer.
    let peer = claim(Token::random());
    for node in nodes_of_failure {
        granted(node.inner(), &peer).await;
    }
    for _ in 0..4 {
        nodes[0]
            .faults()
            .once(Step::Claim, Fault::Refuse(BackendKind::OutOfMemory));
    }
    let reply = quorum.claim(&own).await.unwrap();
    assert!(matches!(reply, ClaimReply::Taken { .. }), "{reply:?}");
    tokio::time::sleep(LIMIT).await;
    let taken: Vec<usize> = slots(&nodes).await.iter().map(Vec::len).collect();
    assert_eq!(taken, [0, 1, 1, 1, 0]);
}
