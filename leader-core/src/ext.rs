//! [`ElectorExt`]: what people call.

use std::future::ready;

use futures::future::Either;
use futures::{Stream, TryFutureExt};

use crate::campaign::{Campaign, CampaignOptions, IntoBodyEnd};
use crate::elector::Elector;
use crate::error::LeaderError;
use crate::event::Events;
use crate::guard::{self, Hold};
use crate::health::Health;
use crate::lease::{Lease, LeaseHandle};
use crate::name::LockName;
use crate::observe::Observing;
use crate::options::LeaseOptions;
use crate::outcome::{Acquisition, RunOutcome, Skipped};
use crate::scope;
use crate::state::LeaderState;
use crate::stream::{GuardedStream, GuardedTryStream};

/// What people call on an elector: `Arc<dyn Elector>`, `&E`, [`LocalElector`](crate::LocalElector) and the rest.
///
/// Names are given as anything that converts into a [`LockName`]: a `&str`, a `String`, a `LockName`.
pub trait ElectorExt: Elector {
    /// Stands for election and returns the lease, or `None` when somebody else led until the wait was over.
    ///
    /// Tasks of one elector that wait for the same name queue in memory, first come, first served. A `wait` of zero
    /// asks once, past the queue. Whoever has just released a name that others wait for lets them go first for ten
    /// milliseconds. Inside a guarded run of the same name this is a second, competing attempt; only runs nest.
    ///
    /// # Errors
    ///
    /// [`LeaderError::InvalidName`], [`LeaderError::ShutDown`], [`LeaderError::NoRuntime`] outside a Tokio runtime, or
    /// [`LeaderError::Backend`] when the store did not
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
        async move {
            let lease = elect(self, &name?, options).await?.elected();
            // A body is woken at its deadline. Who holds by hand may not look, and would be counted as a leader.
            #[cfg(feature = "metrics")]
            lease.iter().for_each(Lease::watch);
            Ok(lease)
        }
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
        run(self, name, options, body).map_ok(|run| match run {
            Run::Ended(value) => Some(value),
            Run::Skipped(_) => None,
        })
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
        run(self, name, options, body).map_ok(|run| match run {
            Run::Ended(Ok(value)) => RunOutcome::Elected(value),
            Run::Ended(Err(error)) => RunOutcome::ActionFailed(error),
            Run::Skipped(skipped) => RunOutcome::Skipped(skipped),
        })
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
                Ok(Stood::Leading(hold)) => {
                    guard::run(hold, |lease| body(Some(lease))).await.map(Some)
                }
                Ok(Stood::Skipped(_)) => Ok(None),
                Err(error @ LeaderError::Backend { .. }) => {
                    tracing::warn!(%error, "running without a lease");
                    Ok(Some(scope::without_lease(|| body(None)).await))
                }
                Err(error) => Err(error),
            }
        }
    }

    /// A stream that runs only inside a lease. Nothing is claimed until it is polled for the first time; then it stands
    /// for election, calls `make` once elected, and gives the items of the stream that `make` makes. The lease is held
    /// across items, and released when the stream ends or is dropped.
    ///
    /// ```
    /// use futures::{StreamExt, stream};
    /// use leader_core::{ElectorExt, LeaseOptions, LocalElector};
    /// use std::pin::pin;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), leader_core::LeaderError> {
    /// let elector = LocalElector::new();
    /// let options = LeaseOptions::builder().auto_extend(true).build()?;
    ///
    /// let mut orders = pin!(elector.guard_stream("order-feed", &options, |lease| {
    ///     stream::iter(1..=3).map(move |order| (order, lease.fence()))
    /// }));
    /// while let Some((order, fence)) = orders.next().await {
    ///     println!("order {order}, to be written with fencing token {fence}");
    /// }
    /// assert!(orders.outcome().is_some_and(leader_core::StreamOutcome::is_ended));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// **Why it ended** is told by [`GuardedStream::outcome`]: a stream that was skipped gives no items, and one whose
    /// lease was lost ends early, which its items alone cannot tell. When they are `Result`s, take
    /// [`guard_try_stream`](Self::guard_try_stream), which has such an end as its last item.
    ///
    /// **Between items** nobody polls, so nothing but auto-extension keeps the lease: without `auto_extend`, a consumer
    /// that takes longer than the lease loses it, and with it, a consumer that stops polling leads for as long as it
    /// keeps the stream, or until `max_tenure`. The lease's loss shows at the next poll. Work on an item that must not
    /// overlap with another leader's sends the [`fence`](LeaseHandle::fence) along, or checks
    /// [`ensure_valid`](LeaseHandle::ensure_valid) of [`GuardedStream::lease`].
    ///
    /// The stream has a clone of this elector and of the options: it can be moved into a spawned task. It is `Send` when
    /// `make` and what it makes are, whatever the items are. An elector behind `dyn` is shared as `Arc<dyn Elector>`, which can be cloned.
    ///
    /// # Errors
    ///
    /// None here; an invalid name, a failing store and the rest are told by the stream when it is polled.
    ///
    /// # Panics
    ///
    /// Polling panics only with the inner stream's own panic, after the release.
    ///
    /// # Cancellation safety
    ///
    /// The stream may be dropped at any point, also before it was polled and while it stands for election: the inner
    /// stream is dropped first, then the lease is released in the background. Dropping the future of
    /// [`next`](https://docs.rs/futures/latest/futures/stream/trait.StreamExt.html#method.next) loses nothing.
    fn guard_stream<'e, N, F, S>(
        &self,
        name: N,
        options: &LeaseOptions,
        make: F,
    ) -> GuardedStream<'e, S, F>
    where
        Self: Clone + 'e,
        N: TryInto<LockName, Error: Into<LeaderError>>,
        F: FnOnce(LeaseHandle) -> S,
        S: Stream,
    {
        let name = name.try_into().map_err(Into::into);
        GuardedStream::new(self.clone(), name, options.clone(), make)
    }

    /// As [`guard_stream`](Self::guard_stream), for a stream of `Result`s. A store that fails, a lost lease and a
    /// shutdown are its last item, through `From<LeaderError>`; and an error of the inner stream is the last item as
    /// well: like every other end, it drops the inner stream and releases the lease, before it is given.
    ///
    /// So a consumer that stops at the first error has all that it needs in the items. Somebody else leading is no
    /// error: the stream is empty then, and [`GuardedTryStream::outcome`] tells. It is `Send` when `make`, what it makes
    /// and the error are: an error is kept while the lease is released, and replaced when that turns out to be lost. For a
    /// stream whose errors are about
    /// single items, and that goes on after them, take [`guard_stream`](Self::guard_stream).
    ///
    /// ```
    /// use futures::{TryStreamExt, stream};
    /// use leader_core::{ElectorExt, LeaderError, LeaseOptions, LocalElector};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), LeaderError> {
    /// let elector = LocalElector::new();
    /// let options = LeaseOptions::builder().auto_extend(true).build()?;
    /// let sum: u32 = elector
    ///     .guard_try_stream("order-feed", &options, |_lease| stream::iter([Ok::<_, LeaderError>(40), Ok(2)]))
    ///     .try_fold(0, |sum, order| async move { Ok(sum + order) })
    ///     .await?;
    /// assert_eq!(sum, 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// None here; the stream's last item is the error.
    ///
    /// # Panics
    ///
    /// Polling panics only with the inner stream's own panic, after the release.
    ///
    /// # Cancellation safety
    ///
    /// As [`guard_stream`](Self::guard_stream).
    fn guard_try_stream<'e, N, F, S, T, E>(
        &self,
        name: N,
        options: &LeaseOptions,
        make: F,
    ) -> GuardedTryStream<'e, S, F>
    where
        Self: Clone + 'e,
        N: TryInto<LockName, Error: Into<LeaderError>>,
        F: FnOnce(LeaseHandle) -> S,
        S: Stream<Item = Result<T, E>>,
        E: From<LeaderError>,
    {
        let name = name.try_into().map_err(Into::into);
        GuardedTryStream::new(self.clone(), name, options.clone(), make)
    }

    /// Leads for long: stands for election until it is stopped, runs the body that `make` makes while it leads, and
    /// stands again when it has lost. It begins at once, in a task of its own, and never ends by itself.
    ///
    /// ```
    /// use leader_core::{ElectorExt, LeaseHandle, LeaseOptions, LocalElector};
    /// use std::time::Duration;
    ///
    /// async fn run_scheduler(lease: LeaseHandle) {
    ///     let stop = lease.cancellation_token();
    ///     while !stop.is_cancelled() {
    ///         // .. one step, with `lease.fence()` sent along ..
    ///         tokio::time::sleep(Duration::from_millis(1)).await;
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), leader_core::LeaderError> {
    /// let elector = LocalElector::new();
    /// let options = LeaseOptions::builder().lease(Duration::from_secs(10)).build()?;
    /// let campaign = elector.campaign("scheduler", &options, |lease| async move {
    ///     run_scheduler(lease).await
    /// });
    /// # while !campaign.is_leader() { tokio::task::yield_now().await; }
    /// println!("leading: {}", campaign.is_leader());
    /// campaign.resign().await?; // before a deploy: somebody else leads now
    /// campaign.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// **The body** is given the lease. Its [`cancellation_token`](LeaseHandle::cancellation_token) fires when the body
    /// is to stop. When that is to hand over ([`Campaign::resign`], [`Campaign::stop`], a shutdown), the lease is kept
    /// while the body comes to its end, for the [grace](CampaignOptions::grace) at most; then it is dropped. When the
    /// lease is lost, the body is dropped at once and never polled again, or, under
    /// [`OnLost::Notify`](crate::OnLost::Notify), is given the same grace. In either case the body ends first, then the
    /// slot is given back, then a waiter is told. [`shutdown`](Self::shutdown) has a bound of its own, half of which is
    /// for bodies.
    ///
    /// **`make`** is called once for each tenure: what it hands to its bodies is cloned for each of them. A body that
    /// ends by itself is followed by a pause, or by the end of the campaign: see [`WhenBodyEnds`](crate::WhenBodyEnds). A
    /// panic is caught, told, and counts as a failure.
    ///
    /// **The options** are [`LeaseOptions`] or [`CampaignOptions`]. The lease is always extended, and `wait` plays no
    /// part: the stand has no end, and is quiet. While the store fails, it is asked again at a growing pause, half a lease
    /// or five seconds at most; [`CampaignStatus::failure`](crate::CampaignStatus::failure) says how it fails.
    ///
    /// The campaign has a clone of this elector. It runs on the caller's runtime; one that blocks its threads keeps its
    /// lease when the elector has a runtime of its own, and then cannot be stopped: see [`health`](Self::health).
    ///
    /// # Errors
    ///
    /// None here, and no panic. A campaign that cannot begin, for an invalid name or outside a runtime, is over at once,
    /// and says so: [`Campaign::ended`], [`Campaign::status`].
    fn campaign<N, F, Fut>(&self, name: N, options: impl Into<CampaignOptions>, make: F) -> Campaign
    where
        Self: Clone + 'static,
        N: TryInto<LockName, Error: Into<LeaderError>>,
        F: FnMut(LeaseHandle) -> Fut + Send + 'static,
        Fut: Future<Output: IntoBodyEnd> + Send + 'static,
    {
        let name = name.try_into().map_err(Into::into);
        Campaign::begin(self.clone(), name, options.into(), make)
    }

    /// Who leads, told whenever that changes, for a process that does not stand itself. For people and dashboards,
    /// never to decide whether to run.
    ///
    /// ```
    /// use futures::StreamExt;
    /// use leader_core::{ElectorExt, LeaseOptions, LocalElector};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), leader_core::LeaderError> {
    /// let elector = LocalElector::new();
    /// let mut leaders = elector.node("dashboard").observe("scheduler");
    /// assert!(leaders.next().await.unwrap()?.holders().is_empty());
    ///
    /// let lease = elector.try_acquire("scheduler", &LeaseOptions::default()).await?.unwrap();
    /// let state = leaders.next().await.unwrap()?;
    /// assert_eq!(state.holders()[0].fence(), lease.fence());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The first item is the present state; the others come when a slot is taken, given back or over, not with each
    /// extension. Only the latest is told: a reader that is slow does not see what came in between. Grants and releases are
    /// told by the store, and a lease that ran out is looked for when it should have. Since what is told may be lost, the
    /// state is looked at every ten seconds at the least. From a store of others' making that tells of releases only, a
    /// grant is looked for soon after a release, and every two seconds at the least. A name that nobody observes costs the
    /// store nothing.
    ///
    /// # Errors
    ///
    /// A store that does not answer is an item, once, and the stream goes on; the next item is the state once it answers
    /// again. An invalid name is the only item. The stream ends when the elector is shut down.
    fn observe<N>(&self, name: N) -> Observing
    where
        Self: Clone + 'static,
        N: TryInto<LockName, Error: Into<LeaderError>>,
    {
        Observing::begin(self.clone(), name.try_into().map_err(Into::into))
    }

    /// Whether this process is well, for a probe: it is, unless something of it still works under a lease that cannot be
    /// proved valid any more. Followers are healthy, also while the store is down. No I/O.
    fn health(&self) -> Health {
        self.examine()
    }

    /// Reads who leads. For people and dashboards, never to decide whether to run. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`LeaderError::InvalidName`], [`LeaderError::ShutDown`], [`LeaderError::NoRuntime`], [`LeaderError::Backend`].
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
    /// [`LeaderError::InvalidName`], [`LeaderError::ShutDown`], [`LeaderError::NoRuntime`], [`LeaderError::Backend`].
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
    /// It is done in a task of its own: dropped half-way, it goes on in the background. Outside a runtime nobody can be
    /// asked or waited for; what is held is then lost and released at once, as far as the store can without waiting.
    fn shutdown(&self) -> impl Future<Output = ()> {
        self.close()
    }
}

impl<E: Elector + ?Sized> ElectorExt for E {}

enum Run<T> {
    Ended(T),
    Skipped(Skipped),
}

/// No async function, whose future would have room for the name as it was given and as it is used.
fn run<E, F, Fut>(
    elector: &E,
    name: Result<LockName, LeaderError>,
    options: &LeaseOptions,
    body: F,
) -> impl Future<Output = Result<Run<Fut::Output>, LeaderError>>
where
    E: Elector + ?Sized,
    F: FnOnce(LeaseHandle) -> Fut,
    Fut: Future,
{
    let name = match name {
        Ok(name) => name,
        Err(error) => return Either::Right(ready(Err(error))),
    };
    Either::Left(async move {
        let hold = match stand(elector, name, options).await? {
            Stood::Leading(hold) => hold,
            Stood::Skipped(skipped) => return Ok(Run::Skipped(skipped)),
        };
        guard::run(hold, body).await.map(Run::Ended)
    })
}

async fn elect<E: Elector + ?Sized>(
    elector: &E,
    name: &LockName,
    options: &LeaseOptions,
) -> Result<Acquisition, LeaderError> {
    // Where all is had at once, nothing else would let other tasks of this thread run.
    tokio::task::coop::consume_budget().await;
    match elector.acquire_now(name, options) {
        Some(acquired) => acquired,
        None => elector.acquire(name, options).await,
    }
}

/// How standing for a guarded run ended.
pub(crate) enum Stood {
    /// Elected, or inside a run of the same name and slot count on the same elector.
    Leading(Hold),
    Skipped(Skipped),
}

pub(crate) async fn stand<E: Elector + ?Sized>(
    elector: &E,
    name: LockName,
    options: &LeaseOptions,
) -> Result<Stood, LeaderError> {
    if let Some(outer) = scope::held_around(elector.elector_id(), &name, options.slots()) {
        return Ok(Stood::Leading(Hold::Outer(outer)));
    }
    Ok(match elect(elector, &name, options).await? {
        Acquisition::Elected(lease) => Stood::Leading(Hold::Own(lease)),
        Acquisition::Skipped(skipped) => Stood::Skipped(skipped),
    })
}
