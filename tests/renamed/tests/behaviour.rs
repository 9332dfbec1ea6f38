//! What an annotated function does: skipped, failed, run without a lease, lost, nested; and which elector it takes.
#![allow(missing_docs, reason = "a test")]

use std::cell::Cell;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use leader::testing::ScriptedElector;
use leader::{
    BackendKind, Elector, ElectorExt, FromLeaderError, FromSkip, LeaderError, LeaseOptions,
    LocalElector, LossReason, RunOutcome, Skipped, current_lease, ensure_leader, install,
    leader_election, with_elector,
};
use tokio::time::Instant;

fn leading() -> ScriptedElector {
    ScriptedElector::leader()
}

fn following() -> ScriptedElector {
    ScriptedElector::follower("node-b")
}

fn failing() -> ScriptedElector {
    ScriptedElector::failing(BackendKind::Unreachable)
}

/// A type of the user's own, as a handler's response is.
#[derive(Debug, PartialEq)]
struct Response {
    status: u16,
    body: String,
}

impl FromSkip for Response {
    fn from_skip(skipped: Skipped) -> Self {
        let body = skipped
            .holder()
            .map_or_else(String::new, ToString::to_string);
        Self { status: 409, body }
    }
}

impl FromLeaderError for Response {
    fn from_leader_error(_: LeaderError) -> Self {
        Self {
            status: 503,
            body: String::new(),
        }
    }
}

mod skipped {
    use super::*;

    #[leader_election(name = "x", wait = "0s", elector = elector, crate = "leader")]
    async fn unit(elector: &ScriptedElector, ran: &Cell<u32>) -> Result<(), LeaderError> {
        ran.set(ran.get() + 1);
        Ok(())
    }

    #[leader_election(name = "x", wait = "0s", on_error = "skip", crate = "leader")]
    async fn option(elector: &ScriptedElector) -> Option<u8> {
        Some(1)
    }

    #[leader_election(name = "x", wait = "0s", on_error = "skip", crate = "leader")]
    async fn outcome(elector: &ScriptedElector) -> RunOutcome<u8> {
        RunOutcome::Elected(1)
    }

    #[leader_election(name = "x", wait = "0s", crate = "leader")]
    async fn inside(elector: &ScriptedElector) -> Result<Result<Option<u8>, String>, LeaderError> {
        Ok(Err("the body's own".to_owned()))
    }

    #[leader_election(name = "x", wait = "0s", crate = "leader")]
    async fn response(elector: &ScriptedElector) -> Response {
        Response {
            status: 200,
            body: String::new(),
        }
    }

    #[leader_election(name = "x", wait = "0s", skipped = Ok(given(value)), crate = "leader")]
    async fn value(elector: &ScriptedElector, value: String) -> Result<String, LeaderError> {
        Ok(value)
    }

    fn given(mut value: String) -> String {
        value.push_str(", skipped");
        value
    }

    #[tokio::test(start_paused = true)]
    async fn each_return_type_says_it_in_its_own_way() {
        let (yes, no) = (leading(), following());
        let ran = Cell::new(0);
        unit(&no, &ran).await.unwrap();
        assert_eq!(ran.get(), 0);
        unit(&yes, &ran).await.unwrap();
        assert_eq!(ran.get(), 1);

        assert_eq!(option(&no).await, None);
        assert_eq!(option(&yes).await, Some(1));
        let RunOutcome::Skipped(skipped) = outcome(&no).await else {
            panic!("ran");
        };
        assert_eq!(skipped.holder().unwrap(), &"node-b");
        assert_eq!(outcome(&yes).await.elected(), Some(1));
        assert_eq!(inside(&no).await.unwrap(), Ok(None));
        assert!(inside(&yes).await.unwrap().is_err());
        assert_eq!(
            response(&no).await,
            Response {
                status: 409,
                body: "node-b".to_owned()
            }
        );
        assert_eq!(response(&yes).await.status, 200);
        assert_eq!(value(&no, "v".to_owned()).await.unwrap(), "v, skipped");
        assert_eq!(value(&yes, "v".to_owned()).await.unwrap(), "v");
    }

    #[leader_election(name = "x", wait = wait, crate = "leader")]
    async fn waiting(elector: &ScriptedElector, wait: Duration) -> Result<Option<u8>, LeaderError> {
        Ok(Some(1))
    }

    #[tokio::test(start_paused = true)]
    async fn the_wait_is_waited_for() {
        let start = Instant::now();
        assert_eq!(
            waiting(&following(), Duration::from_secs(3)).await.unwrap(),
            None
        );
        assert_eq!(start.elapsed().as_secs(), 3);
    }
}

mod failed {
    use super::*;

    #[leader_election(name = "x", wait = "0s", crate = "leader")]
    async fn returns(elector: &ScriptedElector) -> Result<Option<u8>, LeaderError> {
        Ok(Some(1))
    }

    #[leader_election(name = "x", wait = "0s", on_error = "skip", crate = "leader")]
    async fn skips(elector: &ScriptedElector) -> Result<Option<u8>, LeaderError> {
        Ok(Some(1))
    }

    #[leader_election(
        name = "x",
        wait = "0s",
        on_error = "skip",
        skipped = 7,
        crate = "leader"
    )]
    async fn skips_with_a_value(elector: &ScriptedElector) -> u8 {
        1
    }

    #[leader_election(name = "x", wait = "0s", on_error = "run", crate = "leader")]
    async fn runs(elector: &ScriptedElector, ran: &Cell<u32>) -> Option<u8> {
        ran.set(ran.get() + 1);
        tokio::task::yield_now().await;
        assert!(current_lease().is_none());
        assert!(matches!(ensure_leader(), Err(LeaderError::NotLeading)));
        None
    }

    #[leader_election(name = "x", wait = "0s", on_error = "run", crate = "leader")]
    fn boxed<'a>(elector: &'a ScriptedElector) -> BoxFuture<'a, Result<Option<bool>, LeaderError>> {
        let led = current_lease().is_some();
        Box::pin(async move { Ok(Some(led)) })
    }

    #[leader_election(name = "x:{name}", on_error = "run", crate = "leader")]
    async fn misnamed(elector: &ScriptedElector, name: &str) -> Result<Option<u8>, LeaderError> {
        Ok(Some(1))
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_fails_is_returned_or_skipped() {
        let down = failing();
        assert!(matches!(
            returns(&down).await,
            Err(LeaderError::Backend { .. })
        ));
        assert_eq!(skips(&down).await.unwrap(), None);
        assert_eq!(skips_with_a_value(&down).await, 7);
        assert_eq!(skips_with_a_value(&following()).await, 7);
        assert_eq!(skips_with_a_value(&leading()).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn d03_or_the_body_runs_exactly_once_without_a_lease() {
        let ran = Cell::new(0);
        assert_eq!(runs(&failing(), &ran).await, None);
        assert_eq!(ran.get(), 1);
        assert_eq!(runs(&following(), &ran).await, None);
        assert_eq!(ran.get(), 1, "somebody else leads: that is no failure");
        assert_eq!(boxed(&failing()).await.unwrap(), Some(false));
        assert_eq!(boxed(&leading()).await.unwrap(), Some(true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_mistake_is_no_failure_of_the_store() {
        let misnamed = misnamed(&failing(), "b c").await;
        assert!(
            matches!(misnamed, Err(LeaderError::InvalidName { .. })),
            "{misnamed:?}"
        );
    }
}

mod lost {
    use super::*;

    #[leader_election(name = "x", wait = "0s", crate = "leader")]
    async fn returns(elector: &ScriptedElector) -> Result<Option<u8>, LeaderError> {
        elector.lose(LossReason::Taken);
        pending().await
    }

    #[leader_election(name = "x", wait = "0s", on_error = "skip", crate = "leader")]
    async fn has_an_error(elector: &ScriptedElector) -> Result<Option<u8>, LeaderError> {
        elector.lose(LossReason::Taken);
        pending().await
    }

    #[leader_election(name = "x", wait = "0s", on_error = "skip", crate = "leader")]
    async fn has_none(elector: &ScriptedElector) -> Option<u8> {
        elector.lose(LossReason::Taken);
        pending().await
    }

    // Its error cannot be made from a `LeaderError`.
    #[leader_election(name = "x", wait = "0s", on_error = "skip", crate = "leader")]
    async fn has_another_error(elector: &ScriptedElector) -> Result<Option<u8>, String> {
        elector.lose(LossReason::Taken);
        pending().await
    }

    #[leader_election(name = "x", wait = "0s", on_lost = "notify", crate = "leader")]
    async fn notified(elector: &ScriptedElector, ended: &Cell<bool>) -> Result<(), LeaderError> {
        let lease = current_lease().ok_or(LeaderError::NotLeading)?;
        elector.lose(LossReason::Taken);
        lease.cancellation_token().cancelled().await;
        ended.set(true);
        Ok(())
    }

    #[leader_election(
        name = "x",
        lease = "1s",
        max_tenure = "3s",
        auto_extend,
        crate = "leader"
    )]
    async fn stuck(elector: &ScriptedElector) -> Result<(), LeaderError> {
        pending().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_lease_is_an_error_where_the_type_has_one() {
        let elector = leading();
        assert!(matches!(
            returns(&elector).await,
            Err(LeaderError::LeaseLost { .. })
        ));
        assert!(matches!(
            has_an_error(&elector).await,
            Err(LeaderError::LeaseLost { .. })
        ));
        assert_eq!(has_none(&elector).await, None);
        assert_eq!(has_another_error(&elector).await, Ok(None));
        let ended = Cell::new(false);
        assert!(matches!(
            notified(&elector, &ended).await,
            Err(LeaderError::LeaseLost { .. })
        ));
        assert!(ended.get());
        let start = Instant::now();
        let stuck = stuck(&elector).await;
        assert!(matches!(
            stuck,
            Err(LeaderError::LeaseLost {
                reason: LossReason::MaxTenure,
                ..
            })
        ));
        assert!(start.elapsed() <= Duration::from_secs(3));
    }
}

mod inside {
    use super::*;

    #[leader_election(name = "outer", crate = "leader")]
    async fn outer(elector: &LocalElector) -> Result<Option<bool>, LeaderError> {
        let outer = current_lease().ok_or(LeaderError::NotLeading)?;
        ensure_leader()?;
        let same = inner(elector)
            .await?
            .is_some_and(|inner| inner == outer.fence().get());
        let other = another(elector)
            .await?
            .is_some_and(|other| other != outer.fence().get());
        let spawned = tokio::spawn(async { current_lease().is_none() }).await;
        Ok(Some(
            same && other && spawned.is_ok_and(|is_outside| is_outside),
        ))
    }

    #[leader_election(name = "outer", wait = "0s", crate = "leader")]
    async fn inner(elector: &LocalElector) -> Result<Option<u64>, LeaderError> {
        Ok(current_lease().map(|lease| lease.fence().get()))
    }

    #[leader_election(name = "another", wait = "0s", slots = 2, crate = "leader")]
    async fn another(elector: &LocalElector) -> Result<Option<u64>, LeaderError> {
        Ok(current_lease().map(|lease| lease.fence().get()))
    }

    #[tokio::test(start_paused = true)]
    async fn d08_nested_functions_of_one_name_share_the_lease() {
        assert_eq!(outer(&LocalElector::new()).await.unwrap(), Some(true));
    }

    struct Permit(Arc<AtomicU32>);

    impl Drop for Permit {
        fn drop(&mut self) {
            // Still under the lease.
            assert!(current_lease().is_some());
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[leader_election(name = "permitted", crate = "leader")]
    async fn permitted(elector: &LocalElector, _permit: Permit) -> Result<(), LeaderError> {
        tokio::task::yield_now().await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_parameter_that_is_only_kept_is_dropped_before_the_slot_is_free() {
        let drops = Arc::new(AtomicU32::new(0));
        permitted(&LocalElector::new(), Permit(drops.clone()))
            .await
            .unwrap();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }

    #[leader_election(name = "x", min_lease = "5s", wait = "0s", crate = "leader")]
    async fn kept(elector: &LocalElector) -> Result<Option<()>, LeaderError> {
        Ok(Some(()))
    }

    #[tokio::test(start_paused = true)]
    async fn each_call_is_a_run_of_its_own() {
        let elector = LocalElector::new();
        assert_eq!(kept(&elector).await.unwrap(), Some(()));
        assert_eq!(
            kept(&elector).await.unwrap(),
            None,
            "within the minimum lease"
        );
        tokio::time::advance(Duration::from_secs(6)).await;
        assert_eq!(kept(&elector).await.unwrap(), Some(()));
    }
}

mod electors {
    use super::*;

    fn node() -> Option<String> {
        current_lease().map(|lease| lease.node_id().to_string())
    }

    #[leader_election(name = "x", crate = "leader")]
    async fn current() -> Result<Option<String>, LeaderError> {
        Ok(node())
    }

    #[leader_election(name = "x", crate = "leader")]
    fn future() -> BoxFuture<'static, Result<Option<String>, LeaderError>> {
        Box::pin(async { Ok(node()) })
    }

    #[leader_election(name = "x", crate = "leader")]
    async fn parameter(elector: Arc<dyn Elector>) -> Result<Option<String>, LeaderError> {
        drop(elector);
        Ok(node())
    }

    #[leader_election(name = "x", elector = given, crate = "leader")]
    async fn given_first<G: Elector>(
        elector: LocalElector,
        given: G,
    ) -> Result<Option<String>, LeaderError> {
        drop(elector);
        Ok(node())
    }

    struct State<T>(T);

    #[leader_election(name = "x", crate = "leader")]
    async fn handler(
        State(elector): State<LocalElector>,
    ) -> Result<Option<String>, Box<dyn std::error::Error>> {
        let node = node();
        if node.as_deref() == Some("unknown") {
            Err("unknown")?;
        }
        Ok(node)
    }

    fn named(node: &str) -> LocalElector {
        LocalElector::new().node(node)
    }

    #[tokio::test(start_paused = true)]
    async fn given_then_parameter_then_scope_then_installed() {
        assert!(matches!(current().await, Err(LeaderError::NoElector)));
        install(named("installed")).unwrap();
        let is = |node: &str| Some(node.to_owned());
        assert_eq!(current().await.unwrap(), is("installed"));
        // The scope is that of whoever polls, not that of whoever calls.
        assert_eq!(
            with_elector(named("scope"), current()).await.unwrap(),
            is("scope")
        );
        assert_eq!(
            with_elector(named("scope"), future()).await.unwrap(),
            is("scope")
        );
        let run = parameter(Arc::new(named("parameter")));
        assert_eq!(
            with_elector(named("scope"), run).await.unwrap(),
            is("parameter")
        );
        let run = handler(State(named("state")));
        assert_eq!(run.await.unwrap(), is("state"));
        let run = given_first(named("parameter"), named("given"));
        assert_eq!(run.await.unwrap(), is("given"));
    }
}

#[tokio::test(start_paused = true)]
async fn options_of_the_users_own_are_honoured() {
    #[leader_election(name = "x:{key}", options = options, crate = "leader")]
    async fn run(
        elector: &LocalElector,
        key: &str,
        options: &LeaseOptions,
    ) -> Result<Option<Duration>, LeaderError> {
        Ok(current_lease().map(|lease| lease.remaining()))
    }
    let elector = LocalElector::new();
    let options = LeaseOptions::builder()
        .lease(Duration::from_secs(1))
        .build()
        .unwrap();
    let remaining = run(&elector, "a", &options).await.unwrap().unwrap();
    assert!(remaining <= Duration::from_secs(1));
    assert!(elector.state("x:a").await.unwrap().holders().is_empty());
}

/// Named like a parameter of the function below, but for a slip: it is found all the same.
#[allow(
    non_upper_case_globals,
    reason = "what is to be told from a parameter's name"
)]
const region_: &str = "eu";

#[leader_election(name = "feed:{region_}", wait = "0s", crate = "leader")]
async fn named_by_something_in_scope(region: &str) -> Result<(), LeaderError> {
    let lease = current_lease().ok_or(LeaderError::NotLeading)?;
    assert_eq!(lease.name().as_str(), format!("feed:{region}"));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_name_that_looks_like_a_slip_does_not_run_the_body_unguarded() {
    with_elector(leading(), named_by_something_in_scope("eu"))
        .await
        .unwrap();
}
