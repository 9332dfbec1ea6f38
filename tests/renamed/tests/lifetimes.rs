//! What lives how long: parameters and electors with lifetimes by name and of generic types, and what is dropped before
//! the slot is given back.
#![allow(missing_docs, reason = "a test")]

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use leader::testing::ScriptedElector;
use leader::{
    BackendKind, Elector, LeaderError, LocalElector, LossReason, current_lease, leader_election,
    with_elector,
};

type Answer<T> = Result<Option<T>, LeaderError>;

/// Parameters that what is returned outlives, though they are not `&T` without more.
mod brief {
    use super::*;

    #[leader_election(name = "ignored", crate = "leader")]
    fn ignored<'a>(_text: &'a str) -> BoxFuture<'static, Answer<u8>> {
        Box::pin(async { Ok(Some(1)) })
    }

    #[leader_election(name = "generic", crate = "leader")]
    fn generic<T: Send>(_value: T, _other: impl Send) -> BoxFuture<'static, Answer<u8>> {
        Box::pin(async { Ok(Some(1)) })
    }

    #[leader_election(name = "copied", crate = "leader")]
    fn copied<'a>(text: &'a str) -> BoxFuture<'static, Answer<usize>> {
        let length = text.len();
        Box::pin(async move { Ok(Some(length)) })
    }

    #[leader_election(name = "two", crate = "leader")]
    fn two<'a>(kept: &'a Uncopied, brief: &str) -> BoxFuture<'a, Answer<usize>> {
        let length = brief.len();
        Box::pin(async move { Ok(Some(length + kept.0)) })
    }

    // What is said to live long enough needs no copy.
    #[leader_election(name = "longer", crate = "leader")]
    fn longer<'a, 'b: 'a, 'c, T>(
        one: &'b Uncopied,
        two: &'c Uncopied,
        of: T,
    ) -> BoxFuture<'a, Answer<usize>>
    where
        'c: 'a,
        T: Into<usize> + Send + 'a,
    {
        Box::pin(async move { Ok(Some(one.0 + two.0 + of.into())) })
    }

    // The copy is for the body, which takes it along; the value for when it was skipped may be asked for after that.
    #[leader_election(
        name = "skipped:{region}",
        on_error = "skip",
        skipped = Some(region.len()),
        crate = "leader"
    )]
    fn skipped(elector: &ScriptedElector, mut region: &str) -> BoxFuture<'static, Option<usize>> {
        region = &region[1..];
        let elector = (*elector).clone();
        let length = region.len();
        Box::pin(async move {
            elector.lose(LossReason::Taken);
            tokio::task::yield_now().await;
            Some(length)
        })
    }

    /// Has no `Clone`.
    struct Uncopied(usize);

    #[tokio::test(start_paused = true)]
    async fn d04_a_lifetime_by_name_is_as_good_as_one_without() {
        let (one, two_) = (Uncopied(1), Uncopied(2));
        with_elector(LocalElector::new(), async {
            assert_eq!(ignored("x").await.unwrap(), Some(1));
            assert_eq!(generic("x", "y").await.unwrap(), Some(1));
            assert_eq!(copied("abc").await.unwrap(), Some(3));
            assert_eq!(two(&one, "ab").await.unwrap(), Some(3));
            assert_eq!(longer(&one, &two_, 3_usize).await.unwrap(), Some(6));
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn d04_what_is_returned_when_skipped_may_use_a_copy_after_the_body() {
        let lost = skipped(&ScriptedElector::leader(), "abc").await;
        assert_eq!(lost, Some(3));
        let down = ScriptedElector::failing(BackendKind::Unreachable);
        assert_eq!(skipped(&down, "abcd").await, Some(4));
    }
}

/// Electors of generic types, which need no bound for the attribute's sake but the `Clone` of what is returned.
mod electors {
    use super::*;

    type Item = Answer<String>;

    #[expect(clippy::unnecessary_wraps, reason = "what the functions return")]
    fn node() -> Item {
        Ok(current_lease().map(|lease| lease.node_id().to_string()))
    }

    fn items() -> impl Stream<Item = Item> + Send + use<> {
        stream::once(async { node() })
    }

    #[leader_election(name = "x", auto_extend, crate = "leader")]
    fn cloned<E: Elector + Clone>(elector: &E) -> impl Stream<Item = Item> + use<E> {
        items()
    }

    #[leader_election(name = "x", auto_extend, crate = "leader")]
    fn borrowed<E: Elector>(elector: &E) -> impl Stream<Item = Item> {
        items()
    }

    #[leader_election(name = "x", auto_extend, crate = "leader")]
    fn by_value<E: Elector + Clone>(elector: E) -> impl Stream<Item = Item> {
        items()
    }

    #[leader_election(name = "x", auto_extend, crate = "leader")]
    fn shared<E: Elector>(elector: Arc<E>) -> impl Stream<Item = Item> {
        items()
    }

    #[leader_election(name = "x", auto_extend, crate = "leader")]
    fn boxed<'a, E: Elector + Clone + 'a>(elector: &E) -> BoxStream<'a, Item> {
        items().boxed()
    }

    #[leader_election(name = "x", auto_extend, crate = "leader")]
    fn anonymous(elector: impl Elector + Clone + 'static) -> BoxStream<'static, Item> {
        items().boxed()
    }

    struct Ring<E, const N: usize>(E);

    impl<E: Elector + Clone, const N: usize> Ring<E, N> {
        #[leader_election(name = format!("ring:{N}"), elector = self.0, auto_extend, crate = "leader")]
        fn feed(&self) -> impl Stream<Item = Item> + use<E, N> {
            items()
        }

        #[leader_election(name = format!("ring:{N}"), elector = self.0, crate = "leader")]
        async fn once(&self) -> Item {
            node()
        }

        #[leader_election(name = "by-await", elector = self.found().await?, crate = "leader")]
        async fn by_await(&self) -> Item {
            node()
        }

        async fn found(&self) -> Result<E, LeaderError> {
            tokio::task::yield_now().await;
            Ok(self.0.clone())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn d04_an_elector_of_a_generic_type_needs_no_lifetime() {
        async fn first(items: impl Stream<Item = Item>) -> Option<String> {
            let items: Vec<_> = items.collect().await;
            items.into_iter().next()?.unwrap()
        }
        let elector = LocalElector::new().node("given");
        let is = Some("given".to_owned());
        assert_eq!(first(cloned(&elector)).await, is);
        assert_eq!(first(borrowed(&elector)).await, is);
        assert_eq!(first(by_value(elector.clone())).await, is);
        assert_eq!(first(shared(Arc::new(elector.clone()))).await, is);
        assert_eq!(first(boxed(&elector)).await, is);
        assert_eq!(first(anonymous(elector.clone())).await, is);
        let ring = Ring::<_, 3>(elector);
        assert_eq!(first(ring.feed()).await, is);
        assert_eq!(ring.once().await.unwrap(), is);
        assert_eq!(ring.by_await().await.unwrap(), is);
    }
}

/// Parameters of which the body uses a part, or none.
mod parts {
    use super::*;

    #[derive(Default)]
    struct Permit(Arc<Mutex<Vec<bool>>>);

    /// Notes whether it is dropped inside the lease.
    impl Drop for Permit {
        fn drop(&mut self) {
            self.0.lock().unwrap().push(current_lease().is_some());
        }
    }

    #[derive(Default)]
    struct Request {
        id: u8,
        permit: Permit,
    }

    #[leader_election(name = "part", crate = "leader")]
    async fn part(elector: &LocalElector, request: Request) -> Answer<u8> {
        Ok(Some(request.id))
    }

    #[leader_election(name = "part", crate = "leader")]
    async fn of_a_pattern(
        elector: &LocalElector,
        Request {
            id,
            permit: _permit,
        }: Request,
    ) -> Answer<u8> {
        Ok(Some(id))
    }

    #[leader_election(name = "part", crate = "leader")]
    fn of_a_future(elector: &LocalElector, request: Request) -> BoxFuture<'static, Answer<u8>> {
        let id = request.id;
        Box::pin(async move { Ok(Some(id)) })
    }

    impl Request {
        #[leader_election(name = "part", crate = "leader")]
        async fn of_itself(self, elector: &LocalElector) -> Answer<u8> {
            Ok(Some(self.id))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn d04_what_the_body_uses_in_part_is_dropped_with_the_body() {
        let elector = LocalElector::new();
        let dropped = Arc::default();
        let request = || Request {
            id: 1,
            permit: Permit(Arc::clone(&dropped)),
        };
        part(&elector, request()).await.unwrap();
        of_a_pattern(&elector, request()).await.unwrap();
        of_a_future(&elector, request()).await.unwrap();
        request().of_itself(&elector).await.unwrap();
        assert_eq!(*dropped.lock().unwrap(), [true; 4]);
    }
}
