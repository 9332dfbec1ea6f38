//! Observing: every node is observed, and what each tells is passed on. Whoever looks on asks a majority anyway.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::Shared;
use super::failure::{closed, failure, unknown_node};
use super::round::within;
use super::watch::PAUSE;
use crate::hints::{HintSender, hints};
use crate::name::LockName;
use crate::store::{Hint, LeaseStore, StoreError, Watching};

/// Begun once a majority is observed; the others follow as soon as they can be.
pub(super) async fn observe<S: LeaseStore>(
    shared: &Arc<Shared<S>>,
    name: &LockName,
    hints: HintSender,
) -> Result<Watching, StoreError> {
    let (report, reported) = oneshot::channel();
    let observation = Observation {
        shared: shared.clone(),
        name: name.clone(),
        hints,
    };
    let task = shared.spawn(observation.run(report)).ok_or_else(closed)?;
    let watching = Watching::new(AbortOnDropHandle::new(task));
    match reported.await {
        Ok(Ok(true)) => Ok(watching.of_grants()),
        Ok(Ok(false)) => Ok(watching),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(closed()),
    }
}

struct Observation<S> {
    shared: Arc<Shared<S>>,
    name: LockName,
    hints: HintSender,
}

impl<S: LeaseStore> Observation<S> {
    /// Says how it began as soon as that is known, and whether grants are told; goes on for as long as it is not dropped.
    async fn run(self, report: oneshot::Sender<Result<bool, StoreError>>) {
        let size = self.shared.size;
        let mut report = Some(report);
        let nodes = 0..size.nodes();
        // Not the observer's own end: what is lost on the way to a node may keep it for long.
        let (post, mut told) = hints();
        let open_at = |node, pause| self.open(node, post.clone(), pause);
        let mut opening: FuturesUnordered<_> =
            nodes.map(|node| open_at(node, Duration::ZERO)).collect();
        let (mut open, mut failed) = (Vec::new(), Vec::new());
        loop {
            tokio::select! {
                hint = told.next() => self.hints.push(hint),
                Some((node, observed)) = opening.next() => match observed {
                    Ok(watching) => {
                        open.push(watching);
                        if open.len() >= size.majority()
                            && let Some(report) = report.take()
                        {
                            let tell = open.iter().all(Watching::tells_grants);
                            let _ = report.send(Ok(tell));
                        } else if report.is_none() {
                            // There may have been a change before it was listened to.
                            self.hints.push(Hint::Missed);
                        }
                    }
                    Err(error) => {
                        opening.push(open_at(node, PAUSE));
                        failed.push((node, error));
                        if failed.len() > size.spare()
                            && let Some(report) = report.take()
                        {
                            let _ = report.send(Err(failure(size, open.len(), failed)));
                            return;
                        }
                        if report.is_none() {
                            failed.clear();
                        }
                    }
                },
            }
        }
    }

    /// Observes a node, after a pause.
    fn open(
        &self,
        node: usize,
        post: HintSender,
        pause: Duration,
    ) -> impl Future<Output = (usize, Result<Watching, StoreError>)> + Send + use<S> {
        let (shared, name) = (self.shared.clone(), self.name.clone());
        async move {
            if !pause.is_zero() {
                sleep(pause).await;
            }
            let Some(at) = shared.nodes.get(node) else {
                return (node, Err(unknown_node()));
            };
            let observe = at.store.observe(&name, post);
            (node, within(at.timeout, observe).await)
        }
    }
}
