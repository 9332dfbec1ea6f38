//! What a candidate's process does: it stands for election with the real library, works while it leads, and stands again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use leader_core::{
    Elector, ElectorExt, Events, LeaderError, LeaderEvent, LeaseHandle, RunOutcome, Step, TenureId,
};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

use crate::candidate::{Context, Phase};
use crate::journal::{Event, millis};
use crate::line::RECONNECT;

/// From one write of a leader to the next.
const BEAT: Duration = Duration::from_secs(1);

impl Context {
    fn note(&self, event: Event) {
        // A killed process tells nothing, not even of the end of what is dropped with it.
        if !self.killed.is_cancelled() {
            self.world.journal.note(Event {
                candidate: Some(self.id),
                ..event
            });
        }
    }

    fn enter(&self, phase: Phase) {
        let Some(mut row) = self.row() else { return };
        row.phase = phase;
        if !matches!(phase, Phase::Leading | Phase::Stale) {
            row.lease = None;
        }
    }

    fn remaining(&self) -> Option<u64> {
        let row = self.row()?;
        row.lease.as_ref().map(|lease| millis(lease.remaining()))
    }

    /// How long a slot that is given back now stays taken, by the minimum lease.
    fn kept(&self) -> u64 {
        let kept_until = self.row().and_then(|row| row.kept_until);
        let kept = kept_until.map(|until| until.saturating_duration_since(Instant::now()));
        millis(kept.unwrap_or_default())
    }
}

/// The whole life of a process: until it is asked to stop, when it hands over in good order.
pub(crate) async fn live(context: &Arc<Context>) {
    context.enter(Phase::Connecting);
    let elector = tokio::select! {
        () = context.stop.cancelled() => return,
        elector = connect(context) => elector,
    };
    let telling = tokio::spawn(tell(context.clone(), elector.events()));
    tokio::select! {
        () = context.stop.cancelled() => {}
        () = stand_again_and_again(context, &elector) => {}
    }
    // What it held is given back from here on, and it does not work any more.
    context.enter(Phase::Idle);
    elector.shutdown().await;
    // It ends with the elector's events.
    let _ = telling.await;
}

async fn connect(context: &Context) -> Arc<dyn Elector> {
    loop {
        match context
            .world
            .site()
            .elector(context.id, &context.link)
            .await
        {
            Ok(elector) => return elector,
            Err(error) => {
                context.note(failure(Step::Connect, &error));
                sleep(RECONNECT).await;
            }
        }
    }
}

async fn stand_again_and_again(context: &Context, elector: &Arc<dyn Elector>) {
    loop {
        stand(context, elector).await;
        context.enter(Phase::Idle);
        let settings = context.world.settings();
        let pause = Duration::from_millis(settings.pause_ms);
        if settings.repeat {
            tokio::select! {
                () = sleep(pause) => {}
                () = context.again.notified() => {}
            }
        } else {
            context.again.notified().await;
        }
    }
}

async fn stand(context: &Context, elector: &Arc<dyn Elector>) {
    let settings = context.world.settings();
    let options = match settings.options() {
        Ok(options) => options,
        Err(error) => {
            context.note(failure(Step::Claim, &error));
            return;
        }
    };
    let work = Duration::from_millis(settings.work_ms);
    let min_lease = Duration::from_millis(settings.min_lease_ms);
    context.enter(Phase::Waiting);
    context.note(Event::new("stands", "ok"));
    let name = context.world.name.clone();
    let run = elector.run_if_leader_result(name, &options, |lease| async move {
        let kept_until = Instant::now() + min_lease;
        take_office(context, &lease, settings.lease_ms, kept_until);
        do_the_work(context, lease, work).await;
        // The lease is given back next: neither does it lead, nor is it late.
        context.enter(Phase::Idle);
        Ok::<_, Infallible>(())
    });
    let outcome: Result<RunOutcome<(), Infallible>, LeaderError> = run.await;
    // What the engine has to tell of the run comes first.
    yield_now().await;
    match outcome {
        Err(LeaderError::LeaseLost { fence, reason, .. }) => {
            let what = if settings.notify {
                "release"
            } else {
                "dropped"
            };
            context.note(Event {
                fence: Some(fence.get()),
                ..Event::new(what, "stale").detail(&reason.as_str())
            });
        }
        Err(LeaderError::Backend { kind, .. }) => {
            context.note(Event::new("gave_up", kind.as_str()));
        }
        // The engine's own event says so.
        Ok(_) | Err(LeaderError::ShutDown) => {}
        Err(error) => context.note(failure(Step::Claim, &error)),
    }
}

fn take_office(context: &Context, lease: &LeaseHandle, lease_ms: u64, kept_until: Instant) {
    if let Some(mut row) = context.row() {
        row.phase = Phase::Leading;
        row.lease = Some(lease.clone());
        row.granted = Some((Instant::now(), Duration::from_millis(lease_ms)));
        row.kept_until = Some(kept_until);
    }
}

/// Work that writes to the resource, now and every second and at its end, and that goes on when nobody stops it.
async fn do_the_work(context: &Context, lease: LeaseHandle, work: Duration) {
    let began = Instant::now();
    // The engine notices the end of a lease at its deadline when somebody wants to know.
    let _watched = lease.cancellation_token();
    // The engine's event of the grant comes before the first write.
    yield_now().await;
    loop {
        write(context, &lease);
        let left = work.saturating_sub(began.elapsed());
        if left.is_zero() {
            return;
        }
        sleep(left.min(BEAT)).await;
    }
}

fn write(context: &Context, lease: &LeaseHandle) {
    if context.killed.is_cancelled() {
        return;
    }
    let world = &context.world;
    let written = world
        .resource
        .write(world.journal.now_ms(), context.id, lease);
    let event = match written {
        Ok(()) => Event::new("write", "accepted"),
        Err(stale) => Event::new("write", "refused").detail(&stale.seen),
    };
    context.note(Event {
        slot: Some(lease.slot()),
        fence: Some(lease.fence().get()),
        remaining_ms: lease.reckoning().map(|_| millis(lease.remaining())),
        ..event
    });
}

/// Notes what the engine tells, until the elector is shut down.
async fn tell(context: Arc<Context>, mut events: Events) {
    while let Some(event) = events.next().await {
        context.note(told(&context, event));
    }
}

fn told(context: &Context, event: LeaderEvent) -> Event {
    let of = |tenure: &TenureId, event: Event| Event {
        slot: Some(tenure.slot),
        fence: Some(tenure.fence.get()),
        ..event
    };
    match event {
        LeaderEvent::Elected { tenure, .. } => Event {
            remaining_ms: context.remaining(),
            ..of(&tenure, Event::new("elected", "ok"))
        },
        LeaderEvent::Extended { tenure, .. } => Event {
            remaining_ms: context.remaining(),
            ..of(&tenure, Event::new("extended", "ok"))
        },
        LeaderEvent::Lost { tenure, reason, .. } => Event {
            remaining_ms: Some(0),
            ..of(&tenure, Event::new("lost", reason.as_str()))
        },
        LeaderEvent::Released { tenure, .. } => match context.kept() {
            0 => of(&tenure, Event::new("released", "ok")),
            kept => Event {
                remaining_ms: Some(kept),
                ..of(&tenure, Event::new("released", "kept"))
            },
        },
        LeaderEvent::Skipped { holder, .. } => {
            let skipped = Event::new("skipped", "held");
            match holder {
                Some(holder) => skipped.detail(&holder.as_str()),
                None => skipped,
            }
        }
        LeaderEvent::Failed { step, kind, .. } => Event::new("failed", kind.as_str()).detail(&step),
        LeaderEvent::Missed { count, .. } => Event::new("missed", "ok").detail(&count),
        other => Event::new("other", "ok").detail(&format!("{other:?}")),
    }
}

fn failure(step: Step, error: &LeaderError) -> Event {
    let step = match error {
        LeaderError::Backend { step, .. } => *step,
        _ => step,
    };
    Event {
        message: Some(error.to_string()),
        ..Event::new("failed", code(error)).detail(&step)
    }
}

/// What kind of failure it is, in a word.
pub(crate) fn code(error: &LeaderError) -> &'static str {
    match error {
        LeaderError::Backend { kind, .. } => kind.as_str(),
        LeaderError::InvalidOptions { .. } => "options",
        _ => "other",
    }
}
