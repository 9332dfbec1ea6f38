//! What is in force around a piece of code: the current lease, and the elector to use.

use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures::Stream;
use pin_project_lite::pin_project;
use tokio::task;

use crate::elector::{Elector, ElectorId};
use crate::engine::Tenure;
use crate::error::LeaderError;
use crate::lease::LeaseHandle;
use crate::name::LockName;

thread_local! {
    /// The innermost frame that runs on this thread.
    static LEASES: RefCell<Running> = const {
        RefCell::new(Running { frame: None, task: None })
    };
}

tokio::task_local! {
    static ELECTOR: Arc<dyn Elector>;
}

static INSTALLED: OnceLock<Arc<dyn Elector>> = OnceLock::new();

/// The frame that runs, and in which task: a `LocalSet`, or a runtime of its own, that a body drives runs other tasks
/// within the body's poll, and they do not inherit its lease.
struct Running {
    frame: Option<Frame>,
    task: Option<task::Id>,
}

/// The leases in force in this task, the innermost first.
#[derive(Clone)]
struct Frame {
    /// `None` where a body runs although no lease could be had: what is around it protects something else.
    lease: Option<LeaseHandle>,
    outer: Option<Arc<Frame>>,
}

/// The lease in force: that of the innermost guarded run around this code, in this task. `None` outside one.
///
/// Spawned tasks do not inherit it, those of a `LocalSet` that the body drives no more than others, unless their future
/// is wrapped in [`LeaseHandle::scope`].
#[must_use]
pub fn current_lease() -> Option<LeaseHandle> {
    innermost(|frame| frame.lease.clone())
}

/// Checks that the lease in force is valid now: to be called before each step that must not happen twice. No I/O.
///
/// # Errors
///
/// [`LeaderError::LeaseLost`] when it is not valid, [`LeaderError::NotLeading`] when no lease is in force.
pub fn ensure_leader() -> Result<(), LeaderError> {
    match current_lease() {
        Some(lease) => lease.ensure_valid(),
        None => Err(LeaderError::NotLeading),
    }
}

/// Runs `future` with `lease` in force.
pub(crate) fn with_lease<F: Future>(
    lease: LeaseHandle,
    future: F,
) -> impl Future<Output = F::Output> + use<F> {
    made(Some(lease), || future)
}

/// Calls `make` with `lease` in force, and runs the future that it makes in the same way.
pub(crate) fn with_lease_made<F: Future>(
    lease: LeaseHandle,
    make: impl FnOnce(LeaseHandle) -> F,
) -> Scoped<F> {
    made(Some(lease.clone()), || make(lease))
}

/// Calls `make` with no lease in force, and runs the future that it makes in the same way.
pub(crate) fn without_lease<F: Future>(
    make: impl FnOnce() -> F,
) -> impl Future<Output = F::Output> {
    made(None, make)
}

fn made<T>(lease: Option<LeaseHandle>, make: impl FnOnce() -> T) -> Scoped<T> {
    let mut frame = Some(frame(lease));
    let inner = Some(within(&mut frame, make));
    Scoped { frame, inner }
}

pin_project! {
    /// A future or stream with a lease, or none, in force whenever it runs: when it is polled, and when it is dropped.
    pub(crate) struct Scoped<T> {
        // While it runs, what is in force around it.
        frame: Option<Frame>,
        #[pin]
        inner: Option<T>,
    }

    impl<T> PinnedDrop for Scoped<T> {
        fn drop(this: Pin<&mut Self>) {
            this.end();
        }
    }
}

impl<T> Scoped<T> {
    /// Calls `make` with `lease` in force, or none, and lets the stream that it makes run in the same way.
    pub(crate) fn made(
        lease: Option<LeaseHandle>,
        make: impl FnOnce() -> Option<T>,
    ) -> Option<Self> {
        let mut frame = Some(frame(lease));
        let inner = within(&mut frame, make);
        inner.is_some().then_some(Self { frame, inner })
    }

    /// Drops what is inside; from then on it does nothing.
    pub(crate) fn end(self: Pin<&mut Self>) {
        let mut this = self.project();
        if this.inner.is_some() {
            within(this.frame, || this.inner.set(None));
        }
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let mut inner = this.inner;
        within(this.frame, || {
            let Some(future) = inner.as_mut().as_pin_mut() else {
                // Polled after its end.
                return Poll::Pending;
            };
            let output = ready!(future.poll(cx));
            inner.set(None);
            Poll::Ready(output)
        })
    }
}

impl<S: Stream> Stream for Scoped<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        match this.inner.as_pin_mut() {
            Some(stream) => within(this.frame, || stream.poll_next(cx)),
            None => Poll::Ready(None),
        }
    }
}

/// Calls `run` with the frame in force. It is moved there and back, which costs a poll less than a clone of it.
fn within<T>(frame: &mut Option<Frame>, run: impl FnOnce() -> T) -> T {
    let mut swapped = Swapped {
        frame,
        task: task::try_id(),
    };
    swapped.swap();
    run()
}

/// What is in force around a frame that runs; it is put back when this is dropped, be it by a panic.
struct Swapped<'a> {
    frame: &'a mut Option<Frame>,
    task: Option<task::Id>,
}

impl Swapped<'_> {
    fn swap(&mut self) {
        // A thread that ends has no frames any more.
        let _ = LEASES.try_with(|running| {
            let mut running = running.borrow_mut();
            mem::swap(&mut running.frame, self.frame);
            mem::swap(&mut running.task, &mut self.task);
        });
    }
}

impl Drop for Swapped<'_> {
    fn drop(&mut self) {
        self.swap();
    }
}

/// Asks the innermost frame of this task, if there is one.
fn innermost<T>(ask: impl FnOnce(&Frame) -> Option<T>) -> Option<T> {
    let asked = LEASES.try_with(|running| {
        let running = running.borrow();
        let frame = running.frame.as_ref()?;
        (running.task == task::try_id())
            .then(|| ask(frame))
            .flatten()
    });
    asked.ok().flatten()
}

fn frame(lease: Option<LeaseHandle>) -> Frame {
    Frame {
        lease,
        outer: innermost(|frame| Some(Arc::new(frame.clone()))),
    }
}

/// The lease in force that `elector` holds on `name` with this many slots, however deep.
pub(crate) fn held_around(elector: ElectorId, name: &LockName, slots: u32) -> Option<LeaseHandle> {
    around(|tenure| tenure.elector == elector && tenure.slots == slots && tenure.id.name == *name)
}

/// Whether this is called from what runs under `tenure`, however deep.
pub(crate) fn is_inside(tenure: &Arc<Tenure>) -> bool {
    around(|around| Arc::ptr_eq(around, tenure)).is_some()
}

/// The innermost lease in force that is the one looked for.
fn around(is: impl Fn(&Arc<Tenure>) -> bool) -> Option<LeaseHandle> {
    innermost(|innermost| {
        let mut next = Some(innermost);
        while let Some(frame) = next {
            let lease = frame.lease.as_ref().filter(|lease| is(lease.inner()));
            if lease.is_some() {
                return lease.cloned();
            }
            next = frame.outer.as_deref();
        }
        None
    })
}

/// Runs `future` with `elector` as the one that annotated functions, and [`current_elector`], use.
///
/// ```
/// use leader_core::{current_elector, with_elector, Elector, LocalElector};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let elector = LocalElector::new().node("node-b");
/// with_elector(elector, async {
///     assert_eq!(current_elector().unwrap().node_id(), &"node-b");
/// })
/// .await;
/// # }
/// ```
pub fn with_elector<F: Future>(
    elector: impl Elector + 'static,
    future: F,
) -> impl Future<Output = F::Output> {
    ELECTOR.scope(Arc::new(elector), future)
}

/// Makes `elector` the process's default, for code that neither is given one nor runs inside [`with_elector`].
///
/// # Errors
///
/// [`AlreadyInstalled`] when there is a default already; it stays.
pub fn install(elector: impl Elector + 'static) -> Result<(), AlreadyInstalled> {
    INSTALLED
        .set(Arc::new(elector))
        .map_err(|_| AlreadyInstalled(()))
}

/// The elector of the surrounding [`with_elector`], else the one that was [`install`]ed.
///
/// # Errors
///
/// [`LeaderError::NoElector`] when there is neither.
pub fn current_elector() -> Result<Arc<dyn Elector>, LeaderError> {
    ELECTOR
        .try_with(Arc::clone)
        .ok()
        .or_else(|| INSTALLED.get().cloned())
        .ok_or(LeaderError::NoElector)
}

/// A default elector was installed before; it stays.
pub struct AlreadyInstalled(());

impl fmt::Debug for AlreadyInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AlreadyInstalled")
    }
}

impl fmt::Display for AlreadyInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a default elector was installed before; install it once, at start-up")
    }
}

impl std::error::Error for AlreadyInstalled {}
