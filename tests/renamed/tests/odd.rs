//! d04: functions that a stranger may write: odd signatures, names of their own for what the prelude has, macros.
#![allow(missing_docs, reason = "a test")]

use async_trait::async_trait;
use leader::{Elector, LocalElector, current_lease, with_elector};

fn is_leading(name: &str) -> bool {
    current_lease().is_some_and(|lease| lease.name().as_str() == name)
}

/// Names of the project's own, which the expansion must not take for the prelude's.
mod shadowed {
    #![allow(dead_code, unused_macros, reason = "they are in the way")]

    pub(super) struct Option;
    pub(super) struct Box;
    pub(super) struct Vec;
    pub(super) struct Some;
    pub(super) trait Future {}
    pub(super) trait Clone {}
    pub(super) trait Send {}
    pub(super) mod core {}
    pub(super) mod std {}
    pub(super) mod leader_core {}
    pub(super) enum Stood {}

    #[derive(Debug)]
    pub(super) enum Result<T> {
        Ok(T),
        Err(leader::LeaderError),
        Skipped,
    }

    impl<T> leader::FromSkip for Result<T> {
        fn from_skip(_: leader::Skipped) -> Self {
            Result::Skipped
        }
    }

    impl<T> leader::FromLeaderError for Result<T> {
        fn from_leader_error(error: leader::LeaderError) -> Self {
            Result::Err(error)
        }
    }

    macro_rules! format {
        ($($anything:tt)*) => {
            compile_error!("the project's own `format!`")
        };
    }

    macro_rules! vec {
        ($($anything:tt)*) => {
            compile_error!("the project's own `vec!`")
        };
    }

    pub(super) mod nested {
        use super::*;

        #[leader::leader_election(name = "shadowed:{tenant}", auto_extend, crate = "leader")]
        pub(crate) async fn annotated(tenant: u8) -> Result<u8> {
            assert!(crate::is_leading("shadowed:1"));
            Result::Ok(tenant)
        }

        #[leader::leader_election(name = "shadowed:{tenant}", crate = ::leader)]
        pub(crate) fn future(
            tenant: &u8,
        ) -> impl ::core::future::Future<Output = Result<u8>> + ::core::marker::Send + use<>
        {
            let tenant = *tenant;
            async move { Result::Ok(tenant) }
        }
    }
}

mod signatures {
    use std::future::Future;

    use futures::{Stream, StreamExt};
    use leader::{LeaderError, RunOutcome, current_lease, leader_election};

    type Answer<T> = Result<Option<T>, LeaderError>;

    pub(super) struct Ring<T = u8, const N: usize = 2> {
        pub(super) items: [T; N],
    }

    impl<T: Copy + Send + Sync, const N: usize> Ring<T, N>
    where
        [T; N]: Sized,
    {
        #[leader_election(name = "ring:{at}", wait = "0s", crate = "leader")]
        pub(super) async fn at<'r, F>(&'r self, at: usize, map: F) -> Answer<T>
        where
            F: AsyncFnOnce(&'r T) -> T,
        {
            let Some(item) = self.items.get(at) else {
                return Ok(None);
            };
            Ok(Some(map(item).await))
        }
    }

    #[leader_election(name = "labels", crate = "leader")]
    pub(super) async fn labels(values: &[&str]) -> Answer<usize> {
        let found = 'search: {
            for (at, value) in values.iter().enumerate() {
                if value.parse::<u8>().is_ok() {
                    break 'search Some(at);
                }
            }
            None
        };
        let closure = async |n: usize| n + 1;
        Ok(match found {
            Some(found) => Some(closure(found).await),
            None => return Ok(None),
        })
    }

    #[leader_election(name = "raw:{type}:{move}", crate = "leader")]
    pub(super) async fn r#fn(r#type: &str, r#move: u8) -> Answer<String> {
        Ok(current_lease().map(|lease| format!("{} {type}{move}", lease.name())))
    }

    #[leader_election(name = "boxed-callback", crate = "leader")]
    pub(super) fn callback<'a>(
        mut next: impl FnMut() -> u8 + Send + 'a,
        _: (),
    ) -> impl Future<Output = Result<RunOutcome<u8, std::convert::Infallible>, LeaderError>> + Send + 'a
    {
        let first = next();
        async move { Ok(RunOutcome::Elected(first + next())) }
    }

    #[leader_election(name = "slots", slots = N as u32, crate = "leader")]
    #[expect(clippy::cast_possible_truncation, reason = "small")]
    pub(super) async fn constant<const N: usize>(_: [u8; N]) -> Answer<u32> {
        Ok(current_lease().map(|lease| lease.slot()))
    }

    #[leader_election(name = "opaque-both", auto_extend, crate = "leader")]
    pub(super) fn doubled<S: Stream<Item = u8>>(
        of: S,
        by: impl Fn(u8) -> u8,
    ) -> impl Stream<Item = impl Into<u16> + PartialEq<u8>> {
        of.map(by)
    }

    /// Panics never, and says so.
    #[must_use]
    #[leader_election(name = "cfg", on_error = "skip", crate = "leader")]
    #[cfg(not(any()))]
    #[cfg_attr(all(), doc = "Documented.")]
    pub(super) async fn conditional() -> Option<()> {
        Some(())
    }

    // An elector that is there only where it is configured.
    #[leader_election(name = "cfg", auto_extend, crate = "leader")]
    pub(super) async fn without(#[cfg(any())] elector: &NotThere) -> Answer<String> {
        Ok(current_lease().map(|lease| lease.node_id().to_string()))
    }

    #[leader_election(name = "cfg", crate = "leader")]
    pub(super) fn without_in_a_future(
        #[cfg(any())] elector: &NotThere,
    ) -> impl Future<Output = Answer<String>> {
        without()
    }

    #[leader_election(name = "cfg", auto_extend, crate = "leader")]
    pub(super) fn without_in_a_stream(
        #[cfg(any())] elector: &NotThere,
    ) -> impl Stream<Item = Answer<String>> {
        futures::stream::once(without())
    }

    #[leader_election(name = "cfg", crate = "leader")]
    pub(super) async fn with(
        #[cfg(any())] elector: &NotThere,
        #[cfg(not(any()))] elector: &super::LocalElector,
    ) -> Answer<String> {
        Ok(current_lease().map(|lease| lease.node_id().to_string()))
    }

    // A body whose names are those of the expansion.
    #[leader_election(name = "names:{ended}", elector = elector, crate = "leader")]
    pub(super) fn names(
        elector: &super::LocalElector,
        ended: u8,
        go: u8,
        error: &str,
        last_items: u8,
    ) -> futures::future::BoxFuture<'static, Answer<u8>> {
        let length = error.len();
        Box::pin(async move {
            Ok(u8::try_from(length)
                .ok()
                .map(|n| n + ended + go + last_items))
        })
    }
}

mod attributes {
    use leader::{LeaderError, LocalElector, leader_election};
    use tracing::instrument;

    #[instrument(err, ret, fields(tenant = tenant), skip_all)]
    #[leader_election(name = "above", crate = "leader")]
    pub(super) async fn above(tenant: &str) -> Result<Option<usize>, LeaderError> {
        Ok(Some(tenant.len()))
    }

    #[leader_election(name = "below", crate = "leader")]
    #[instrument(err, fields(tenant), skip(tenant))]
    pub(super) async fn below(tenant: &str) -> Result<Option<usize>, LeaderError> {
        tracing::Span::current().record("tenant", tenant);
        Ok(Some(tenant.len()))
    }

    #[super::async_trait]
    pub(super) trait Job {
        async fn run(self: Box<Self>, times: &mut u32) -> Result<Option<u32>, LeaderError>;
        async fn by_mut<'j>(&'j mut self, name: &'j str) -> Result<Option<&'j str>, LeaderError>;
        async fn skip(&self) -> u32;
    }

    pub(super) struct Settlement(pub(super) LocalElector);

    #[super::async_trait]
    impl Job for Settlement {
        #[leader_election(name = "job", elector = &self.0, crate = "leader")]
        #[instrument(skip_all)]
        async fn run(self: Box<Self>, times: &mut u32) -> Result<Option<u32>, LeaderError> {
            *times += 1;
            tokio::task::yield_now().await;
            Ok(Some(*times))
        }

        #[instrument(skip_all)]
        #[leader_election(name = "job:{name}", elector = self.0, crate = "leader")]
        async fn by_mut<'j>(&'j mut self, name: &'j str) -> Result<Option<&'j str>, LeaderError> {
            Ok(Some(name))
        }

        #[leader_election(
            name = "job",
            elector = self.0,
            skipped = 0,
            on_error = "skip",
            crate = "leader"
        )]
        async fn skip(&self) -> u32 {
            1
        }
    }

    macro_rules! job {
        ($name:ident, $title:expr, $lease:expr, $slots:expr, ($($arg:ident: $ty:ty),*), $out:ty, $body:block) => {
            #[leader_election(name = $title, lease = $lease, slots = $slots, crate = "leader")]
            pub(super) async fn $name($($arg: $ty),*) -> $out $body
        };
    }

    job!(
        block,
        "job:{a}",
        "10s",
        2,
        (a: u8),
        Result<Option<u8>, LeaderError>,
        { Ok(Some(a)) }
    );

    macro_rules! jobs {
        ($($(#[$attr:meta])* $vis:vis $name:ident($($arg:ident: $ty:ty),*) -> $out:ty = $body:expr;)*) => {
            $(
                $(#[$attr])*
                #[leader_election(
                    name = concat!("job:", stringify!($name)),
                    lease = "1s",
                    auto_extend,
                    crate = "leader",
                )]
                $vis async fn $name($($arg: $ty),*) -> Result<Option<$out>, LeaderError> {
                    Ok(Some($body))
                }
            )*
        };
    }

    jobs! {
        /// Written by a macro.
        pub(super) sum(a: u8, b: u8) -> u8 = a + b;
        pub(super) text(a: &str) -> String = a.to_owned();
    }
}

#[tokio::test(start_paused = true)]
async fn d04_what_a_stranger_may_write() {
    use futures::{StreamExt, stream};

    let elector = LocalElector::new();
    Box::pin(with_elector(elector.clone(), async {
        use shadowed::Result::Ok as Own;
        assert!(matches!(shadowed::nested::annotated(1).await, Own(1)));
        assert!(matches!(shadowed::nested::future(&2).await, Own(2)));

        let ring: signatures::Ring = signatures::Ring { items: [7, 8] };
        let found = ring.at(1, async |n: &u8| *n + 1).await;
        assert_eq!(found.unwrap(), Some(9));
        assert_eq!(signatures::labels(&["x", "1"]).await.unwrap(), Some(2));
        assert_eq!(signatures::labels(&[]).await.unwrap(), None);
        let raw = signatures::r#fn("a", 1).await.unwrap().unwrap();
        assert_eq!(raw, "raw:a:1 a1");
        let mut n = 0;
        let called = signatures::callback(
            || {
                n += 1;
                n
            },
            (),
        );
        assert_eq!(called.await.unwrap().elected(), Some(3));
        assert_eq!(signatures::constant([0; 3]).await.unwrap(), Some(0));
        let doubled = signatures::doubled(stream::iter([1, 2]), |n| 2 * n);
        let doubled: Vec<u16> = doubled.map(Into::into).collect().await;
        assert_eq!(doubled, [2, 4]);
        assert_eq!(signatures::conditional().await, Some(()));
        let names = signatures::names(&elector, 1, 2, "abc", 4);
        assert_eq!(names.await.unwrap(), Some(10));
        let current = Some(elector.node_id().to_string());
        assert_eq!(signatures::without().await.unwrap(), current);
        assert_eq!(signatures::without_in_a_future().await.unwrap(), current);
        let items: Vec<_> = signatures::without_in_a_stream().collect().await;
        assert_eq!(items[0].as_ref().unwrap(), &current);
        let with = signatures::with(&elector.node("given")).await;
        assert_eq!(with.unwrap().as_deref(), Some("given"));
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn d04_under_and_over_other_macros() {
    use attributes::{Job, Settlement, above, below, block, sum, text};

    let elector = LocalElector::new();
    with_elector(elector.clone(), async {
        assert_eq!(above("four").await.unwrap(), Some(4));
        assert_eq!(below("four").await.unwrap(), Some(4));
        assert_eq!(sum(1, 2).await.unwrap(), Some(3));
        assert_eq!(block(4).await.unwrap(), Some(4));
        assert_eq!(text("x").await.unwrap().as_deref(), Some("x"));
    })
    .await;
    let mut times = 1;
    let job = || Box::new(Settlement(elector.clone()));
    assert_eq!(job().run(&mut times).await.unwrap(), Some(2));
    assert_eq!(job().by_mut("acme").await.unwrap(), Some("acme"));
    assert_eq!(job().skip().await, 1);
}
