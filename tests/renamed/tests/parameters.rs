//! Parameters that what is returned may not keep, `self` of every kind, and keys that borrow: in functions that are not
//! `async`, whose body runs when they have returned.
#![allow(missing_docs, reason = "a test")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use leader::testing::ScriptedElector;
use leader::{
    BackendKind, Elector, LeaderError, LeaseOptions, LocalElector, current_lease, leader_election,
    with_elector,
};

type Answer<T> = Result<Option<T>, LeaderError>;

mod copied {
    use super::*;

    /// Of the name of a parameter, and not to be copied.
    struct Region(String);

    struct Service {
        elector: LocalElector,
        region: Region,
    }

    impl Service {
        #[leader_election(name = "counted:{name}", elector = self.elector, crate = "leader")]
        fn counted(&self, mut name: &str, mut more: &[u8]) -> BoxFuture<'static, Answer<usize>> {
            let mut sum = 0;
            while let [first, rest @ ..] = more {
                sum += usize::from(*first);
                more = rest;
            }
            if name.len() > 3 {
                name = "";
            }
            let length = name.len();
            Box::pin(async move { Ok(Some(length + sum)) })
        }

        // The field, a method, a path and a label of the parameter's name are not the parameter.
        #[leader_election(name = "fields", elector = self.elector, auto_extend, crate = "leader")]
        #[expect(unused_variables, reason = "the point")]
        fn fields(&self, region: &Region) -> impl Stream<Item = usize> + '_ {
            let Region(name) = &self.region;
            let length = Labelled { region: name.len() }.region();
            stream::iter(region::upto(length))
        }

        #[leader_election(name = "arc:{region}", elector = self.elector, auto_extend, crate = "leader")]
        fn shared(self: Arc<Self>, region: String, of: &Uncopied) -> impl Stream<Item = u8> + '_ {
            let of = of.0;
            stream::iter([u8::try_from(region.len()).unwrap_or(0), of])
        }

        #[leader_election(name = "own", elector = self.elector, crate = "leader")]
        fn own(self, of: &Uncopied) -> BoxFuture<'_, Answer<u8>> {
            Box::pin(async move { Ok(Some(of.0)) })
        }

        #[leader_election(name = "box", elector = self.elector, crate = "leader")]
        #[expect(clippy::boxed_local, reason = "the point")]
        fn boxed(self: Box<Self>, of: &Uncopied) -> Pin<Box<dyn Future<Output = Answer<u8>> + '_>> {
            Box::pin(async move { Ok(Some(of.0)) })
        }

        // What is returned borrows from `self`, of whatever kind the reference is.
        #[leader_election(name = "pin:{region}", elector = self.elector, crate = "leader")]
        fn pinned(self: Pin<&mut Self>, region: &str) -> BoxFuture<'_, Answer<String>> {
            let region = region.to_owned();
            Box::pin(async move { Ok(Some(format!("{region} {}", self.region.0))) })
        }

        #[leader_election(name = "raw:{type}", elector = self.elector, crate = "leader")]
        fn raw(&self, r#type: &str) -> BoxFuture<'static, Answer<String>> {
            let text = format!("of {type}") + r#type;
            Box::pin(async move { Ok(Some(text)) })
        }
    }

    // What is only there to be dropped is not kept where it cannot be.
    #[leader_election(name = "ignored", crate = "leader")]
    fn ignored(
        elector: &LocalElector,
        _text: &str,
        _cow: std::borrow::Cow<'_, str>,
    ) -> BoxFuture<'static, Answer<u8>> {
        Box::pin(async { Ok(Some(1)) })
    }

    /// Has no `Clone`.
    struct Uncopied(u8);

    struct Labelled {
        region: usize,
    }

    impl Labelled {
        fn region(self) -> usize {
            self.region
        }
    }

    mod region {
        pub(super) fn upto(n: usize) -> std::ops::Range<usize> {
            0..n
        }
    }

    fn service() -> Service {
        Service {
            elector: LocalElector::new(),
            region: Region("north".to_owned()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn d04_copies_may_be_changed_and_are_made_of_nothing_else() {
        assert_eq!(service().counted("eu", &[1, 2]).await.unwrap(), Some(5));
        let service = service();
        let lengths = service.fields(&Region(String::new()));
        assert_eq!(lengths.count().await, 5);
        assert_eq!(service.raw("x").await.unwrap().unwrap(), "of xx");
        let ignored = ignored(&LocalElector::new(), "", "".into());
        assert_eq!(ignored.await.unwrap(), Some(1));
    }

    #[tokio::test(start_paused = true)]
    async fn d04_what_is_borrowed_long_enough_is_not_copied() {
        let of = Uncopied(3);
        let items = Arc::new(service()).shared("eu".to_owned(), &of);
        assert_eq!(items.collect::<Vec<_>>().await, [2, 3]);
        assert_eq!(service().own(&of).await.unwrap(), Some(3));
        assert_eq!(Box::new(service()).boxed(&of).await.unwrap(), Some(3));
        let mut service = service();
        let found = Pin::new(&mut service).pinned("of").await.unwrap();
        assert_eq!(found.unwrap(), "of north");
    }
}

mod electors {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "what the functions return")]
    fn node() -> Answer<String> {
        Ok(current_lease().map(|lease| lease.node_id().to_string()))
    }

    // The elector is only borrowed by the caller: what is returned keeps a clone of it, not of the reference.
    #[leader_election(name = "parameter", crate = "leader")]
    fn parameter(elector: &LocalElector) -> BoxFuture<'static, Answer<String>> {
        Box::pin(async { node() })
    }

    #[leader_election(name = "generic", auto_extend, crate = "leader")]
    fn generic<E: Elector + Clone + 'static>(elector: &E) -> BoxStream<'static, Answer<String>> {
        stream::once(async { node() }).boxed()
    }

    #[leader_election(name = "shared", crate = "leader")]
    fn shared(elector: &Arc<dyn Elector>) -> impl Future<Output = Answer<String>> + use<> {
        async { node() }
    }

    #[leader_election(name = "mutable", elector = *elector, crate = "leader")]
    fn mutable(elector: &mut LocalElector) -> BoxFuture<'static, Answer<String>> {
        Box::pin(async { node() })
    }

    // One that cannot be cloned is borrowed for as long as what is returned.
    #[leader_election(name = "dynamic", crate = "leader")]
    fn dynamic(elector: &dyn Elector) -> BoxFuture<'_, Answer<String>> {
        Box::pin(async { node() })
    }

    struct Service {
        elector: LocalElector,
        calls: u32,
    }

    impl Service {
        #[leader_election(name = "by-ref", elector = &self.elector, crate = "leader")]
        fn by_ref(&self) -> BoxFuture<'static, Answer<String>> {
            Box::pin(async { node() })
        }

        #[leader_election(name = "by-mut:{calls}", elector = self.elector, auto_extend, crate = "leader")]
        fn by_mut(&mut self, calls: u32) -> impl Stream<Item = Answer<String>> + use<> {
            stream::once(async { node() })
        }

        #[leader_election(name = "by-mut", elector = self.elector, crate = "leader")]
        fn by_mut_borrowed(&mut self) -> BoxFuture<'_, Answer<u32>> {
            self.calls += 1;
            Box::pin(async { Ok(Some(self.calls)) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn d04_an_elector_that_is_borrowed_is_cloned_through_the_reference() {
        let is = Some("given".to_owned());
        let mut elector = LocalElector::new().node("given");
        let arc: Arc<dyn Elector> = Arc::new(elector.clone());
        let mut service = Service {
            elector: elector.clone(),
            calls: 0,
        };
        assert_eq!(parameter(&elector).await.unwrap(), is);
        let items: Vec<_> = generic(&elector).map(Result::unwrap).collect().await;
        assert_eq!(items.first(), Some(&is));
        assert_eq!(shared(&arc).await.unwrap(), is);
        assert_eq!(mutable(&mut elector).await.unwrap(), is);
        assert_eq!(dynamic(&elector).await.unwrap(), is);
        assert_eq!(service.by_ref().await.unwrap(), is);
        let items: Vec<_> = service.by_mut(1).map(Result::unwrap).collect().await;
        assert_eq!(items, [is]);
        assert_eq!(service.by_mut_borrowed().await.unwrap(), Some(1));
    }
}

mod keys {
    use super::*;

    fn make() -> LeaseOptions {
        LeaseOptions::default()
    }

    #[leader_election(name = "opaque", options = &make(), crate = "leader")]
    fn opaque() -> impl Future<Output = Answer<u8>> + Send {
        async { Ok(Some(1)) }
    }

    #[leader_election(name = "boxed", options = &make(), crate = "leader")]
    fn boxed() -> BoxFuture<'static, Answer<u8>> {
        Box::pin(async { Ok(Some(1)) })
    }

    #[leader_election(name = "borrowed", options = options, crate = "leader")]
    fn borrowed(options: &LeaseOptions) -> BoxFuture<'static, Answer<u8>> {
        Box::pin(async { Ok(Some(1)) })
    }

    #[leader_election(
        name = "opaque-output",
        on_error = "skip",
        skipped = 7,
        crate = "leader"
    )]
    async fn opaque_output(
        elector: &ScriptedElector,
    ) -> impl std::fmt::Debug + PartialEq<u8> + use<> {
        1
    }

    #[leader_election(
        name = "opaque-output",
        on_error = "run",
        skipped = 7,
        crate = "leader"
    )]
    fn opaque_output_of_a_future(
        elector: &ScriptedElector,
    ) -> impl Future<Output = impl std::fmt::Debug + PartialEq<u8>> {
        async { 1 }
    }

    #[leader_election(name = "within", on_error = "skip", crate = "leader")]
    async fn within(elector: &ScriptedElector) -> Result<Option<impl PartialEq<u8>>, LeaderError> {
        elector.lose(leader::LossReason::Taken);
        std::future::pending::<()>().await;
        Ok(Some(1))
    }

    macro_rules! extended {
        ($name:ident, $extended:literal) => {
            #[leader_election(name = "flag", lease = "1s", auto_extend = $extended, crate = "leader")]
            async fn $name() -> Answer<bool> {
                tokio::time::sleep(std::time::Duration::from_secs(3)).await;
                Ok(Some(true))
            }
        };
    }

    extended!(extended, true);

    #[leader_election(name = "cfg", crate = "leader")]
    async fn configured(
        #[cfg(any())] _never: NotThere,
        #[cfg(not(any()))] _always: String,
        #[cfg_attr(all(), allow(unused_variables))] _: u8,
    ) -> Answer<u8> {
        Ok(Some(1))
    }

    #[leader_election(name = "cfg", crate = "leader")]
    fn configured_and_copied(
        #[cfg(any())] region: &NotThere,
        #[cfg(not(any()))] region: &str,
    ) -> BoxFuture<'static, Answer<usize>> {
        let length = region.len();
        Box::pin(async move { Ok(Some(length)) })
    }

    #[tokio::test(start_paused = true)]
    async fn d04_keys_mean_the_same_in_every_shape() {
        with_elector(LocalElector::new(), async {
            assert_eq!(opaque().await.unwrap(), Some(1));
            assert_eq!(boxed().await.unwrap(), Some(1));
            assert_eq!(borrowed(&make()).await.unwrap(), Some(1));
            assert_eq!(extended().await.unwrap(), Some(true));
            assert_eq!(configured(String::new(), 0).await.unwrap(), Some(1));
            assert_eq!(configured_and_copied("eu").await.unwrap(), Some(2));
        })
        .await;
        for (elector, given) in [
            (ScriptedElector::leader(), 1),
            (ScriptedElector::follower("b"), 7),
        ] {
            assert_eq!(opaque_output(&elector).await, given);
            assert_eq!(opaque_output_of_a_future(&elector).await, given);
        }
        let down = ScriptedElector::failing(BackendKind::OutOfMemory);
        assert_eq!(opaque_output(&down).await, 7);
        assert_eq!(opaque_output_of_a_future(&down).await, 1);
        let lost = within(&ScriptedElector::leader()).await.map(|_| ());
        assert!(
            matches!(lost, Err(LeaderError::LeaseLost { .. })),
            "{lost:?}"
        );
    }
}

/// Types that are not what their names say.
mod aliases {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("of the project's own")]
    struct Own(#[from] LeaderError);

    type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Own>> + Send + 'a>>;
    type LocalBoxFuture<T> = Pin<Box<dyn Future<Output = Answer<T>>>>;
    type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = Result<T, Own>> + Send + 'a>>;
    type LocalBoxStream<T> = Pin<Box<dyn Stream<Item = Answer<T>>>>;

    #[leader_election(name = "future", crate = "leader")]
    fn future(n: &u8) -> BoxFuture<'_, Option<u8>> {
        Box::pin(async move { Ok(Some(*n)) })
    }

    #[leader_election(name = "local", crate = "leader")]
    fn local(n: &u8) -> LocalBoxFuture<u8> {
        let n = *n;
        Box::pin(async move { Ok(Some(n)) })
    }

    #[leader_election(name = "stream", auto_extend, crate = "leader")]
    fn stream(elector: &ScriptedElector) -> BoxStream<'_, u8> {
        stream::iter([Ok(1), Ok(2)]).boxed()
    }

    #[leader_election(name = "local", auto_extend, crate = "leader")]
    fn local_stream<T: Clone + 'static>(elector: ScriptedElector, item: &T) -> LocalBoxStream<T> {
        let item = item.clone();
        Box::pin(stream::iter([Ok(Some(item))]))
    }

    #[tokio::test(start_paused = true)]
    async fn d04_a_projects_own_alias_is_read_by_its_output() {
        with_elector(LocalElector::new(), async {
            assert_eq!(future(&1).await.unwrap(), Some(1));
            assert_eq!(local(&2).await.unwrap(), Some(2));
        })
        .await;
        let elector = ScriptedElector::leader();
        let mut items = stream(&elector);
        assert_eq!(items.next().await.unwrap().unwrap(), 1);
        elector.lose(leader::LossReason::Taken);
        assert!(matches!(
            items.next().await,
            Some(Err(Own(LeaderError::LeaseLost { .. })))
        ));
        let items: Vec<_> = local_stream(elector.clone(), &'x')
            .map(Result::unwrap)
            .collect()
            .await;
        assert_eq!(items, [Some('x')]);
    }
}
