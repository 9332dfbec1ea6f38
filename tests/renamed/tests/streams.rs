//! The stream half: annotated functions that return streams, of every shape.
#![allow(missing_docs, reason = "a test")]

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream, LocalBoxStream};
use futures::{FutureExt, Stream, StreamExt};
use leader::testing::ScriptedElector;
use leader::{
    BackendKind, Elector, ElectorExt, LeaderError, LocalElector, LossReason, current_lease,
    leader_election, with_elector,
};

fn is_leading(name: &str) -> bool {
    current_lease().is_some_and(|lease| lease.name().as_str() == name)
}

type Item = Result<u8, LeaderError>;

#[leader_election(name = "try", auto_extend, elector = elector, crate = "leader")]
fn tried(elector: &ScriptedElector) -> impl Stream<Item = Item> + use<'_> {
    assert!(is_leading("try"));
    stream::iter([Ok(1), Ok(2), Ok(3)])
}

#[leader_election(name = "plain:{from}", auto_extend, crate = "leader")]
fn plain(elector: ScriptedElector, from: u8) -> impl Stream<Item = u8> + Send {
    let _consumed = elector;
    stream::iter(from..).then(async |n| {
        assert!(current_lease().is_some());
        n
    })
}

#[leader_election(name = "boxed", bounded, crate = "leader")]
fn boxed<'a>(elector: &'a Arc<dyn Elector>, values: &'a [u8]) -> BoxStream<'a, &'a u8> {
    if values.is_empty() {
        return stream::empty().boxed();
    }
    Box::pin(stream::iter(values))
}

#[leader_election(name = "pinned", auto_extend, on_error = "run", crate = "leader")]
fn pinned(elector: &ScriptedElector) -> Pin<Box<dyn Stream<Item = bool> + '_>> {
    Box::pin(stream::iter([current_lease().is_some()]))
}

type Feed<'a> = LocalBoxStream<'a, Item>;

#[leader_election(
    name = "alias",
    auto_extend,
    kind = "stream",
    on_error = "skip",
    crate = "leader"
)]
fn alias(elector: &ScriptedElector) -> Feed<'_> {
    stream::iter([Ok(1)]).boxed_local()
}

#[leader_election(name = "generic", auto_extend, crate = "leader")]
fn generic<T, E>(elector: LocalElector, item: T) -> impl Stream<Item = Result<T, E>>
where
    T: Clone,
    E: From<LeaderError>,
{
    stream::repeat_with(move || Ok(item.clone()))
}

#[leader_election(name = "captured:{text}", auto_extend, crate = "leader")]
fn captured(elector: LocalElector, text: &str) -> impl Stream<Item = Item> + use<> {
    let length = u8::try_from(text.len());
    stream::iter(length.map(Ok))
}

struct Service {
    elector: LocalElector,
    calls: Cell<u32>,
}

impl Service {
    // What `region` borrows need not live as long as the stream.
    #[leader_election(name = "orders:{region}", elector = self.elector, auto_extend, crate = "leader")]
    fn orders(&self, region: &str, more: &[u8]) -> impl Stream<Item = String> + '_ {
        self.calls.set(self.calls.get() + 1);
        let region = region.to_owned();
        let count = more.len();
        stream::iter(0..count).map(move |n| format!("{region} {n} {}", self.calls.get()))
    }

    #[leader_election(name = "future:{region}", elector = self.elector, crate = "leader")]
    fn boxed_static(
        &self,
        region: &str,
    ) -> futures::future::BoxFuture<'static, Result<Option<usize>, LeaderError>> {
        let length = region.len();
        Box::pin(async move { Ok(Some(length)) })
    }
}

#[tokio::test(start_paused = true)]
async fn d06_a_stream_claims_at_its_first_poll_and_each_call_is_a_run_of_its_own() {
    let service = Service {
        elector: LocalElector::new(),
        calls: Cell::new(0),
    };
    let other = service.elector.node("other");
    let free = async || other.state("orders:eu").await.unwrap().holders().is_empty();

    let region = "eu".to_owned();
    let mut orders = Box::pin(service.orders(&region, &[1, 2]));
    drop(region);
    assert!(free().await);
    assert_eq!(service.calls.get(), 0, "the function runs when it leads");
    assert_eq!(orders.next().await.unwrap(), "eu 0 1");
    assert!(!free().await);
    // A slow consumer keeps the lease.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(orders.next().await.unwrap(), "eu 1 1");
    assert_eq!(orders.next().await, None);
    assert!(free().await);

    let mut again = Box::pin(service.orders("eu", &[1, 2]));
    assert_eq!(again.next().await.unwrap(), "eu 0 2");
    drop(again);
    tokio::task::yield_now().await;
    assert!(free().await, "dropped half-way");
    assert_eq!(service.boxed_static("xyz").await.unwrap(), Some(3));
}

#[tokio::test(start_paused = true)]
async fn d06_a_loss_is_the_last_item_where_items_can_say_it() {
    let elector = ScriptedElector::leader();
    let mut items = Box::pin(tried(&elector));
    assert_eq!(items.next().await.unwrap().unwrap(), 1);
    elector.lose(LossReason::Taken);
    assert!(matches!(
        items.next().await,
        Some(Err(LeaderError::LeaseLost { .. }))
    ));
    assert!(items.next().await.is_none());

    let mut items = Box::pin(plain(elector.clone(), 5));
    assert_eq!(items.next().await, Some(5));
    elector.lose(LossReason::Taken);
    assert_eq!(items.next().await, None);

    let mut items = Box::pin(generic::<_, LeaderError>(LocalElector::new(), "x"));
    assert_eq!(items.next().await.unwrap().unwrap(), "x");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_told_skipped_or_run_without() {
    let down = ScriptedElector::failing(BackendKind::OutOfMemory);
    let told: Vec<_> = tried(&down).collect().await;
    assert!(matches!(
        told.as_slice(),
        [Err(LeaderError::Backend { .. })]
    ));
    assert_eq!(pinned(&down).collect::<Vec<_>>().await, [false]);
    assert_eq!(
        pinned(&ScriptedElector::leader()).collect::<Vec<_>>().await,
        [true]
    );
    assert_eq!(alias(&down).count().await, 0);
    assert_eq!(alias(&ScriptedElector::follower("b")).count().await, 0);
    assert_eq!(alias(&ScriptedElector::leader()).count().await, 1);
}

#[tokio::test(start_paused = true)]
async fn boxed_streams_return_early_and_borrow() {
    let elector: Arc<dyn Elector> = Arc::new(LocalElector::new());
    assert_eq!(
        boxed(&elector, &[1, 2]).collect::<Vec<&u8>>().await,
        [&1, &2]
    );
    assert_eq!(boxed(&elector, &[]).count().await, 0);
    let captured = captured(LocalElector::new(), "four").map(Result::unwrap);
    assert_eq!(captured.collect::<Vec<_>>().await, [4]);
}

#[leader_election(name = "scope", auto_extend, crate = "leader")]
fn scoped() -> impl Stream<Item = Result<String, LeaderError>> + Send + use<> {
    stream::once(async {
        let lease = current_lease().ok_or(LeaderError::NotLeading)?;
        Ok(lease.node_id().to_string())
    })
}

#[tokio::test(start_paused = true)]
async fn the_elector_of_a_stream_is_that_of_its_making() {
    let elector = LocalElector::new().node("a");
    let made = with_elector(elector, async { scoped() }).await;
    let nodes = tokio::spawn(made.map(Result::unwrap).collect::<Vec<_>>());
    assert_eq!(nodes.await.unwrap(), ["a"]);
    let told: Vec<_> = scoped().collect().now_or_never().unwrap();
    assert!(matches!(told.as_slice(), [Err(LeaderError::NoElector)]));
}

mod send {
    use super::*;

    // Each item is made in the poll that gives it: nothing of it is kept between polls.
    #[leader_election(name = "counts", auto_extend, crate = "leader")]
    fn counts(elector: LocalElector) -> impl Stream<Item = Rc<u8>> + Send {
        stream::iter([1, 2]).map(Rc::new)
    }

    #[leader_election(name = "tried", auto_extend, crate = "leader")]
    fn tried(elector: ScriptedElector) -> impl Stream<Item = Result<Rc<u8>, LeaderError>> + Send {
        stream::iter([1, 2]).map(|n| Ok(Rc::new(n)))
    }

    type Unsendable = Box<dyn std::error::Error>;

    #[leader_election(name = "unsendable", auto_extend, crate = "leader")]
    fn unsendable(
        elector: ScriptedElector,
    ) -> impl Stream<Item = Result<Rc<u8>, Unsendable>> + Send {
        stream::iter([1, 2, 3]).map(|n| match n {
            2 => Err("the body's own".into()),
            n => Ok(Rc::new(n)),
        })
    }

    #[leader_election(name = "any", auto_extend, crate = "leader")]
    fn of_any_error<E: From<LeaderError>>(
        elector: ScriptedElector,
    ) -> impl Stream<Item = Result<u8, E>> + Send {
        stream::iter([1, 2]).map(Ok)
    }

    #[tokio::test(start_paused = true)]
    async fn d06_a_stream_that_is_send_stays_so_whatever_its_items() {
        let counted: Vec<_> = counts(LocalElector::new()).collect().await;
        assert_eq!(counted, [Rc::new(1), Rc::new(2)]);
        let elector = ScriptedElector::leader();
        let tried: Vec<_> = tried(elector.clone()).map(Result::unwrap).collect().await;
        assert_eq!(tried.len(), 2);
        let any: Vec<_> = of_any_error::<Unsendable>(elector).collect().await;
        assert_eq!(any.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn d06_an_error_that_cannot_wait_for_the_release_is_the_last_item_too() {
        let elector = ScriptedElector::leader();
        let free = async || {
            let state = elector.state("unsendable").await.unwrap();
            state.holders().is_empty()
        };
        let mut items = Box::pin(unsendable(elector.clone()));
        assert_eq!(*items.next().await.unwrap().unwrap(), 1);
        assert!(!free().await);
        let error = items.next().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the body's own");
        tokio::task::yield_now().await;
        assert!(free().await, "nobody has to poll for the release");
        assert!(items.next().await.is_none());

        // And a loss is told with the same type.
        let mut items = Box::pin(unsendable(elector.clone()));
        assert!(items.next().await.unwrap().is_ok());
        elector.lose(LossReason::Taken);
        let error = items.next().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("lost"), "{error}");
        assert!(items.next().await.is_none());
    }
}

#[leader_election(name = "panics", auto_extend, on_error = "run", crate = "leader")]
fn panics_when_made(elector: ScriptedElector) -> BoxStream<'static, u8> {
    panic!("when made")
}

#[leader_election(name = "panics", auto_extend, on_error = "run", crate = "leader")]
fn panics_when_polled(elector: ScriptedElector) -> impl Stream<Item = u8> + Send {
    stream::iter([1, 2]).inspect(|n| assert_ne!(*n, 1, "when polled"))
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_over_after_a_panic_also_without_a_lease() {
    for elector in [
        ScriptedElector::leader(),
        ScriptedElector::failing(BackendKind::OutOfMemory),
    ] {
        let mut items = panics_when_made(elector.clone());
        let panic = AssertUnwindSafe(items.next()).catch_unwind().await;
        assert_eq!(*panic.unwrap_err().downcast::<&str>().unwrap(), "when made");
        assert_eq!(items.next().await, None);

        let mut items = Box::pin(panics_when_polled(elector));
        let panic = AssertUnwindSafe(items.next()).catch_unwind().await;
        assert!(panic.is_err());
        assert_eq!(items.next().await, None);
    }
}
