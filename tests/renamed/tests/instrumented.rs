//! The order with `#[instrument]`: above, its span is inside the lease; below, it is around all. The body is polled in it
//! in every shape of function.
#![allow(missing_docs, reason = "a test")]

use std::future::Future;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::future::BoxFuture;
use leader::{LeaderError, LocalElector, leader_election};
use tracing::instrument;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

type Answer = Result<Option<()>, LeaderError>;

/// The names of the spans, and which of them are entered now, the outermost first.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<(Vec<&'static str>, Vec<&'static str>)>>);

impl Spans {
    fn entered(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().1.clone()
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let (names, _) = &mut *self.0.lock().unwrap();
        names.push(span.metadata().name());
        Id::from_u64(names.len() as u64)
    }

    fn enter(&self, span: &Id) {
        let (names, entered) = &mut *self.0.lock().unwrap();
        let at = usize::try_from(span.into_u64()).unwrap() - 1;
        entered.push(names[at]);
    }

    fn exit(&self, _: &Id) {
        self.0.lock().unwrap().1.pop();
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
}

#[instrument(skip_all)]
#[leader_election(name = "x", crate = "leader")]
async fn above(elector: &LocalElector, then: impl FnOnce()) -> Answer {
    tokio::task::yield_now().await;
    then();
    Ok(Some(()))
}

#[leader_election(name = "x", crate = "leader")]
#[instrument(skip_all)]
async fn below(elector: &LocalElector, then: impl FnOnce()) -> Answer {
    tokio::task::yield_now().await;
    then();
    Ok(Some(()))
}

#[leader_election(name = "x", crate = "leader")]
#[instrument(skip_all)]
fn below_opaque(elector: &LocalElector, then: impl FnOnce()) -> impl Future<Output = Answer> {
    async {
        tokio::task::yield_now().await;
        then();
        Ok(Some(()))
    }
}

#[leader_election(name = "x", crate = "leader")]
#[instrument(skip_all)]
fn below_boxed<'a>(
    elector: &'a LocalElector,
    then: impl FnOnce() + Send + 'a,
) -> BoxFuture<'a, Answer> {
    Box::pin(async {
        tokio::task::yield_now().await;
        then();
        Ok(Some(()))
    })
}

#[async_trait]
trait Job {
    async fn above(&self, then: Box<dyn FnOnce() + Send>) -> Answer;
    async fn below(&self, then: Box<dyn FnOnce() + Send>) -> Answer;
}

#[async_trait]
impl Job for LocalElector {
    #[instrument(skip_all)]
    #[leader_election(name = "x", elector = self, crate = "leader")]
    async fn above(&self, then: Box<dyn FnOnce() + Send>) -> Answer {
        tokio::task::yield_now().await;
        then();
        Ok(Some(()))
    }

    #[leader_election(name = "x", elector = self, crate = "leader")]
    #[instrument(skip_all)]
    async fn below(&self, then: Box<dyn FnOnce() + Send>) -> Answer {
        tokio::task::yield_now().await;
        then();
        Ok(Some(()))
    }
}

#[tokio::test(start_paused = true)]
async fn above_the_span_is_inside_the_lease_and_below_around_all() {
    let (spans, elector) = (Spans::default(), LocalElector::new());
    let _set = tracing::subscriber::set_default(spans.clone());
    let look = |expected: [&'static str; 2]| {
        let spans = spans.clone();
        move || assert_eq!(spans.entered(), expected)
    };
    above(&elector, look(["leading", "above"])).await.unwrap();
    below(&elector, look(["below", "leading"])).await.unwrap();
    let seen = look(["below_opaque", "leading"]);
    below_opaque(&elector, seen).await.unwrap();
    let seen = look(["below_boxed", "leading"]);
    below_boxed(&elector, seen).await.unwrap();
    let seen = Box::new(look(["leading", "above"]));
    Job::above(&elector, seen).await.unwrap();
    let seen = Box::new(look(["below", "leading"]));
    Job::below(&elector, seen).await.unwrap();
    assert!(spans.entered().is_empty());
}
