//! [`Round`]: one question to many nodes at once. It goes on when enough is known; what is still unanswered then gets
//! its time in the background.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, timeout, timeout_at};

use super::Shared;
use crate::store::{Claim, ClaimReply, LeaseStore, Release, ReleaseReply, StoreError};

/// Answers awaited from nodes, each within its own time.
pub(super) struct Round<F> {
    asked: FuturesUnordered<F>,
    begun: Instant,
}

impl<F, T> Round<F>
where
    F: Future<Output = (usize, T)>,
{
    pub(super) fn new(asked: impl IntoIterator<Item = F>) -> Self {
        Self {
            asked: asked.into_iter().collect(),
            begun: Instant::now(),
        }
    }

    pub(super) fn ask(&mut self, one: F) {
        self.asked.push(one);
    }

    /// Waits for an answer, and takes all that are there by then; none when none is awaited any more.
    pub(super) async fn answers(&mut self) -> Vec<(usize, T)> {
        let mut answers = Vec::with_capacity(self.asked.len());
        std::future::poll_fn(|cx| {
            loop {
                match Pin::new(&mut self.asked).poll_next_unpin(cx) {
                    Poll::Ready(Some(answer)) => answers.push(answer),
                    Poll::Pending if answers.is_empty() => return Poll::Pending,
                    Poll::Ready(None) | Poll::Pending => return Poll::Ready(()),
                }
            }
        })
        .await;
        answers
    }

    /// Waits for the rest, but no longer than the round has taken until now: where all nodes are well, that is enough
    /// for all of them, and no task is needed. Whatever is not answered by then is left to one.
    pub(super) async fn rest<S: LeaseStore>(mut self, shared: &Shared<S>) -> Vec<(usize, T)>
    where
        F: Send + 'static,
        T: Send,
    {
        let mut rest = Vec::new();
        if self.asked.is_empty() {
            return rest;
        }
        let patience = self.begun.elapsed().max(LEAST_PATIENCE);
        let until = Instant::now() + patience;
        while !self.asked.is_empty() {
            match timeout_at(until, self.answers()).await {
                Ok(answers) => rest.extend(answers),
                Err(_) => break,
            }
        }
        if !self.asked.is_empty() {
            shared.spawn(async move { while self.asked.next().await.is_some() {} });
        }
        rest
    }
}

/// Timers do no better.
const LEAST_PATIENCE: Duration = Duration::from_millis(1);

/// One step of one node, within its time.
pub(super) async fn within<T>(
    limit: Duration,
    step: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    timeout(limit, step)
        .await
        .unwrap_or_else(|_| Err(StoreError::no_answer(limit)))
}

/// What node `node` says to `claim`.
pub(super) async fn claim_of<S: LeaseStore>(
    shared: Arc<Shared<S>>,
    node: usize,
    claim: Claim,
) -> (usize, Result<ClaimReply, StoreError>) {
    let Some(at) = shared.nodes.get(node) else {
        return (node, Err(super::failure::unknown_node()));
    };
    (node, within(at.timeout, at.store.claim(&claim)).await)
}

/// What node `node` says to `release`.
pub(super) async fn release_of<S: LeaseStore>(
    shared: Arc<Shared<S>>,
    node: usize,
    release: Release,
) -> (usize, Result<ReleaseReply, StoreError>) {
    let Some(at) = shared.nodes.get(node) else {
        return (node, Err(super::failure::unknown_node()));
    };
    (node, within(at.timeout, at.store.release(&release)).await)
}
