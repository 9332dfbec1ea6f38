//! [`Lodging`]: on which runtime connections and background work live.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The runtime of connections: the one that called `connect`, or one of their own.
#[derive(Clone, Debug)]
pub(crate) struct Lodging {
    handle: Handle,
}

impl Lodging {
    /// The runtime of the caller, if it is on one.
    pub(crate) fn of_caller() -> Option<Self> {
        let handle = Handle::try_current().ok()?;
        Some(Self { handle })
    }

    /// A runtime on a thread of its own, which ends when its [`OwnRuntime`] is dropped.
    pub(crate) fn own() -> io::Result<(Self, OwnRuntime)> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("leader-redis".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(stopped);
                // A name being looked up, say, is not waited for.
                runtime.shutdown_background();
            })?;
        Ok((Self { handle }, OwnRuntime { _stop: stop }))
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs `work` where the connections live.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.handle.spawn(work)
    }

    /// Runs `work`, once it was begun, to its end even when the caller loses interest in the answer: in the caller's
    /// task, which saves waking another one, but with the timers of this runtime, on which it goes on.
    pub(crate) fn see_through<T, W>(
        &self,
        work: Pin<Box<W>>,
    ) -> impl Future<Output = T> + Send + use<T, W>
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        SeenThrough {
            work: Some(work),
            begun: false,
            handle: self.handle.clone(),
        }
    }
}

/// Ends a runtime when dropped, from wherever that is, and without waiting.
#[derive(Debug)]
pub(crate) struct OwnRuntime {
    _stop: oneshot::Sender<()>,
}

/// A future that goes on as a task of its own when it is dropped between its beginning and its end.
struct SeenThrough<W: Future<Output: Send> + Send + 'static> {
    work: Option<Pin<Box<W>>>,
    begun: bool,
    handle: Handle,
}

impl<W: Future<Output: Send> + Send + 'static> Future for SeenThrough<W> {
    type Output = W::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<W::Output> {
        let this = &mut *self;
        let Some(work) = &mut this.work else {
            return Poll::Pending;
        };
        this.begun = true;
        let here = this.handle.enter();
        let polled = work.as_mut().poll(cx);
        drop(here);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<W: Future<Output: Send> + Send + 'static> Drop for SeenThrough<W> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take()
            && self.begun
        {
            // On a runtime that is shutting down this drops the work, as everything on it.
            self.handle.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio::sync::Notify;

    use super::*;

    async fn ring(bell: Arc<Notify>, rung: Arc<AtomicBool>) {
        bell.notified().await;
        rung.store(true, Ordering::SeqCst);
        bell.notify_one();
    }

    #[tokio::test]
    async fn work_that_was_not_begun_is_not_done() {
        let lodging = Lodging::of_caller().unwrap();
        let (bell, rung) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        bell.notify_one();
        drop(lodging.see_through(Box::pin(ring(bell, rung.clone()))));
        // Whatever was spawned has had its turn.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        assert!(!rung.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn work_is_seen_through_when_its_caller_goes() {
        let (lodging, _own) = Lodging::own().unwrap();
        for lodging in [Lodging::of_caller().unwrap(), lodging] {
            let (bell, rung) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
            let work = lodging.see_through(Box::pin(ring(bell.clone(), rung.clone())));
            // Polled once, then dropped.
            let dropped = tokio::time::timeout(Duration::ZERO, work).await;
            assert!(dropped.is_err());
            bell.notify_one();
            tokio::time::timeout(Duration::from_secs(10), async {
                while !rung.load(Ordering::SeqCst) {
                    tokio::task::yield_now().await;
                }
            })
            .await
            .expect("the work went on");
        }
    }

    #[test]
    fn an_own_runtime_ends_from_anywhere() {
        let (lodging, own) = Lodging::own().unwrap();
        let (alive, ended) = std::sync::mpsc::channel::<()>();
        lodging.spawn(async move {
            let _alive = alive;
            std::future::pending::<()>().await;
        });
        let elsewhere = Builder::new_current_thread().build().unwrap();
        elsewhere.block_on(async move { drop(own) });
        let gone = ended.recv_timeout(Duration::from_secs(10));
        assert_eq!(gone, Err(std::sync::mpsc::RecvTimeoutError::Disconnected));
    }
}
