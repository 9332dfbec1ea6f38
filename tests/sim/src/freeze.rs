//! Freezing a process: none of its tasks is polled until it is thawed, although timers fire and replies arrive.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::Instant;

/// Whether a process is frozen at the moment. A clone is the same process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Freezer {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// How many freezes are on: they may overlap.
    depth: u32,
    since: Option<Instant>,
    frozen: Duration,
    kept: Vec<Waker>,
}

impl Freezer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn freeze(&self) {
        let mut state = self.lock();
        state.depth += 1;
        if state.depth == 1 {
            state.since = Some(Instant::now());
        }
    }

    pub(crate) fn thaw(&self) {
        let mut state = self.lock();
        state.depth = state.depth.saturating_sub(1);
        if state.depth == 0 {
            if let Some(since) = state.since.take() {
                state.frozen += since.elapsed();
            }
            let kept = std::mem::take(&mut state.kept);
            drop(state);
            kept.into_iter().for_each(Waker::wake);
        }
    }

    /// How long the process has been frozen so far, all in all.
    pub(crate) fn total(&self) -> Duration {
        let state = self.lock();
        state.frozen + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// `task`, which is not polled while this process is frozen.
    pub(crate) fn gate<F>(&self, task: F) -> Gated<F> {
        Gated {
            freezer: self.clone(),
            task,
        }
    }

    fn keeps(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        if state.depth == 0 {
            return false;
        }
        if !state.kept.iter().any(|kept| kept.will_wake(waker)) {
            state.kept.push(waker.clone());
        }
        true
    }
}

pin_project! {
    /// See [`Freezer::gate`].
    pub(crate) struct Gated<F> {
        freezer: Freezer,
        #[pin]
        task: F,
    }
}

impl<F: Future> Future for Gated<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if this.freezer.keeps(cx.waker()) {
            return Poll::Pending;
        }
        this.task.poll(cx)
    }
}
