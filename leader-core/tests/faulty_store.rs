//! The faulty store does to each call what it was told to, in the order and at the time that it was told.

use std::time::Duration;

use futures::FutureExt;
use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, LeaseStore, Release, ReleaseReply, Revision,
    StoreError, hints,
};
use leader_core::testing::faulty::{Entry, Happened, Part, Reply, Request};
use leader_core::testing::{Fault, Faults, FaultyStore};
use leader_core::{BackendKind, LocalStore, LockName, NodeId, Step, Token};
use tokio::time::{Instant, sleep};

mod without_a_fault {
    use super::{FaultyStore, LocalStore};

    leader_core::conformance_tests!(
        store = async { FaultyStore::new(LocalStore::new()) },
        start_paused = true
    );
}

const LEASE: Duration = Duration::from_secs(60);
const DELAY: Duration = Duration::from_millis(100);

type Store = FaultyStore<LocalStore>;

fn store() -> (Store, Faults) {
    let store = FaultyStore::new(LocalStore::new());
    let faults = store.faults();
    (store, faults)
}

fn name() -> LockName {
    LockName::new("invoice-close").unwrap()
}

fn claim_by(number: u8) -> Claim {
    let node_id = NodeId::new(format!("node-{number}"));
    Claim::new(name(), node_id, Token::from_bytes([number; 16]), LEASE)
}

fn release_by(number: u8) -> Release {
    Release::new(name(), Token::from_bytes([number; 16]), 0)
}

fn kind<T>(reply: Result<T, StoreError>) -> Option<BackendKind> {
    reply.err().map(|error| error.kind())
}

fn is_granted(reply: &Result<ClaimReply, StoreError>) -> bool {
    matches!(reply, Ok(ClaimReply::Granted { .. }))
}

/// The log's lines without their times.
fn lines(log: &[Entry]) -> Vec<String> {
    let line = |entry: &Entry| {
        let line = entry.to_string();
        line.split_once(' ').unwrap().1.to_owned()
    };
    log.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_does_nothing_and_says_so() {
    let (store, faults) = store();
    faults.times(2, Step::Claim, Fault::Refuse(BackendKind::Unreachable));
    for _ in 0..2 {
        let error = store.claim(&claim_by(1)).await.unwrap_err();
        assert_eq!(error.kind(), BackendKind::Unreachable);
        assert!(!error.may_have_run());
    }
    assert_eq!(faults.ran(Step::Claim), 0);
    assert!(is_granted(&store.claim(&claim_by(2)).await));
    assert_eq!((faults.asked(Step::Claim), faults.ran(Step::Claim)), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_does_nothing_and_leaves_it_open() {
    let (store, faults) = store();
    let begun = Instant::now();
    faults.once(
        Step::Claim,
        [
            Fault::LoseRequest(BackendKind::TimedOut),
            Fault::DelayReply(DELAY),
        ],
    );
    let error = store.claim(&claim_by(1)).await.unwrap_err();
    assert!(error.may_have_run());
    assert_eq!(begun.elapsed(), DELAY);
    assert_eq!(faults.ran(Step::Claim), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_does_what_was_asked_and_leaves_it_open() {
    let (store, faults) = store();
    faults.once(Step::Claim, Fault::LoseReply(BackendKind::Unreachable));
    let error = store.claim(&claim_by(1)).await.unwrap_err();
    assert!(error.may_have_run());
    assert_eq!(faults.ran(Step::Claim), 1);
    let reply = store.claim(&claim_by(2)).await;
    assert!(matches!(reply, Ok(ClaimReply::Taken { .. })), "{reply:?}");
}

#[test]
#[should_panic(expected = "a step whose reply is lost may have run")]
fn a_reply_is_not_lost_with_a_kind_that_says_nothing_was_done() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _in_runtime = runtime.enter();
    let (_store, faults) = store();
    faults.once(Step::Claim, Fault::LoseReply(BackendKind::ReadOnly));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_store_refuses_every_step_until_it_is_healed() {
    let (store, faults) = store();
    faults.stop(BackendKind::NotReady);
    let refused = Some(BackendKind::NotReady);
    let (hints, _told) = hints();
    let extension = Extension::new(name(), Token::random(), 0, LEASE);
    assert_eq!(kind(store.claim(&claim_by(1)).await), refused);
    assert_eq!(kind(store.release(&release_by(1)).await), refused);
    assert_eq!(kind(store.inspect(&name()).await), refused);
    assert_eq!(kind(store.evict(&name()).await), refused);
    let watch = store.watch(&name(), Revision::default(), hints).await;
    assert_eq!(kind(watch), refused);
    // One answer for each entry of the batch.
    let replies = store.extend(&[extension.clone(), extension]).await;
    assert_eq!(replies.len(), 2);
    for reply in replies {
        assert_eq!(kind(reply), refused);
    }
    assert_eq!(faults.asked(Step::Extend), 1);

    faults.heal();
    assert!(is_granted(&store.claim(&claim_by(1)).await));
}

#[tokio::test(start_paused = true)]
async fn what_is_armed_once_goes_before_always_before_what_is_decided() {
    let (store, faults) = store();
    faults.decide(|call| match &call.request {
        Request::Claim(claim) if claim.node_id == "node-3" => {
            vec![Fault::Refuse(BackendKind::Denied)]
        }
        _ => Vec::new(),
    });
    faults.always(Step::Claim, Fault::Refuse(BackendKind::ReadOnly));
    faults.once(Step::Claim, Fault::Refuse(BackendKind::OutOfMemory));
    let mut kinds = Vec::new();
    for _ in 0..2 {
        kinds.push(kind(store.claim(&claim_by(3)).await));
    }
    faults.disarm();
    faults.decide(|call| {
        assert_eq!(call.number, 3);
        vec![Fault::Refuse(BackendKind::Denied)]
    });
    kinds.push(kind(store.claim(&claim_by(3)).await));
    assert_eq!(
        kinds,
        [
            Some(BackendKind::OutOfMemory),
            Some(BackendKind::ReadOnly),
            Some(BackendKind::Denied)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn delays_add_up_on_either_way() {
    let (store, faults) = store();
    faults.once(
        Step::Claim,
        [
            Fault::DelayRequest(DELAY),
            Fault::DelayRequest(DELAY),
            Fault::DelayReply(DELAY),
        ],
    );
    assert!(is_granted(&store.claim(&claim_by(1)).await));
    let at: Vec<Duration> = faults.log().iter().map(|entry| entry.at).collect();
    assert_eq!(at, [Duration::ZERO, DELAY * 2, DELAY * 3]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_request_arrives_when_its_caller_has_given_up() {
    let (store, faults) = store();
    faults.once(Step::Claim, Fault::DelayRequest(DELAY));
    let answer = tokio::time::timeout(DELAY / 2, store.claim(&claim_by(1))).await;
    assert!(answer.is_err());
    assert_eq!(faults.ran(Step::Claim), 0);
    sleep(DELAY).await;
    assert_eq!(faults.ran(Step::Claim), 1);
    assert_eq!(
        lines(&faults.log())[1..2],
        ["#1 claim given up"],
        "{:?}",
        faults.log()
    );
    assert_eq!(store.inspect(&name()).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_held_reply_comes_when_the_store_is_healed() {
    let (store, faults) = store();
    faults.always(Step::Claim, Fault::HoldReply);
    let claim = claim_by(1);
    let mut answer = std::pin::pin!(store.claim(&claim));
    assert!(
        tokio::time::timeout(LEASE, answer.as_mut()).await.is_err(),
        "no answer, however long it takes"
    );
    assert_eq!(faults.ran(Step::Claim), 1);
    assert_eq!(faults.held()[0].part, Part::Reply);
    faults.heal();
    assert!(is_granted(&answer.await));
    assert!(faults.held().is_empty());
}

#[tokio::test(start_paused = true)]
async fn held_requests_arrive_in_the_order_in_which_they_are_let_go() {
    let (store, faults) = store();
    faults.times(3, Step::Claim, Fault::HoldRequest);
    let claims = [claim_by(1), claim_by(2), claim_by(3)];
    let asking = claims.each_ref().map(|claim| store.claim(claim));
    let asked = futures::future::join_all(asking);
    let let_go = async {
        faults.until_asked(Step::Claim, 3).await;
        let held = faults.held();
        assert!(held.iter().all(|held| held.part == Part::Request));
        for held in held.iter().rev() {
            faults.let_go(held.call.number);
        }
    };
    let (replies, ()) = tokio::join!(asked, let_go);
    let granted: Vec<bool> = replies.iter().map(is_granted).collect();
    assert_eq!(granted, [false, false, true], "the last one came first");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_runs_twice_and_is_answered_once() {
    let (store, faults) = store();
    faults.once(Step::Claim, Fault::Repeat(Duration::ZERO));
    assert!(is_granted(&store.claim(&claim_by(1)).await));
    assert_eq!((faults.asked(Step::Claim), faults.ran(Step::Claim)), (1, 2));

    faults.once(Step::Release, Fault::Repeat(DELAY));
    let reply = store.release(&release_by(1)).await.unwrap();
    assert!(matches!(reply, ReleaseReply::Released { .. }));
    assert_eq!(faults.ran(Step::Release), 1);
    sleep(DELAY * 2).await;
    assert_eq!(faults.ran(Step::Release), 2);
}

#[tokio::test(start_paused = true)]
async fn a_claims_copy_can_be_held_until_after_its_release() {
    let (store, faults) = store();
    for (release, refused) in [(release_by(1), false), (release_by(2).marking(LEASE), true)] {
        let claim = Claim::new(name(), NodeId::new("node"), release.token, LEASE);
        faults.once(Step::Claim, Fault::HoldRepeat);
        assert!(is_granted(&store.claim(&claim).await));
        store.release(&release).await.unwrap();
        assert_eq!(faults.held()[0].part, Part::Repeat);
        faults.let_go_all();
        faults.until_asked(Step::Release, 1).await;
        tokio::task::yield_now().await;
        let last = faults.take_log().pop().unwrap();
        let ended = matches!(
            last.happened,
            Happened::Ran(Reply::Claim(Ok(ClaimReply::Ended)))
        );
        assert_eq!(ended, refused, "{last}");
        assert_eq!(store.evict(&name()).await.unwrap(), u32::from(!refused));
    }
}

#[tokio::test(start_paused = true)]
async fn lost_hints_are_made_up_for_when_the_store_is_healed() {
    let (store, faults) = store();
    store.claim(&claim_by(1)).await.unwrap();
    let ClaimReply::Taken { revision, .. } = store.claim(&claim_by(2)).await.unwrap() else {
        panic!("the name is held");
    };
    faults.once(Step::Watch, Fault::LoseHints);
    let (sender, mut told) = hints();
    let watching = store.watch(&name(), revision, sender).await.unwrap();
    store.release(&release_by(1)).await.unwrap();
    sleep(LEASE).await;
    assert!(told.told().now_or_never().is_none(), "the hint is lost");

    faults.heal();
    sleep(Duration::from_millis(1)).await;
    assert!(told.told().now_or_never().is_some(), "something was missed");
    assert!(told.told().now_or_never().is_none(), "and told once");

    store.claim(&claim_by(3)).await.unwrap();
    store.release(&release_by(3)).await.unwrap();
    sleep(Duration::from_millis(1)).await;
    assert!(told.told().now_or_never().is_some(), "the watch goes on");
    drop(watching);
}

#[tokio::test(start_paused = true)]
async fn delayed_hints_come_late() {
    let (store, faults) = store();
    store.claim(&claim_by(1)).await.unwrap();
    let ClaimReply::Taken { revision, .. } = store.claim(&claim_by(2)).await.unwrap() else {
        panic!("the name is held");
    };
    faults.once(Step::Watch, Fault::DelayHints(DELAY));
    let (sender, mut told) = hints();
    let _watching = store.watch(&name(), revision, sender).await.unwrap();
    store.release(&release_by(1)).await.unwrap();
    let begun = Instant::now();
    told.told().await;
    assert_eq!(begun.elapsed(), DELAY);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_waits_for_nothing_passes_only_when_told_so_and_unarmed() {
    let (store, faults) = store();
    store.claim(&claim_by(1)).await.unwrap();
    assert_eq!(store.release_now(&release_by(1), Instant::now()), None);
    faults.allow_release_now();
    faults.always(Step::Claim, Fault::HoldReply);
    assert_eq!(store.release_now(&release_by(1), Instant::now()), None);
    faults.disarm();
    assert!(matches!(
        store.release_now(&release_by(1), Instant::now()),
        Some(ReleaseReply::Released { .. })
    ));
    assert_eq!(faults.ran(Step::Release), 1);
}

#[tokio::test(start_paused = true)]
async fn the_log_reads_as_a_trace_without_tokens() {
    let trace = async || {
        let (store, faults) = store();
        faults.once(Step::Release, Fault::LoseReply(BackendKind::TimedOut));
        faults.once(Step::Extend, Fault::DelayRequest(DELAY));
        store.claim(&claim_by(1)).await.unwrap();
        let extension = Extension::new(name(), Token::from_bytes([1; 16]), 0, LEASE);
        let replies = store.extend(&[extension]).await;
        assert!(matches!(replies[0], Ok(ExtendReply::Extended)));
        let release = release_by(1).keeping(DELAY).marking(LEASE);
        store.release(&release).await.unwrap_err();
        store.evict(&name()).await.unwrap();
        faults.take_log()
    };
    let log = trace().await;
    let lines = lines(&log);
    assert_eq!(
        [
            &lines[0], &lines[3], &lines[6], &lines[8], &lines[9], &lines[11]
        ],
        [
            "#1 claim asked: invoice-close by node-1 for 60s, 1 slots",
            "#2 extend asked: invoice-close[0] for 60s",
            "#3 release asked: invoice-close[0], kept for 100ms, marked for 60s",
            "#3 release answered: not answering in time: no answer: the reply was lost, as the test has ordered",
            "#4 evict asked: invoice-close",
            "#4 evict answered: 1",
        ]
    );
    assert_eq!(log[4].at, DELAY);
    assert_eq!(lines.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_when_store_and_handle_are_gone() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let (store, faults) = store();
    faults.always(Step::Claim, Fault::HoldRequest);
    faults.always(Step::Release, Fault::HoldRepeat);
    faults.always(Step::Watch, Fault::LoseHints);
    assert!(store.claim(&claim_by(1)).now_or_never().is_none());
    store.release(&release_by(1)).await.unwrap();
    let (sender, _told) = hints();
    let watching = store
        .watch(&name(), Revision::default(), sender)
        .await
        .unwrap();
    assert_eq!(faults.held().len(), 3);
    assert_eq!(tasks(), 1, "only hints are passed on by a task");
    drop((store, faults, watching));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(tasks(), 0);
}
