//! A [`Tenure`]: one grant to its end. Its deadline and its phase are what everything else asks.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::meter::Held;
use crate::elector::ElectorId;
use crate::error::{LeaderError, LossReason};
use crate::event::TenureId;
use crate::health::Unproved;
use crate::label::Label;
use crate::options::{LeaseOptions, OnLost};
use crate::token::Token;

/// A boxed future that can be sent to another thread.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A future that is made where it then stays, once optimised. Those that talk to a store have a kilobyte and more, which
/// would be moved into the box, and before that into whatever is called to box them.
pub(super) fn in_place<'a, F>(make: impl FnOnce() -> F) -> BoxFuture<'a, F::Output>
where
    F: Future + Send + 'a,
{
    let future: Box<F> = Box::write(Box::new_uninit(), make());
    Box::into_pin(future)
}

/// How long a candidate may rely on a lease of `lease`, counted from before the request was sent: the drift that two
/// clocks may have against each other, 1 % of the lease, and 2 ms for their granularity, are taken off. This is
/// Redlock's reckoning.
pub(crate) fn validity(lease: Duration) -> Duration {
    lease.saturating_sub(drift(lease))
}

/// How long a store may keep a lease of `lease`, by the candidate's clock: the same drift, the other way.
pub(crate) fn kept(lease: Duration) -> Duration {
    lease + drift(lease)
}

fn drift(lease: Duration) -> Duration {
    lease / 100 + Duration::from_millis(2)
}

/// What a lease asks of the engine that granted it, whatever the store.
pub(crate) trait Steward: Send + Sync {
    fn extend(
        self: Arc<Self>,
        tenure: Arc<Tenure>,
        lease: Duration,
    ) -> BoxFuture<'static, Result<(), LeaderError>>;

    /// Ends a tenure that was closed, and waits until it is over in the store or its release goes on behind.
    fn release(self: Arc<Self>, tenure: Arc<Tenure>)
    -> BoxFuture<'static, Result<(), LeaderError>>;

    /// As [`release`](Self::release), without waiting; `None` when this cannot be done.
    fn release_now(&self, tenure: &Arc<Tenure>, now: Instant) -> Option<Result<(), LeaderError>>;

    /// Ends a tenure that was closed, from where nothing can be awaited.
    fn release_behind(self: Arc<Self>, tenure: &Arc<Tenure>);

    /// Sees to it that the tenure's signal fires at its deadline.
    fn watch_deadline(self: Arc<Self>, tenure: &Arc<Tenure>);

    /// Told once, when a tenure becomes lost.
    fn lost(&self, tenure: &Tenure, reason: LossReason);
}

/// One grant to its end, shared by the lease, its handles, the guard and the keeper.
pub(crate) struct Tenure {
    /// Unique among the tenures of one engine.
    pub(crate) key: u64,
    pub(crate) elector: ElectorId,
    pub(crate) id: TenureId,
    pub(crate) token: Token,
    pub(crate) slots: u32,
    pub(crate) lease: Duration,
    pub(crate) min_lease: Duration,
    pub(crate) auto_extend: bool,
    pub(crate) on_lost: OnLost,
    pub(crate) label: Label,
    held: Held,
    pub(crate) granted: Instant,
    /// The end of the longest tenure, if there is one.
    pub(crate) last_end: Option<Instant>,
    /// Set when a claim of this token was sent whose answer was not seen: one may still arrive.
    pub(crate) uncertain: bool,
    /// How many releases were sent that took effect, or may have.
    pub(crate) releases: AtomicU32,
    pub(crate) runtime: Handle,
    pub(crate) steward: Arc<dyn Steward>,
    pub(crate) times: Times,
    /// One request in flight for a lease at most.
    pub(crate) gate: Semaphore,
    /// A body runs under this tenure: it ends before the slot is given up.
    pub(crate) guarded: AtomicBool,
    stopping: AtomicBool,
    /// Set once the holder has let go: nobody works under this tenure any more, whatever becomes of its release.
    let_go: AtomicBool,
    lost_at: OnceLock<Instant>,
    phase: AtomicU8,
    /// Made when somebody first asks: most short bodies never do.
    signals: OnceLock<Signals>,
}

/// What tells of a tenure's end to those who wait for it.
struct Signals {
    /// Fires when the tenure has ended.
    ended: CancellationToken,
    /// A child of `ended`: fires when the tenure has ended or is asked to.
    signal: CancellationToken,
}

impl Default for Signals {
    fn default() -> Self {
        let ended = CancellationToken::new();
        let signal = ended.child_token();
        Self { ended, signal }
    }
}

/// The times of a lease, as nanoseconds after its claim was sent, so that reading them takes no lock.
pub(crate) struct Times {
    base: Instant,
    /// Until when this candidate relies on the lease.
    deadline: AtomicU64,
    /// Until when the store may keep it: a release is worth sending until then.
    store_end: AtomicU64,
    /// Where it stands on the keeper's agenda, or `NEVER`.
    look: AtomicU64,
}

/// No time: nobody lives to see it.
const NEVER: u64 = u64::MAX;

impl Times {
    /// Of a lease of this length that was asked for at `sent` and granted by `answered`.
    pub(crate) fn new(lease: Duration, sent: Instant, answered: Instant) -> Self {
        let executed = answered.saturating_duration_since(sent);
        Self {
            base: sent,
            deadline: AtomicU64::new(nanos(validity(lease))),
            store_end: AtomicU64::new(nanos(executed + kept(lease))),
            look: AtomicU64::new(NEVER),
        }
    }

    fn nanos(&self, instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(self.base))
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.base + Duration::from_nanos(self.deadline.load(Ordering::Acquire))
    }

    pub(crate) fn store_end(&self) -> Instant {
        self.base + Duration::from_nanos(self.store_end.load(Ordering::Acquire))
    }

    /// When the keeper looks at it next, as noted last. For the keeper, whose lock keeps the two in order.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        let nanos = self.look.load(Ordering::Relaxed);
        (nanos != NEVER).then(|| self.base + Duration::from_nanos(nanos))
    }

    pub(crate) fn note_look(&self, at: Option<Instant>) {
        let nanos = at.map_or(NEVER, |at| self.nanos(at));
        self.look.store(nanos, Ordering::Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// `phase` is one of these, or `LOST` plus a reason.
const HELD: u8 = 0;
const CLOSED: u8 = 1;
const LOST: u8 = 2;
const REASONS: [LossReason; 6] = [
    LossReason::Expired,
    LossReason::Taken,
    LossReason::Deleted,
    LossReason::MaxTenure,
    LossReason::ShutDown,
    LossReason::Released,
];

fn lost_phase(reason: LossReason) -> u8 {
    match reason {
        LossReason::Expired => LOST,
        LossReason::Taken => LOST + 1,
        LossReason::Deleted => LOST + 2,
        LossReason::MaxTenure => LOST + 3,
        LossReason::ShutDown => LOST + 4,
        LossReason::Released => LOST + 5,
    }
}

/// Where a tenure stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Valid, as of the last look at the clock.
    Held,
    /// Its holder has let go of it.
    Closed,
    /// It could not be proved valid any more.
    Lost(LossReason),
}

impl Tenure {
    #[expect(
        clippy::too_many_arguments,
        reason = "made in one place, from a grant and its options"
    )]
    pub(crate) fn new(
        key: u64,
        elector: ElectorId,
        id: TenureId,
        token: Token,
        uncertain: bool,
        options: &LeaseOptions,
        (label, held): (Label, Held),
        (granted, times): (Instant, Times),
        runtime: Handle,
        steward: Arc<dyn Steward>,
    ) -> Self {
        Self {
            key,
            elector,
            id,
            token,
            slots: options.slots(),
            lease: options.lease(),
            min_lease: options.min_lease(),
            auto_extend: options.auto_extend(),
            on_lost: options.on_lost(),
            label,
            held,
            granted,
            last_end: options
                .max_tenure()
                .and_then(|longest| granted.checked_add(longest)),
            uncertain,
            releases: AtomicU32::new(0),
            runtime,
            steward,
            times,
            gate: Semaphore::new(1),
            guarded: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            let_go: AtomicBool::new(false),
            lost_at: OnceLock::new(),
            phase: AtomicU8::new(HELD),
            signals: OnceLock::new(),
        }
    }

    /// Fires when the tenure has ended: marked as lost, or let go of.
    pub(crate) fn has_ended(&self) -> &CancellationToken {
        &self.signals().ended
    }

    /// Fires when the tenure has ended, or is asked to come to an end.
    pub(crate) fn signal(&self) -> &CancellationToken {
        &self.signals().signal
    }

    fn signals(&self) -> &Signals {
        self.signals.get().unwrap_or_else(|| {
            let signals = self.signals.get_or_init(Signals::default);
            // Who ends the tenure writes its phase, then looks for the signals. As this is a write too, one of the two
            // comes after the other and sees what was done before it: no end is missed.
            if self.phase.fetch_or(HELD, Ordering::AcqRel) != HELD {
                signals.ended.cancel();
            }
            signals
        })
    }

    /// Tells those who wait for the tenure's end, once its phase is no longer `HELD`.
    fn tell_ended(&self) {
        if let Some(signals) = self.signals.get() {
            signals.ended.cancel();
        }
    }

    /// Looks at the clock, and where the tenure stands by it.
    pub(crate) fn phase(&self) -> Phase {
        self.phase_at(Instant::now())
    }

    /// As [`phase`](Self::phase), for who has just looked at the clock.
    #[inline]
    pub(crate) fn phase_at(&self, now: Instant) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            HELD if now < self.end() => Phase::Held,
            HELD => {
                self.lose(self.reason_at_deadline());
                self.phase_now()
            }
            phase => decode(phase),
        }
    }

    /// Where the tenure stands by the last look at the clock.
    #[inline]
    pub(crate) fn phase_now(&self) -> Phase {
        decode(self.phase.load(Ordering::Acquire))
    }

    /// The moment after which the lease is not relied upon: its deadline, or the end of the longest tenure.
    #[inline]
    pub(crate) fn end(&self) -> Instant {
        let deadline = self.times.deadline();
        self.last_end.map_or(deadline, |last| deadline.min(last))
    }

    /// For how long the store is to be asked to keep the lease, when that much is wanted: not beyond the longest tenure.
    pub(crate) fn within_tenure(&self, lease: Duration) -> Duration {
        self.last_end.map_or(lease, |last| {
            let left = last.saturating_duration_since(Instant::now());
            lease.min(left).max(LeaseOptions::MIN_LEASE)
        })
    }

    fn reason_at_deadline(&self) -> LossReason {
        match self.last_end {
            Some(last) if last <= self.times.deadline() => LossReason::MaxTenure,
            _ => LossReason::Expired,
        }
    }

    pub(crate) fn ensure_valid(&self) -> Result<(), LeaderError> {
        self.valid().map_err(|reason| self.lost_error(reason))
    }

    /// As [`ensure_valid`](Self::ensure_valid), with the reason alone.
    pub(crate) fn valid(&self) -> Result<(), LossReason> {
        match self.phase() {
            Phase::Held => Ok(()),
            Phase::Closed => Err(LossReason::Released),
            Phase::Lost(reason) => Err(reason),
        }
    }

    pub(crate) fn lost_error(&self, reason: LossReason) -> LeaderError {
        LeaderError::LeaseLost {
            name: self.id.name.clone(),
            fence: self.id.fence,
            reason,
        }
    }

    /// Marks a held tenure as lost. The first to do so tells.
    pub(crate) fn lose(&self, reason: LossReason) {
        let lost = self.phase.compare_exchange(
            HELD,
            lost_phase(reason),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if lost.is_ok() {
            let _ = self.lost_at.set(Instant::now());
            self.held.end();
            self.steward.lost(self, reason);
            self.tell_ended();
        }
    }

    /// The holder lets go `now`. `Ok` when the lease was valid at this moment; from here on it cannot be lost any more.
    pub(crate) fn close(&self, now: Instant) -> Result<(), LossReason> {
        if self.phase_at(now) == Phase::Held {
            let closed =
                self.phase
                    .compare_exchange(HELD, CLOSED, Ordering::AcqRel, Ordering::Acquire);
            if closed.is_ok() {
                // Before anything is sent: whoever works under this lease in another task is to stop first.
                self.tell_ended();
                self.held.end();
                return Ok(());
            }
        }
        match self.phase_now() {
            Phase::Lost(reason) => Err(reason),
            Phase::Held | Phase::Closed => Err(LossReason::Released),
        }
    }

    /// The holder has let go, and no body of its runs any more.
    pub(crate) fn note_let_go(&self) {
        self.let_go.store(true, Ordering::Release);
    }

    /// A lease that could not be proved valid any more while its holder went on, and for how long.
    pub(crate) fn unproved(&self) -> Option<Unproved> {
        let lost = matches!(self.phase(), Phase::Lost(_));
        if !lost || self.let_go.load(Ordering::Acquire) {
            return None;
        }
        let end = self.end();
        let since = self.lost_at.get().map_or(end, |lost| end.min(*lost));
        Some(Unproved::new(self.id.clone(), since.elapsed()))
    }

    /// Asks the holder to come to an end; the lease stays valid meanwhile.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.signal().cancel();
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// The store has extended the lease by `lease` from a request sent at `sent`. The later deadline holds. A lease
    /// whose deadline has passed meanwhile stays lost: somebody may have acted on that already. Whether it counts.
    pub(crate) fn extended(&self, sent: Instant, lease: Duration) -> bool {
        // Whether it counts or not, the store keeps it from when it executed the request, which may have been just now.
        self.may_last_until(Instant::now() + kept(lease));
        let held = self.phase() == Phase::Held;
        if held {
            let deadline = self.times.nanos(sent + validity(lease));
            self.times.deadline.fetch_max(deadline, Ordering::AcqRel);
        }
        held
    }

    /// Notes that the store may keep the lease until then.
    pub(crate) fn may_last_until(&self, store_end: Instant) {
        let nanos = self.times.nanos(store_end);
        self.times.store_end.fetch_max(nanos, Ordering::AcqRel);
    }

    /// How long the slot is still to be kept if the work ends now.
    pub(crate) fn keep(&self, now: Instant) -> Duration {
        if self.min_lease.is_zero() {
            return Duration::ZERO;
        }
        let held = now.saturating_duration_since(self.granted);
        self.min_lease.saturating_sub(held)
    }
}

fn decode(phase: u8) -> Phase {
    match phase {
        HELD => Phase::Held,
        CLOSED => Phase::Closed,
        lost => REASONS
            .get(usize::from(lost - LOST))
            .map_or(Phase::Lost(LossReason::Expired), |reason| {
                Phase::Lost(*reason)
            }),
    }
}

impl fmt::Debug for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenure")
            .field("id", &self.id)
            .field("phase", &self.phase_now())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_takes_off_one_percent_and_two_milliseconds() {
        assert_eq!(
            validity(Duration::from_secs(10)),
            Duration::from_millis(9_898)
        );
        assert_eq!(
            validity(Duration::from_millis(10)),
            Duration::from_micros(7_900)
        );
    }

    #[test]
    fn phases_survive_their_encoding() {
        for reason in REASONS {
            assert_eq!(decode(lost_phase(reason)), Phase::Lost(reason));
        }
    }
}
