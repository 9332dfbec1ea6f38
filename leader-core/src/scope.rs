//! What is in force around a piece of code: the current lease, and the elector to use.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures::Stream;
use pin_project_lite::pin_project;

use crate::elector::{Elector, ElectorId};
use crate::error::LeaderError;
use crate::lease::LeaseHandle;
use crate::name::LockName;

tokio::task_local! {
    static LEASES: Arc<Frame>;
    static ELECTOR: Arc<dyn Elector>;
}

static INSTALLED: OnceLock<Arc<dyn Elector>> = OnceLock::new();

/// The leases in force in this task, the innermost first.
struct Frame {
    /// `None` where a body runs although no lease could be had: what is around it protects something else.
    lease: Option<LeaseHandle>,
    outer: Option<Arc<Frame>>,
}

/// The lease in force: that of the innermost guarded run around this code, in this task. `None` outside one.
///
/// Spawned tasks do not inherit it, unless their future is wrapped in [`LeaseHandle::scope`].
#[must_use]
pub fn current_lease() -> Option<LeaseHandle> {
    LEASES.try_with(|frame| frame.lease.clone()).ok().flatten()
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
    LEASES.scope(frame(Some(lease)), future)
}

/// Calls `make` with `lease` in force, and runs the future that it makes in the same way.
pub(crate) fn with_lease_made<F: Future>(
    lease: LeaseHandle,
    make: impl FnOnce(LeaseHandle) -> F,
) -> impl Future<Output = F::Output> {
    let frame = frame(Some(lease.clone()));
    let future = LEASES.sync_scope(frame.clone(), || make(lease));
    LEASES.scope(frame, future)
}

/// Calls `make` with no lease in force, and runs the future that it makes in the same way.
pub(crate) fn without_lease<F: Future>(
    make: impl FnOnce() -> F,
) -> impl Future<Output = F::Output> {
    let frame = frame(None);
    let future = LEASES.sync_scope(frame.clone(), make);
    LEASES.scope(frame, future)
}

pin_project! {
    /// A stream with a lease, or none, in force whenever it runs: when it is polled, and when it is dropped.
    pub(crate) struct Scoped<S> {
        frame: Arc<Frame>,
        #[pin]
        stream: Option<S>,
    }

    impl<S> PinnedDrop for Scoped<S> {
        fn drop(this: Pin<&mut Self>) {
            this.end();
        }
    }
}

impl<S> Scoped<S> {
    /// Calls `make` with `lease` in force, or none, and lets the stream that it makes run in the same way.
    pub(crate) fn made(
        lease: Option<LeaseHandle>,
        make: impl FnOnce() -> Option<S>,
    ) -> Option<Self> {
        let frame = frame(lease);
        let stream = LEASES.sync_scope(frame.clone(), make);
        stream.is_some().then_some(Self { frame, stream })
    }

    /// Drops the stream; from then on there are no more items.
    pub(crate) fn end(self: Pin<&mut Self>) {
        let mut this = self.project();
        if this.stream.is_some() {
            LEASES.sync_scope(this.frame.clone(), || this.stream.set(None));
        }
    }
}

impl<S: Stream> Stream for Scoped<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        let this = self.project();
        match this.stream.as_pin_mut() {
            Some(stream) => LEASES.sync_scope(this.frame.clone(), || stream.poll_next(cx)),
            None => Poll::Ready(None),
        }
    }
}

fn frame(lease: Option<LeaseHandle>) -> Arc<Frame> {
    Arc::new(Frame {
        lease,
        outer: LEASES.try_with(Arc::clone).ok(),
    })
}

/// The lease in force that `elector` holds on `name` with this many slots, however deep.
pub(crate) fn held_around(elector: ElectorId, name: &LockName, slots: u32) -> Option<LeaseHandle> {
    LEASES
        .try_with(|innermost| {
            let mut next = Some(innermost);
            while let Some(frame) = next {
                let lease = frame.lease.as_ref().filter(|lease| {
                    let tenure = lease.inner();
                    tenure.elector == elector && tenure.slots == slots && tenure.id.name == *name
                });
                if lease.is_some() {
                    return lease.cloned();
                }
                next = frame.outer.as_ref();
            }
            None
        })
        .ok()
        .flatten()
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
