//! Part D of the scenarios through the attribute: functions, methods and streams that are annotated, on every store.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use leader_core::testing::ScriptedElector;
use leader_core::{
    BackendKind, Elector, ElectorExt, LeaderError, LeaderEvent, RunOutcome, current_lease,
    ensure_leader, leader_election, with_elector,
};
use leader_tests::{
    Redis, World, at_once, elector_at, is_skipped, lead, ms, on_every_store, patient,
};
use tokio::time::{sleep, timeout};

on_every_store!(
    d01_a_body_that_returns_nothing_is_elected_and_counted_so,
    d04_functions_and_methods_of_every_shape_lead,
    d06_a_stream_that_nobody_polls_claims_nothing,
    d06_polled_and_dropped_half_way_it_is_free_at_once,
    d06_each_call_is_a_run_of_its_own,
    d06_a_lease_lost_between_items_is_the_last_item,
    d07_a_consumer_slower_than_the_lease_is_still_the_leader,
    d07_a_timeout_inside_the_body_is_the_bodys_own_business,
    d08_nested_calls_of_one_name_share_the_lease,
    d08_another_slot_count_or_another_elector_is_another_lock,
    d08_a_spawned_task_does_not_inherit,
);

/// Whether the code that asks runs under a valid lease of this name.
fn leads(name: &str) -> bool {
    ensure_leader().is_ok() && current_lease().is_some_and(|lease| lease.name().as_str() == name)
}

fn fence() -> Option<u64> {
    current_lease().map(|lease| lease.fence().get())
}

#[leader_election(name = "x", wait = "0s")]
async fn unit<E: Elector>(elector: &E) -> Result<(), LeaderError> {
    assert!(leads("x"));
    Ok(())
}

#[leader_election(name = "x", wait = "0s")]
async fn none<E: Elector>(elector: &E, ran: &AtomicU32) -> Result<Option<u8>, LeaderError> {
    ran.fetch_add(1, Ordering::SeqCst);
    Ok(None)
}

#[leader_election(name = "x", wait = "0s", on_error = "skip")]
async fn outcome<E: Elector>(elector: &E) -> RunOutcome<()> {
    RunOutcome::Elected(())
}

async fn d01_a_body_that_returns_nothing_is_elected_and_counted_so<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let mut events = a.events();
    let ran = AtomicU32::new(0);
    unit(&a).await.unwrap();
    assert_eq!(none(&a, &ran).await.unwrap(), None);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert!(outcome(&a).await.ran());

    let held = lead(&b, "x", &patient()).await;
    unit(&a).await.unwrap();
    assert_eq!(none(&a, &ran).await.unwrap(), None);
    assert_eq!(ran.load(Ordering::SeqCst), 1, "the body ran");
    let RunOutcome::Skipped(skipped) = outcome(&a).await else {
        panic!("the body ran");
    };
    assert_eq!(skipped.holder().unwrap(), &"b");
    held.release().await.unwrap();

    a.shutdown().await;
    let (mut elected, mut skips) = (0, 0);
    while let Some(event) = events.next().await {
        match event {
            LeaderEvent::Elected { .. } => elected += 1,
            LeaderEvent::Skipped { .. } => skips += 1,
            _ => {}
        }
    }
    assert_eq!((elected, skips), (3, 3));
}

mod d03 {
    use super::*;

    #[leader_election(name = "x", wait = "0s", on_error = "run")]
    async fn open<E: Elector>(elector: &E, ran: &AtomicU32) -> Option<u8> {
        ran.fetch_add(1, Ordering::SeqCst);
        tokio::task::yield_now().await;
        assert!(current_lease().is_none());
        assert!(matches!(ensure_leader(), Err(LeaderError::NotLeading)));
        None
    }

    #[leader_election(name = "x", wait = "0s", on_error = "run", auto_extend)]
    fn open_stream<E: Elector + Clone + 'static>(elector: &E) -> impl Stream<Item = bool> + use<E> {
        stream::iter(0..2).map(|_| current_lease().is_none() && ensure_leader().is_err())
    }

    #[leader_election(name = "x", wait = "0s", on_error = "skip")]
    async fn skips<E: Elector>(elector: &E) -> Result<Option<u8>, LeaderError> {
        Ok(Some(1))
    }

    #[leader_election(name = "x", wait = "0s")]
    async fn returns<E: Elector>(elector: &E) -> Result<Option<u8>, LeaderError> {
        Ok(Some(1))
    }

    /// The store of this elector answers nobody.
    async fn the_body_runs_exactly_once_without_a_lease<E: Elector + Clone + 'static>(down: E) {
        let ran = AtomicU32::new(0);
        assert_eq!(open(&down, &ran).await, None);
        assert_eq!(ran.load(Ordering::SeqCst), 1);
        assert_eq!(open_stream(&down).collect::<Vec<_>>().await, [true, true]);
        assert_eq!(skips(&down).await.unwrap(), None);
        let returned = returns(&down).await;
        assert!(
            matches!(returned, Err(LeaderError::Backend { .. })),
            "{returned:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn on_error_decides_when_the_store_fails_local() {
        let down = ScriptedElector::failing(BackendKind::Unreachable);
        the_body_runs_exactly_once_without_a_lease(down).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn on_error_decides_when_the_store_fails_redis() {
        let redis = Redis::start().await;
        let a = elector_at(redis.server().url())
            .command_timeout(ms(2_000))
            .connect()
            .await
            .unwrap();
        redis.server().kill().await;
        the_body_runs_exactly_once_without_a_lease(a).await;
    }
}

#[leader_election(name = "generic:{tenant}:{N}", wait = "0s")]
async fn generic<'a, T, const N: usize>(
    elector: &impl Elector,
    tenant: &str,
    (mut sum, rest): (u32, impl Iterator<Item = &'a T>),
) -> Result<Option<u32>, LeaderError>
where
    T: Copy + Into<u32> + 'a,
{
    assert!(leads(&format!("generic:{tenant}:{N}")));
    for value in rest {
        if sum > 100 {
            return Ok(None);
        }
        sum += (*value).into();
        tokio::task::yield_now().await;
    }
    ensure_leader()?;
    Ok(Some(sum))
}

#[leader_election(name = "boxed", wait = "0s")]
fn boxed<E: Elector + Clone>(elector: &E, n: u8) -> BoxFuture<'_, Result<Option<u8>, LeaderError>> {
    let made_inside = leads("boxed");
    Box::pin(async move { Ok(Some(n).filter(|_| made_inside && leads("boxed"))) })
}

#[leader_election(name = "factorial", wait = "0s")]
async fn factorial<E: Elector>(elector: &E, n: u64) -> Result<Option<u64>, LeaderError> {
    if n <= 1 {
        return Ok(Some(1));
    }
    let smaller = Box::pin(factorial(elector, n - 1)).await?;
    Ok(smaller.map(|smaller| n * smaller))
}

#[leader_election(name = "scope", wait = "0s")]
async fn in_scope() -> Result<Option<String>, LeaderError> {
    Ok(current_lease().map(|lease| lease.node_id().to_string()))
}

struct Service<E> {
    elector: E,
    calls: u32,
}

impl<E: Elector + Clone> Service<E> {
    #[leader_election(name = format!("service:{tenant}"), wait = "0s", elector = self.elector)]
    async fn by_ref(&self, tenant: &str) -> Result<Option<bool>, LeaderError> {
        Ok(Some(leads(&format!("service:{tenant}"))))
    }

    #[leader_election(name = "service", wait = "0s", elector = self.elector)]
    async fn by_mut(&mut self) -> Result<Option<u32>, LeaderError> {
        self.calls += 1;
        Ok(Some(self.calls))
    }

    #[leader_election(name = "service", wait = "0s", elector = self.elector)]
    async fn by_arc(self: Arc<Self>) -> Result<Option<u32>, LeaderError> {
        Ok(Some(self.calls))
    }

    #[leader_election(name = "service", wait = "0s", elector = self.elector)]
    async fn by_value(self) -> Result<Option<u32>, LeaderError> {
        Ok(Some(self.calls))
    }
}

async fn d04_functions_and_methods_of_every_shape_lead<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let sum = async |from| generic::<u8, 3>(&a, "acme", (from, [1, 2, 3].iter())).await;
    assert_eq!(sum(4).await.unwrap(), Some(10));
    assert_eq!(sum(101).await.unwrap(), None);
    assert_eq!(boxed(&a, 7).await.unwrap(), Some(7));
    assert_eq!(factorial(&a, 5).await.unwrap(), Some(120));
    let node = with_elector(a.clone(), in_scope()).await.unwrap();
    assert_eq!(node.as_deref(), Some("a"));

    let mut service = Service {
        elector: a.clone(),
        calls: 0,
    };
    assert_eq!(service.by_ref("acme").await.unwrap(), Some(true));
    assert_eq!(service.by_mut().await.unwrap(), Some(1));
    let held = lead(&b, "service", &patient()).await;
    assert_eq!(service.by_mut().await.unwrap(), None, "somebody else leads");
    held.release().await.unwrap();
    assert_eq!(service.by_mut().await.unwrap(), Some(2));
    let shared = Arc::new(service);
    assert_eq!(shared.clone().by_arc().await.unwrap(), Some(2));
    let service = Arc::into_inner(shared).unwrap();
    assert_eq!(service.by_value().await.unwrap(), Some(2));
    // Each gave its slot back.
    for name in ["generic:acme:3", "boxed", "factorial", "service"] {
        assert!(!is_skipped(&b, name, &at_once()).await, "{name}");
    }
}

type Item = Result<u64, LeaderError>;

#[leader_election(name = "x", wait = "0s", lease = "60s", auto_extend)]
fn numbers<E: Elector + Clone + 'static>(elector: &E) -> impl Stream<Item = Item> + use<E> {
    stream::iter(0..).map(|number| {
        ensure_leader()?;
        Ok(number)
    })
}

#[leader_election(name = "x", wait = "0s", lease = lease, auto_extend)]
fn slowly<E: Elector + Clone + 'static>(elector: &E, lease: Duration) -> BoxStream<'static, Item> {
    numbers_inside().boxed()
}

fn numbers_inside() -> impl Stream<Item = Item> {
    stream::iter(0..).then(async |number| {
        ensure_leader()?;
        Ok(number)
    })
}

async fn d06_a_stream_that_nobody_polls_claims_nothing<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let unpolled = numbers(&a);
    sleep(ms(20)).await;
    assert!(b.state("x").await.unwrap().holders().is_empty());
    assert!(!is_skipped(&b, "x", &at_once()).await);
    drop(unpolled);
    assert!(!is_skipped(&b, "x", &at_once()).await);
}

async fn d06_polled_and_dropped_half_way_it_is_free_at_once<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let mut items = Box::pin(numbers(&a));
    for expected in 0..3 {
        assert_eq!(items.next().await.unwrap().unwrap(), expected);
        assert!(is_skipped(&b, "x", &at_once()).await);
    }
    drop(items);
    // The lease outlives the test: whoever is elected was let in by the release.
    lead(&b, "x", &patient()).await.release().await.unwrap();
}

async fn d06_each_call_is_a_run_of_its_own<W: World>(world: W) {
    let a = world.candidate("a").await;
    let mut first = pin!(numbers(&a).take(2));
    assert_eq!(first.next().await.unwrap().unwrap(), 0);
    // The same candidate, the same task: still another run, so it is kept out.
    assert_eq!(numbers(&a).count().await, 0);
    assert_eq!(first.next().await.unwrap().unwrap(), 1);
    assert!(first.next().await.is_none());
}

async fn d06_a_lease_lost_between_items_is_the_last_item<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let mut items = slowly(&a, ms(600) * W::PACE);
    assert_eq!(items.next().await.unwrap().unwrap(), 0);
    assert_eq!(b.force_release("x").await.unwrap(), 1);
    let next = lead(&b, "x", &at_once()).await;
    // Told at the next extension, or at the deadline.
    let mut last = None;
    let told = async {
        while let Some(item) = items.next().await {
            last = Some(item);
            sleep(ms(50)).await;
        }
    };
    timeout(ms(10_000), told).await.unwrap();
    assert!(
        matches!(last, Some(Err(LeaderError::LeaseLost { .. }))),
        "{last:?}"
    );
    next.ensure_valid().unwrap();
}

async fn d07_a_consumer_slower_than_the_lease_is_still_the_leader<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let lease = ms(400) * W::PACE;
    let mut items = slowly(&a, lease);
    for expected in 0..2 {
        assert_eq!(items.next().await.unwrap().unwrap(), expected);
        sleep(lease + lease / 4).await;
        assert!(is_skipped(&b, "x", &at_once()).await);
    }
}

#[leader_election(name = "x", wait = "0s")]
async fn impatient<E: Elector>(elector: &E) -> Result<Option<bool>, LeaderError> {
    let late = timeout(ms(10), std::future::pending::<()>()).await;
    ensure_leader()?;
    Ok(Some(late.is_err()))
}

async fn d07_a_timeout_inside_the_body_is_the_bodys_own_business<W: World>(world: W) {
    let a = world.candidate("a").await;
    assert_eq!(impatient(&a).await.unwrap(), Some(true));
}

#[leader_election(name = "nested", wait = "0s")]
async fn outer<E: Elector + Clone + 'static>(elector: &E) -> Result<Option<bool>, LeaderError> {
    let inner = inner(elector).await?;
    let again = inner_again(elector.clone()).next().await;
    Ok(Some(inner == fence() && again == Some(fence())))
}

#[leader_election(name = "nested", wait = "0s")]
async fn inner<E: Elector>(elector: &E) -> Result<Option<u64>, LeaderError> {
    Ok(fence())
}

#[leader_election(name = "nested", wait = "0s", auto_extend)]
fn inner_again<E: Elector + Clone + 'static>(elector: E) -> BoxStream<'static, Option<u64>> {
    stream::once(async { fence() }).boxed()
}

async fn d08_nested_calls_of_one_name_share_the_lease<W: World>(world: W) {
    let a = world.candidate("a").await;
    let mut events = a.events();
    assert_eq!(outer(&a).await.unwrap(), Some(true));
    a.shutdown().await;
    let mut elected = 0;
    while let Some(event) = events.next().await {
        elected += u32::from(matches!(event, LeaderEvent::Elected { .. }));
    }
    assert_eq!(elected, 1, "one claim for all");
}

#[leader_election(name = "nested", wait = "0s", slots = 2)]
async fn of_two<E: Elector>(elector: &E) -> Result<Option<u64>, LeaderError> {
    Ok(fence())
}

#[leader_election(name = "nested", wait = "0s")]
async fn others<E: Elector, O: Elector>(
    elector: &E,
    other: &O,
) -> Result<Option<bool>, LeaderError> {
    let of_two = of_two(elector).await?;
    let of_other = inner(other).await?;
    Ok(Some(of_two > fence() && of_other.is_none()))
}

async fn d08_another_slot_count_or_another_elector_is_another_lock<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    assert_eq!(others(&a, &b).await.unwrap(), Some(true));
}

#[leader_election(name = "x", wait = "0s")]
async fn spawning<E: Elector>(elector: &E) -> Result<Option<bool>, LeaderError> {
    let bare = tokio::spawn(async { fence().is_none() && ensure_leader().is_err() });
    let lease = current_lease().ok_or(LeaderError::NotLeading)?;
    let scoped = tokio::spawn(lease.scope(async { fence() })).await;
    let inherits = scoped.is_ok_and(|scoped| scoped == fence());
    Ok(Some(inherits && bare.await.is_ok_and(|outside| outside)))
}

async fn d08_a_spawned_task_does_not_inherit<W: World>(world: W) {
    let a = world.candidate("a").await;
    assert_eq!(spawning(&a).await.unwrap(), Some(true));
}
