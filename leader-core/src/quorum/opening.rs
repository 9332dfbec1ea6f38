//! [`Opening`]: a watch on every node, in a task. It has begun once a majority is watched; the others follow as soon as
//! they can be.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::Shared;
use super::failure::{closed, failure};
use super::round::within;
use crate::store::{LeaseStore, StoreError, Watching};

/// How long a node that cannot be watched is left alone.
const PAUSE: Duration = Duration::from_millis(500);

/// How a watch began, and whether grants are told; said once.
pub(super) type Report = oneshot::Sender<Result<bool, StoreError>>;

/// Goes on with the task that `run` makes for as long as the watch is kept, once it has said how it began.
pub(super) async fn begin<S, R>(
    shared: &Shared<S>,
    run: impl FnOnce(Report) -> R,
) -> Result<Watching, StoreError>
where
    R: Future<Output = ()> + Send + 'static,
{
    let (report, reported) = oneshot::channel();
    let task = shared.spawn(run(report)).ok_or_else(closed)?;
    let watching = Watching::new(AbortOnDropHandle::new(task));
    match reported.await {
        Ok(Ok(true)) => Ok(watching.of_grants()),
        Ok(Ok(false)) => Ok(watching),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(closed()),
    }
}

/// The watches of one task, those that are open and those that will be.
pub(super) struct Opening<S, O> {
    shared: Arc<Shared<S>>,
    /// Watches a node.
    watch: O,
    asked: FuturesUnordered<BoxFuture<'static, (usize, Result<Watching, StoreError>)>>,
    open: Vec<Watching>,
    failed: Vec<(usize, StoreError)>,
    report: Option<Report>,
}

/// What became of the watch on one node.
pub(super) enum Opened {
    /// It is open, and among those with which all began.
    InTime,
    /// It is open since now: something may have been missed.
    Late,
    /// It will be tried again.
    NotYet,
    /// Too many could not be opened: this is over.
    TooFew,
}

impl<S, O, F> Opening<S, O>
where
    S: LeaseStore,
    O: Fn(usize) -> F,
    F: Future<Output = Result<Watching, StoreError>> + Send + 'static,
{
    pub(super) fn new(shared: Arc<Shared<S>>, report: Report, watch: O) -> Self {
        let mut opening = Self {
            asked: FuturesUnordered::new(),
            open: Vec::new(),
            failed: Vec::new(),
            report: Some(report),
            watch,
            shared,
        };
        for node in 0..opening.shared.nodes.len() {
            opening.ask(node, Duration::ZERO);
        }
        opening
    }

    fn ask(&mut self, node: usize, pause: Duration) {
        let timeout = self.shared.nodes.get(node).map(|node| node.timeout);
        let watch = (self.watch)(node);
        self.asked.push(Box::pin(async move {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            (node, within(timeout.unwrap_or_default(), watch).await)
        }));
    }

    /// Waits until a watch is open, or is not; for ever, when all are. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> Opened {
        let Some((node, watching)) = self.asked.next().await else {
            return std::future::pending().await;
        };
        let size = self.shared.size;
        match watching {
            Ok(watching) => {
                self.open.push(watching);
                let has_begun = self.report.is_none();
                if self.open.len() >= size.majority()
                    && let Some(report) = self.report.take()
                {
                    let tell = self.open.iter().all(Watching::tells_grants);
                    let _ = report.send(Ok(tell));
                }
                if has_begun {
                    Opened::Late
                } else {
                    Opened::InTime
                }
            }
            Err(error) => {
                self.ask(node, PAUSE);
                if self.report.is_none() {
                    return Opened::NotYet;
                }
                self.failed.push((node, error));
                if self.failed.len() <= size.spare() {
                    return Opened::NotYet;
                }
                let failed = std::mem::take(&mut self.failed);
                if let Some(report) = self.report.take() {
                    let _ = report.send(Err(failure(size, self.open.len(), failed)));
                }
                Opened::TooFew
            }
        }
    }
}
