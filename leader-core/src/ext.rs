//! [`ElectorExt`]: what people call.

use crate::elector::Elector;
use crate::error::LeaderError;
use crate::event::Events;
use crate::guard;
use crate::lease::{Lease, LeaseHandle};
use crate::name::LockName;
use crate::options::LeaseOptions;
use crate::outcome::{Acquisition, RunOutcome, Skipped};
use crate::scope;
use crate::state::LeaderState;

/// What people call on an elector: `Arc<dyn Elector>`, `&E`, [`LocalElector`](crate::LocalElector) and the rest.
///
/// Names are given as anything that converts into a [`LockName`]: a `&str`, a `String`, a `LockName`.
pub trait ElectorExt: Elector {
    /// Stands for election and returns the lease, or `None` when somebody else led until the wait was over.
    ///
    /// Tasks of one elector that wait for the same name queue in memory, first come, first served. A `wait` of zero
    /// asks once, past the queue. Inside a guarded run of the same name this is a second, competing attempt; only
    /// runs nest.
    ///
    /// # Errors
    ///
    /// [`LeaderError::InvalidName`], [`LeaderError::ShutDown`], or [`LeaderError::Backend`] when the store did not
    /// answer, at the latest one command timeout after the wait. A failing store is never reported as `None`.
    ///
    /// # Cancellation safety
    ///
    /// Dropped at any point, the attempt leaves nothing behind: a claim that was in flight is undone in the
    /// background.
    fn try_acquire<N>(
        &self,
        name: N,
        options: &LeaseOptions,
    ) -> impl Future<Output = Result<Option<Lease>, LeaderError>>
    where
        N: TryInto<LockName, Error: Into<LeaderError>>,
    {
        let name = name.try_into().map_err(Into::into);
        async move { Ok(self.acquire(&name?, options).await?.elected()) }
    }

    /// Runs `body` if elected, and returns what it returned; `None` when somebody else led until the wait was over.
    ///
    /// The body runs inside the lease: it is dropped when the lease is lost (see
    /// [`OnLost`](crate::OnLost)), [`current_lease`](crate::current_lease()) is its lease, and when it ends, the slot
    /// is free before this returns. A run of the same name and slot count inside the body runs inside the same lease;
    /// its other options are not used.
    ///
    /// ```
    /// use leader_core::{ElectorExt, LeaseOptions, LocalElector};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), leader_core::LeaderError> {
    /// let elector = LocalElector::new();
    /// let closed: Option<u64> = elector
    ///     .run_if_leader("invoice-close", &LeaseOptions::default(), |lease| async move {
    ///         lease.fence().get()
    ///     })
    ///     .await?;
    /// assert!(closed.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire), and [`LeaderError::LeaseLost`] when the lease was lost before the body
    /// ended. A release that fails is no error: it is logged, told as an event, and tried again in the background.
    ///
    /// # Panics
    ///
    /// Only with the body's own panic, after the release.
    ///
    /// # Cancellation safety
    ///
    /// Dropped at any point, the body is dropped first, then the lease is released in the background.
    fn run_if_leader<N, F, Fut>(
        &self,
        name: N,
        options: &LeaseOptions,
        body: F,
    ) -> impl Future<Output = Result<Option<Fut::Output>, LeaderError>>
    where
        N: TryInto<LockName, Error: Into<LeaderError>>,
        F: FnOnce(LeaseHandle) -> Fut,
        Fut: Future,
    {
        let name = name.try_into().map_err(Into::into);
        async move {
            match run(self, name?, options, body).await? {
                Run::Ended(value) => Ok(Some(value)),
                Run::Skipped(_) => Ok(None),
            }
        }
    }

    /// Runs a body that can fail, if elected, and tells the three ends apart: elected, skipped, and the body's own
    /// error.
    ///
    /// ```
    /// use leader_core::{ElectorExt, LeaseOptions, LocalElector, RunOutcome};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), leader_core::LeaderError> {
    /// let elector = LocalElector::new();
    /// let options = LeaseOptions::default();
    /// let outcome = elector
    ///     .run_if_leader_result("invoice-close", &options, |_lease| async { "12".parse::<u64>() })
    ///     .await?;
    /// match outcome {
    ///     RunOutcome::Elected(count) => println!("closed {count}"),
    ///     RunOutcome::Skipped(skipped) => println!("led by {:?}", skipped.holder()),
    ///     RunOutcome::ActionFailed(error) => println!("not closed: {error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run_if_leader`](Self::run_if_leader). A lease that was lost is [`LeaderError::LeaseLost`] even when the
    /// body had returned an error of its own.
    ///
    /// # Panics
    ///
    /// Only with the body's own panic, after the release.
    ///
    /// # Cancellation safety
    ///
    /// As [`run_if_leader`](Self::run_if_leader).
    fn run_if_leader_result<N, F, Fut, T, E>(
        &self,
        name: N,
        options: &LeaseOptions,
        body: F,
    ) -> impl Future<Output = Result<RunOutcome<T, E>, LeaderError>>
    where
        N: TryInto<LockName, Error: Into<LeaderError>>,
        F: FnOnce(LeaseHandle) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let name = name.try_into().map_err(Into::into);
        async move {
            Ok(match run(self, name?, options, body).await? {
                Run::Ended(Ok(value)) => RunOutcome::Elected(value),
                Run::Ended(Err(error)) => RunOutcome::ActionFailed(error),
                Run::Skipped(skipped) => RunOutcome::Skipped(skipped),
            })
        }
    }

    /// As [`run_if_leader`](Self::run_if_leader), but *fails open*: when the store cannot say who leads, the body runs
    /// all the same, once, without a lease. For work that had better be done twice than not at all.
    ///
    /// The body is given the lease, or `None` when it runs without one; then
    /// [`current_lease`](crate::current_lease()) is `None` too, and [`ensure_leader`](crate::ensure_leader) fails.
    ///
    /// # Errors
    ///
    /// As [`run_if_leader`](Self::run_if_leader), but not [`LeaderError::Backend`].
    ///
    /// # Panics
    ///
    /// Only with the body's own panic, after the release.
    ///
    /// # Cancellation safety
    ///
    /// As [`run_if_leader`](Self::run_if_leader).
    fn run_fail_open<N, F, Fut>(
        &self,
        name: N,
        options: &LeaseOptions,
        body: F,
    ) -> impl Future<Output = Result<Option<Fut::Output>, LeaderError>>
    where
        N: TryInto<LockName, Error: Into<LeaderError>>,
        F: FnOnce(Option<LeaseHandle>) -> Fut,
        Fut: Future,
    {
        let name = name.try_into().map_err(Into::into);
        async move {
            match stand(self, name?, options).await {
                Ok(Stood::Elected(lease)) => {
                    guard::run(lease, |lease| body(Some(lease))).await.map(Some)
                }
                Ok(Stood::Within(lease)) => guard::run_nested(lease, |lease| body(Some(lease)))
                    .await
                    .map(Some),
                Ok(Stood::Skipped(_)) => Ok(None),
                Err(error @ LeaderError::Backend { .. }) => {
                    tracing::warn!(%error, "running without a lease");
                    Ok(Some(scope::without_lease(|| body(None)).await))
                }
                Err(error) => Err(error),
            }
        }
    }

    /// Reads who leads. For people and dashboards, never to decide whether to run. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`LeaderError::InvalidName`], [`LeaderError::ShutDown`], [`LeaderError::Backend`].
    ///
    /// # Cancellation safety
    ///
    /// Dropping the future changes nothing.
    fn state<N>(&self, name: N) -> impl Future<Output = Result<LeaderState, LeaderError>>
    where
        N: TryInto<LockName, Error: Into<LeaderError>>,
    {
        let name = name.try_into().map_err(Into::into);
        async move { self.inspect(&name?).await }
    }

    /// An operator's tool: frees every slot of a name, whoever holds it, and wakes a waiter. Answers how many were
    /// taken.
    ///
    /// The holders lose their lease, but learn of it only at their next extension or at their deadline; until then
    /// both they and a successor may believe that they lead. Fencing tokens keep the old ones out.
    ///
    /// # Errors
    ///
    /// [`LeaderError::InvalidName`], [`LeaderError::ShutDown`], [`LeaderError::Backend`].
    ///
    /// # Cancellation safety
    ///
    /// Dropped half-way, the slots may have been freed or not.
    fn force_release<N>(&self, name: N) -> impl Future<Output = Result<u32, LeaderError>>
    where
        N: TryInto<LockName, Error: Into<LeaderError>>,
    {
        let name = name.try_into().map_err(Into::into);
        async move { self.evict(&name?).await }
    }

    /// What happens from now on in this elector's own elections. The stream ends when the elector is shut down.
    fn events(&self) -> Events {
        self.subscribe()
    }

    /// Ends everything, within the grace period of the elector (5 s by default): new attempts and waiting ones get
    /// [`LeaderError::ShutDown`]; bodies under [`OnLost::Cancel`](crate::OnLost::Cancel) are dropped; the others, and
    /// holders by hand, are asked to come to an end by their cancellation token and keep their lease meanwhile; slots
    /// are given back; connections are closed.
    ///
    /// Whoever has not ended by then loses the lease with [`LossReason::ShutDown`](crate::LossReason::ShutDown). Its
    /// slot is freed, unless a guarded body still runs under it: that slot ends with its lease.
    ///
    /// # Cancellation safety
    ///
    /// Dropped half-way, the elector stays closed to new attempts; call it again to finish.
    fn shutdown(&self) -> impl Future<Output = ()> {
        self.close()
    }
}

impl<E: Elector + ?Sized> ElectorExt for E {}

enum Run<T> {
    Ended(T),
    Skipped(Skipped),
}

async fn run<E, F, Fut>(
    elector: &E,
    name: LockName,
    options: &LeaseOptions,
    body: F,
) -> Result<Run<Fut::Output>, LeaderError>
where
    E: Elector + ?Sized,
    F: FnOnce(LeaseHandle) -> Fut,
    Fut: Future,
{
    match stand(elector, name, options).await? {
        Stood::Elected(lease) => guard::run(lease, body).await.map(Run::Ended),
        Stood::Within(lease) => guard::run_nested(lease, body).await.map(Run::Ended),
        Stood::Skipped(skipped) => Ok(Run::Skipped(skipped)),
    }
}

/// How standing for a guarded run ended.
pub(crate) enum Stood {
    Elected(Lease),
    /// A run of the same name and slot count on the same elector is around this one.
    Within(LeaseHandle),
    Skipped(Skipped),
}

pub(crate) async fn stand<E: Elector + ?Sized>(
    elector: &E,
    name: LockName,
    options: &LeaseOptions,
) -> Result<Stood, LeaderError> {
    if let Some(outer) = scope::held_around(elector.elector_id(), &name, options.slots()) {
        return Ok(Stood::Within(outer));
    }
    Ok(match elector.acquire(&name, options).await? {
        Acquisition::Elected(lease) => Stood::Elected(lease),
        Acquisition::Skipped(skipped) => Stood::Skipped(skipped),
    })
}
