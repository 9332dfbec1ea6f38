//! [`Elector`]: the object-safe trait. `Arc<dyn Elector>` lives in a service's state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_util::sync::CancellationToken;

use crate::engine::BoxFuture;
use crate::error::LeaderError;
use crate::event::Events;
use crate::health::Health;
use crate::name::LockName;
use crate::node::NodeId;
use crate::options::LeaseOptions;
use crate::outcome::Acquisition;
use crate::state::LeaderState;
use crate::store::{HintSender, Watching};

/// A candidate on some store, in the form that fits behind `dyn`.
///
/// Call the methods of [`ElectorExt`](crate::ElectorExt), which every elector has; these here are what they stand on,
/// under names of their own so that importing both traits is never ambiguous. Backends do not implement this trait:
/// they implement [`LeaseStore`](crate::store::LeaseStore), and [`StoreElector`](crate::StoreElector) does the rest.
///
/// `&E`, `Box<E>` and `Arc<E>` are electors when `E` is.
pub trait Elector: Send + Sync {
    /// Who this candidate is, for people.
    fn node_id(&self) -> &NodeId;

    /// Which candidate this is, for the library: clones are the same one.
    fn elector_id(&self) -> ElectorId;

    /// Stands for election; see [`ElectorExt::try_acquire`](crate::ElectorExt::try_acquire).
    ///
    /// # Errors
    ///
    /// As there.
    fn acquire<'a>(
        &'a self,
        name: &'a LockName,
        options: &'a LeaseOptions,
    ) -> BoxFuture<'a, Result<Acquisition, LeaderError>>;

    /// As [`acquire`](Self::acquire), for an election that can be had without waiting: on a store in memory, where nobody
    /// stands in the way. `None` when it cannot, in which case nothing was done, and `acquire` is the way.
    fn acquire_now(
        &self,
        name: &LockName,
        options: &LeaseOptions,
    ) -> Option<Result<Acquisition, LeaderError>> {
        let _ = (name, options);
        None
    }

    /// Reads who leads; see [`ElectorExt::state`](crate::ElectorExt::state).
    ///
    /// # Errors
    ///
    /// As there.
    fn inspect<'a>(&'a self, name: &'a LockName)
    -> BoxFuture<'a, Result<LeaderState, LeaderError>>;

    /// Takes a name from its holders; see [`ElectorExt::force_release`](crate::ElectorExt::force_release).
    ///
    /// # Errors
    ///
    /// As there.
    fn evict<'a>(&'a self, name: &'a LockName) -> BoxFuture<'a, Result<u32, LeaderError>>;

    /// This process's own events; see [`ElectorExt::events`](crate::ElectorExt::events).
    fn subscribe(&self) -> Events;

    /// Whether this process can prove that it leads where it believes so; see
    /// [`ElectorExt::health`](crate::ElectorExt::health).
    fn examine(&self) -> Health;

    /// Tells `hints` about releases of a name, and about grants where the store can, until the returned [`Watching`] is
    /// dropped; what [`ElectorExt::observe`](crate::ElectorExt::observe) stands on. Hints may be lost.
    ///
    /// # Errors
    ///
    /// [`LeaderError::ShutDown`], [`LeaderError::NoRuntime`], [`LeaderError::Backend`].
    fn listen<'a>(
        &'a self,
        name: &'a LockName,
        hints: HintSender,
    ) -> BoxFuture<'a, Result<Watching, LeaderError>>;

    /// A token that fires when this elector begins to shut down. Cancelling it does nothing to the elector.
    fn closing(&self) -> CancellationToken;

    /// Ends everything; see [`ElectorExt::shutdown`](crate::ElectorExt::shutdown).
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Tells candidates apart: clones of an elector share it, and no two electors of a process have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElectorId(u64);

impl ElectorId {
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Implements [`Elector`] by handing every call to an inner elector.
#[doc(hidden)]
#[macro_export]
macro_rules! __delegate_elector {
    ($(#[$inline:ident])? $({$($generics:tt)*})? $elector:ty, |$this:ident| $inner:expr) => {
        impl $(<$($generics)*>)? $crate::Elector for $elector {
            $(#[$inline])?
            fn node_id(&self) -> &$crate::NodeId {
                let $this = self;
                $crate::Elector::node_id(&$inner)
            }

            $(#[$inline])?
            fn elector_id(&self) -> $crate::ElectorId {
                let $this = self;
                $crate::Elector::elector_id(&$inner)
            }

            $(#[$inline])?
            fn acquire<'a>(
                &'a self,
                name: &'a $crate::LockName,
                options: &'a $crate::LeaseOptions,
            ) -> $crate::BoxFuture<'a, ::std::result::Result<$crate::Acquisition, $crate::LeaderError>> {
                let $this = self;
                $crate::Elector::acquire(&$inner, name, options)
            }

            $(#[$inline])?
            fn acquire_now(
                &self,
                name: &$crate::LockName,
                options: &$crate::LeaseOptions,
            ) -> ::std::option::Option<::std::result::Result<$crate::Acquisition, $crate::LeaderError>> {
                let $this = self;
                $crate::Elector::acquire_now(&$inner, name, options)
            }

            $(#[$inline])?
            fn inspect<'a>(
                &'a self,
                name: &'a $crate::LockName,
            ) -> $crate::BoxFuture<'a, ::std::result::Result<$crate::LeaderState, $crate::LeaderError>> {
                let $this = self;
                $crate::Elector::inspect(&$inner, name)
            }

            $(#[$inline])?
            fn evict<'a>(
                &'a self,
                name: &'a $crate::LockName,
            ) -> $crate::BoxFuture<'a, ::std::result::Result<u32, $crate::LeaderError>> {
                let $this = self;
                $crate::Elector::evict(&$inner, name)
            }

            $(#[$inline])?
            fn subscribe(&self) -> $crate::Events {
                let $this = self;
                $crate::Elector::subscribe(&$inner)
            }

            $(#[$inline])?
            fn examine(&self) -> $crate::Health {
                let $this = self;
                $crate::Elector::examine(&$inner)
            }

            $(#[$inline])?
            fn listen<'a>(
                &'a self,
                name: &'a $crate::LockName,
                hints: $crate::store::HintSender,
            ) -> $crate::BoxFuture<'a, ::std::result::Result<$crate::store::Watching, $crate::LeaderError>>
            {
                let $this = self;
                $crate::Elector::listen(&$inner, name, hints)
            }

            $(#[$inline])?
            fn closing(&self) -> $crate::CancellationToken {
                let $this = self;
                $crate::Elector::closing(&$inner)
            }

            $(#[$inline])?
            fn close(&self) -> $crate::BoxFuture<'_, ()> {
                let $this = self;
                $crate::Elector::close(&$inner)
            }
        }
    };
}

pub(crate) use __delegate_elector as delegate_elector;

delegate_elector!({E: Elector + ?Sized} &E, |this| **this);
delegate_elector!({E: Elector + ?Sized} Box<E>, |this| **this);
delegate_elector!({E: Elector + ?Sized} Arc<E>, |this| **this);
