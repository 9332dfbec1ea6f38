//! Freezing a candidate: none of its tasks is polled until it is thawed, as in a process that was stopped.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// Whether a candidate is frozen at the moment. A clone is the same candidate's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Freezer {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    frozen: bool,
    /// Who asked to be polled meanwhile.
    kept: Vec<Waker>,
}

impl Freezer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn freeze(&self) {
        self.lock().frozen = true;
    }

    pub(crate) fn thaw(&self) {
        let mut state = self.lock();
        state.frozen = false;
        let kept = std::mem::take(&mut state.kept);
        drop(state);
        kept.into_iter().for_each(Waker::wake);
    }

    /// Runs `task`, which is not polled while the candidate is frozen.
    pub(crate) async fn gate<F: Future>(self, task: F) -> F::Output {
        let mut task = pin!(task);
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.frozen {
                if !state.kept.iter().any(|kept| kept.will_wake(cx.waker())) {
                    state.kept.push(cx.waker().clone());
                }
                return Poll::Pending;
            }
            drop(state);
            task.as_mut().poll(cx)
        })
        .await
    }
}
