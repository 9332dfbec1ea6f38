//! d04: annotated functions of every shape compile and mean the same as before.
#![allow(missing_docs, reason = "a test")]

use std::fmt::{Debug, Display};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{BoxFuture, FutureExt, LocalBoxFuture};
use leader::{
    Elector, LeaderError, LeaseOptions, LocalElector, OnLost, RunOutcome, current_lease,
    leader_election, with_elector,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn is_leading(name: &str) -> bool {
    current_lease().is_some_and(|lease| lease.name().as_str() == name)
}

/// Documented, and with other attributes above and below.
#[must_use = "as before"]
#[leader_election(name = "documented", crate = "leader")]
#[inline]
#[tracing::instrument(skip_all)]
async fn documented(what: &str) -> Result<Option<usize>, LeaderError> {
    #![allow(clippy::let_and_return, reason = "also inside")]
    let length = what.len();
    assert!(is_leading("documented"));
    Ok(Some(length))
}

#[tracing::instrument]
#[leader_election(name = "instrumented:{n:04}", crate = leader)]
async fn instrumented(n: u32) -> Result<Option<u32>, LeaderError> {
    assert!(is_leading(&format!("instrumented:{n:04}")));
    Ok(Some(n))
}

#[leader_election(name = "generic:{key}:{N}", crate = "leader")]
async fn generic<'a, T, K, const N: usize>(
    key: K,
    values: &'a [T],
    mut rest: impl Iterator<Item = &'a T>,
) -> Result<Option<[&'a T; N]>, LeaderError>
where
    T: Debug + Sync,
    K: Display,
{
    assert!(is_leading(&format!("generic:{key}:{N}")));
    let mut all = values.iter();
    Ok((0..N)
        .map_while(|_| all.next().or_else(|| rest.next()))
        .collect::<Vec<_>>()
        .try_into()
        .ok())
}

#[leader_election(name = "patterns:{a}:{c}", crate = "leader")]
async fn patterns(
    (a, [b, ..]): (u8, [u8; 2]),
    Point { x: c, .. }: Point,
    mut n: u32,
    _: Rc<u8>,
) -> Result<Option<u32>, LeaderError> {
    n += u32::from(a) + u32::from(b) + u32::from(c);
    tokio::task::yield_now().await;
    Ok(Some(n))
}

struct Point {
    x: u8,
    y: u8,
}

#[leader_election(name = "early", crate = "leader")]
async fn early(text: &str) -> Result<Option<i64>, Failure> {
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if text == "nothing" {
        return Ok(None);
    }
    Ok(Some(text.parse::<i64>()?))
}

#[leader_election(name = "coerced", crate = "leader")]
async fn coerced(n: u8) -> Result<Option<Box<dyn Display>>, Failure> {
    if n > 0 {
        return Ok(Some(Box::new(n)));
    }
    Ok(Some(Box::new("none")))
}

#[leader_election(name = "opaque", crate = "leader")]
async fn opaque() -> Result<Option<impl Display>, LeaderError> {
    Ok(Some(7))
}

// Nested runs of the same name run inside the outer lease.
#[leader_election(name = "factorial", crate = "leader")]
async fn factorial(n: u64) -> Result<Option<u64>, LeaderError> {
    assert!(is_leading("factorial"));
    if n <= 1 {
        return Ok(Some(1));
    }
    let smaller = Box::pin(factorial(n - 1)).await?;
    Ok(smaller.map(|smaller| n * smaller))
}

#[leader_election(name = "given", elector = elector, crate = "leader")]
async fn given(elector: Arc<dyn Elector>) -> Result<Option<String>, LeaderError> {
    // Moved into the body, although it was the elector.
    let elector = elector;
    Ok(Some(elector.node_id().to_string()))
}

#[leader_election(name = "parameter", crate = "leader")]
async fn parameter(elector: LocalElector) -> Result<Option<String>, LeaderError> {
    let elector = elector;
    Ok(Some(elector.node_id().to_string()))
}

#[leader_election(name = "borrowed", crate = "leader")]
async fn borrowed<E: Elector + ?Sized>(elector: &E) -> Result<Option<()>, LeaderError> {
    Ok(is_leading("borrowed").then_some(()))
}

#[leader_election(name = "opaque-future", crate = "leader")]
fn opaque_future(n: &u8) -> impl Future<Output = Result<Option<u8>, LeaderError>> + Send + use<'_> {
    let n = *n;
    async move {
        assert!(is_leading("opaque-future"));
        Ok(Some(n))
    }
}

#[leader_election(name = "boxed:{n}", crate = "leader")]
fn boxed(n: &u8) -> BoxFuture<'_, Result<Option<u8>, Failure>> {
    if *n == 0 {
        return async { Err("zero".into()) }.boxed();
    }
    Box::pin(async move {
        tokio::task::yield_now().await;
        Ok(Some(*n))
    })
}

#[leader_election(name = "pinned", on_error = "skip", crate = "leader")]
fn pinned<'a>(n: &'a u8) -> Pin<Box<dyn Future<Output = Option<&'a u8>> + 'a>> {
    Box::pin(async move { Some(n) })
}

#[leader_election(name = "local", crate = "leader")]
fn local(n: Rc<u8>) -> LocalBoxFuture<'static, Result<Option<Rc<u8>>, Failure>> {
    Box::pin(async move { Ok(Some(n)) })
}

type Aliased<T> = BoxFuture<'static, Result<Option<T>, LeaderError>>;

#[leader_election(name = "aliased", kind = "future", crate = "leader")]
fn aliased(n: u8) -> Aliased<u8> {
    Box::pin(async move { Ok(Some(n)) })
}

#[leader_election(name = "outcome", crate = "leader")]
async fn outcome() -> Result<RunOutcome<u8, Failure>, LeaderError> {
    Ok(RunOutcome::Elected(1))
}

const LEASE: Duration = Duration::from_secs(20);

#[leader_election(
    name = String::from("expressions"),
    wait = Duration::ZERO,
    lease = LEASE,
    min_lease = seconds,
    max_tenure = LEASE * 3,
    slots = slots,
    auto_extend = slots > 1,
    on_lost = OnLost::Notify,
    skipped = 0,
    on_error = "skip",
    crate = "leader",
)]
async fn expressions(seconds: Duration, slots: u32) -> u32 {
    slots
}

#[leader_election(name = "with:{tenant}", options = &shared(), crate = "leader")]
async fn with_options(tenant: String) -> Result<Option<String>, LeaderError> {
    Ok(Some(tenant))
}

fn shared() -> LeaseOptions {
    LeaseOptions::default()
}

struct Service<T> {
    elector: LocalElector,
    value: T,
}

impl<T: Clone + Send + Sync> Service<T> {
    #[leader_election(name = "by-ref", elector = self.elector, crate = "leader")]
    async fn by_ref(&self) -> Result<Option<&T>, LeaderError> {
        Ok(Some(&self.value))
    }

    #[leader_election(name = "by-mut", elector = self.elector, crate = "leader")]
    async fn by_mut(&mut self, value: T) -> Result<Option<T>, LeaderError> {
        Ok(Some(std::mem::replace(&mut self.value, value)))
    }

    #[leader_election(name = "by-value", elector = self.elector, crate = "leader")]
    async fn by_value(self) -> Result<Option<T>, LeaderError> {
        Ok(Some(self.value))
    }

    #[leader_election(name = "by-mut-value", elector = &self.elector, crate = "leader")]
    async fn by_mut_value(mut self, value: T) -> Result<Option<Self>, LeaderError> {
        self.value = value;
        Ok(Some(self))
    }

    #[leader_election(name = "by-box", elector = self.elector, crate = "leader")]
    async fn by_box(self: Box<Self>) -> Result<Option<T>, LeaderError> {
        Ok(Some(self.value))
    }

    #[leader_election(name = "by-arc", elector = self.elector, crate = "leader")]
    async fn by_arc(self: Arc<Self>) -> Result<Option<T>, LeaderError> {
        Ok(Some(self.value.clone()))
    }

    #[leader_election(name = "by-pin", elector = self.elector, crate = "leader")]
    async fn by_pin(self: Pin<&mut Self>) -> Result<Option<T>, LeaderError>
    where
        T: Unpin,
    {
        Ok(Some(self.get_mut().value.clone()))
    }

    #[leader_election(name = "method", elector = self.elector(), crate = "leader")]
    async fn by_method(&self) -> Result<Option<T>, LeaderError> {
        Ok(Some(self.value.clone()))
    }

    fn elector(&self) -> LocalElector {
        self.elector.clone()
    }
}

trait Native {
    fn elector(&self) -> &LocalElector;

    #[leader_election(name = "native", elector = self.elector(), crate = "leader")]
    #[allow(async_fn_in_trait, reason = "a test")]
    async fn by_default(&self) -> Result<Option<&'static str>, LeaderError> {
        Ok(Some("default"))
    }

    fn named(
        &self,
        tenant: &str,
    ) -> impl Future<Output = Result<Option<usize>, LeaderError>> + Send;
}

impl Native for Service<u8> {
    fn elector(&self) -> &LocalElector {
        &self.elector
    }

    #[leader_election(name = "native:{tenant}", elector = self.elector, crate = "leader")]
    async fn named(&self, tenant: &str) -> Result<Option<usize>, LeaderError> {
        assert!(is_leading(&format!("native:{tenant}")));
        Ok(Some(tenant.len()))
    }
}

#[async_trait]
trait Boxing {
    fn candidate(&self) -> &LocalElector;

    #[leader_election(name = "boxing", elector = self.candidate(), crate = "leader")]
    async fn by_default(&self) -> Result<Option<u8>, LeaderError>
    where
        Self: Sync,
    {
        Ok(Some(1))
    }

    async fn sum<'a>(
        &mut self,
        tenant: &str,
        values: &'a [u8],
        extra: (u8, Point),
        mut start: u8,
    ) -> Result<Option<u8>, LeaderError>;
}

#[async_trait]
impl Boxing for Service<u8> {
    fn candidate(&self) -> &LocalElector {
        &self.elector
    }

    #[leader_election(name = "boxing:{tenant}", elector = self.elector, crate = "leader")]
    async fn sum<'a>(
        &mut self,
        tenant: &str,
        values: &'a [u8],
        (extra, _): (u8, Point),
        mut start: u8,
    ) -> Result<Option<u8>, LeaderError> {
        assert!(is_leading(&format!("boxing:{tenant}")));
        self.value = 0;
        start += extra;
        for value in values {
            start += *value;
            tokio::task::yield_now().await;
        }
        if start == 0 {
            return Ok(None);
        }
        Ok(Some(start))
    }
}

macro_rules! annotated {
    ($name:literal, $lease:expr, $function:ident) => {
        #[leader_election(name = $name, lease = $lease, crate = "leader")]
        async fn $function() -> Result<Option<u8>, LeaderError> {
            Ok(Some(1))
        }
    };
}

annotated!("by-macro", "10s", by_macro);

// `stood`, `name`, `options` are names of the expansion, and not seen here.
#[leader_election(name = "{name}:{options}", crate = "leader")]
async fn hygienic(name: &str, options: u8, stood: u8) -> Result<Option<u8>, LeaderError> {
    assert!(is_leading(&format!("{name}:{options}")));
    Ok(Some(options + stood))
}

#[leader_election(name = "unit", on_error = "skip", crate = "leader")]
async fn unit(_kept: &str) {}

#[leader_election(name = "custom", skipped = Err(custom(&held_by)), crate = "leader")]
async fn custom_skip(held_by: String) -> Result<String, Failure> {
    Ok(held_by)
}

fn custom(held_by: &str) -> Failure {
    format!("led by {held_by}").into()
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test(start_paused = true)]
async fn d04_every_shape_means_the_same_as_before() {
    let elector = LocalElector::new();
    Box::pin(with_elector(elector.clone(), async move {
        assert_eq!(is_send(documented("four")).await.unwrap(), Some(4));
        assert_eq!(is_send(instrumented(7)).await.unwrap(), Some(7));
        let found = is_send(generic::<_, _, 3>("k", &[1, 2], [3, 4].iter())).await;
        assert_eq!(found.unwrap(), Some([&1, &2, &3]));
        let point = Point { x: 3, y: 0 };
        assert_eq!(point.y, 0);
        assert_eq!(
            patterns((1, [2, 0]), point, 10, Rc::new(0)).await.unwrap(),
            Some(16)
        );
        assert_eq!(is_send(early("12")).await.unwrap(), Some(12));
        assert_eq!(early("nothing").await.unwrap(), None);
        assert!(early("").await.is_err());
        assert!(
            early("x")
                .await
                .unwrap_err()
                .to_string()
                .contains("invalid digit")
        );
        assert_eq!(coerced(3).await.unwrap().unwrap().to_string(), "3");
        assert_eq!(is_send(opaque()).await.unwrap().unwrap().to_string(), "7");
        assert_eq!(is_send(factorial(5)).await.unwrap(), Some(120));
        let node = elector.node_id().to_string();
        assert_eq!(
            is_send(given(Arc::new(elector.clone()))).await.unwrap(),
            Some(node.clone())
        );
        assert_eq!(
            is_send(parameter(elector.clone())).await.unwrap(),
            Some(node)
        );
        assert!(is_send(borrowed(&elector)).await.unwrap().is_some());
        assert_eq!(is_send(opaque_future(&3)).await.unwrap(), Some(3));
        assert_eq!(is_send(boxed(&3)).await.unwrap(), Some(3));
        assert!(boxed(&0).await.is_err());
        assert_eq!(pinned(&3).await, Some(&3));
        assert_eq!(local(Rc::new(3)).await.unwrap(), Some(Rc::new(3)));
        assert_eq!(is_send(aliased(3)).await.unwrap(), Some(3));
        assert!(outcome().await.unwrap().ran());
        assert_eq!(is_send(expressions(Duration::ZERO, 3)).await, 3);
        assert_eq!(
            is_send(with_options("eu".to_owned())).await.unwrap(),
            Some("eu".to_owned())
        );
        assert_eq!(by_macro().await.unwrap(), Some(1));
        assert_eq!(hygienic("n", 2, 3).await.unwrap(), Some(5));
        is_send(unit("")).await;
        assert_eq!(custom_skip("b".to_owned()).await.unwrap(), "b");
    }))
    .await;
}

#[tokio::test(start_paused = true)]
async fn d04_methods_with_every_kind_of_self() {
    let service = |value: u8| Service {
        elector: LocalElector::new(),
        value,
    };
    assert_eq!(is_send(service(1).by_ref()).await.unwrap(), Some(&1));
    let mut changed = service(1);
    assert_eq!(is_send(changed.by_mut(2)).await.unwrap(), Some(1));
    assert_eq!(changed.value, 2);
    assert_eq!(is_send(changed.by_value()).await.unwrap(), Some(2));
    let changed = service(1).by_mut_value(3).await.unwrap().unwrap();
    assert_eq!(is_send(Box::new(changed).by_box()).await.unwrap(), Some(3));
    assert_eq!(Arc::new(service(4)).by_arc().await.unwrap(), Some(4));
    assert_eq!(Pin::new(&mut service(5)).by_pin().await.unwrap(), Some(5));
    assert_eq!(is_send(service(6).by_method()).await.unwrap(), Some(6));
    assert_eq!(
        Native::by_default(&service(0)).await.unwrap(),
        Some("default")
    );
    assert_eq!(is_send(service(0).named("acme")).await.unwrap(), Some(4));
    assert_eq!(Boxing::by_default(&service(0)).await.unwrap(), Some(1));
    assert_eq!(
        is_send(service(0).sum("acme", &[1, 2], (1, Point { x: 0, y: 0 }), 2))
            .await
            .unwrap(),
        Some(6)
    );
}

/// Types that are not what their names say, or come through a macro of the user's.
mod of_any_origin {
    use super::{Future, LeaderError, LocalElector, Pin, leader_election, with_elector};

    /// Of the name of a well-known one, but its one parameter is not the output.
    type BoxFuture<T> = Pin<Box<dyn Future<Output = Result<Option<T>, LeaderError>> + Send>>;

    #[leader_election(name = "own-alias", kind = "future", crate = "leader")]
    fn charged(amount: u8) -> BoxFuture<u8> {
        Box::pin(async move { Ok(Some(amount)) })
    }

    macro_rules! annotated {
        ($name:ident, $returned:ty) => {
            #[leader_election(name = "through-macro-rules", crate = "leader")]
            fn $name(amount: u8) -> $returned {
                Box::pin(async move { Ok(Some(amount)) })
            }
        };
    }

    annotated!(
        through_macro_rules,
        Pin<Box<dyn Future<Output = Result<Option<u8>, LeaderError>> + Send>>
    );

    #[tokio::test(start_paused = true)]
    async fn d04_types_of_any_origin_are_read() {
        with_elector(LocalElector::new(), async {
            assert_eq!(charged(7).await.unwrap(), Some(7));
            assert_eq!(through_macro_rules(8).await.unwrap(), Some(8));
        })
        .await;
    }
}
