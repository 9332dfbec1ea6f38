//! A candidate: plays its steps on a real elector, and tells what it sees.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use leader_core::{
    Acquisition, Elector, ElectorExt, LeaderError, Lease, LeaseHandle, LeaseOptions, OnLost,
    RunOutcome, StoreElector,
};
use pin_project_lite::pin_project;
use tokio::time::{Instant, sleep, timeout};

use crate::body::Watched;
use crate::event::{Event, Outcome, RunNo};
use crate::network::{SimStore, as_attempt};
use crate::plan::{Act, Cut, Deed, End, LettingGo, Stand, Step};
use crate::register::count_up;
use crate::world::World;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One candidate, seen from one of its tasks.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) world: Arc<World>,
    pub(crate) elector: StoreElector<SimStore>,
    pub(crate) node: usize,
    pub(crate) task: usize,
}

impl Candidate {
    pub(crate) async fn play(self, steps: Vec<Step>) {
        for Step { pause, deed } in steps {
            sleep(ms(pause)).await;
            match deed {
                Deed::Run {
                    stand,
                    body,
                    end,
                    cut,
                } => {
                    let run = self
                        .world
                        .stood((self.node, self.task), &stand, true, false);
                    self.until_cut(run, cut, self.clone().run(run, stand, body, end))
                        .await;
                }
                Deed::Hold {
                    stand,
                    acts,
                    letting_go,
                    cut,
                } => {
                    let run = self
                        .world
                        .stood((self.node, self.task), &stand, false, false);
                    self.until_cut(run, cut, self.clone().hold(run, stand, acts, letting_go))
                        .await;
                }
                Deed::Shutdown => self.shut_down().await,
            }
        }
    }

    pub(crate) async fn shut_down(&self) {
        let (begun, frozen) = (Instant::now(), self.world.freezers[self.node].total());
        self.elector.shutdown().await;
        let frozen = self.world.frozen_since(self.node, frozen);
        self.world.tell(&Event::ShutDown {
            node: self.node,
            took: begun.elapsed(),
            frozen,
        });
    }

    async fn until_cut(
        &self,
        run: RunNo,
        cut: Option<Cut>,
        deed: impl Future<Output = Outcome> + Send + 'static,
    ) {
        let world = self.world.clone();
        let deed = async move {
            let outcome = deed.await;
            world.tell(&Event::Over { run, outcome });
        };
        let deed = Attempt { run, deed };
        // Something that polls often enough may not come: it is dropped in the end.
        let patience = ms(20 * self.world.plan.longest_lease() + 1000);
        let ended = match cut {
            None => {
                deed.await;
                Some(())
            }
            Some(Cut::DropAfter(after)) => timeout(ms(after), deed).await.ok(),
            Some(Cut::DropAtPoll(polls)) => timeout(patience, DropAtPoll { left: polls, deed })
                .await
                .ok()
                .flatten(),
            Some(Cut::AbortAfter(after)) => {
                let task = tokio::spawn(self.world.freezers[self.node].gate(deed));
                sleep(ms(after)).await;
                task.abort();
                match task.await {
                    Ok(()) => Some(()),
                    Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                    Err(_) => None,
                }
            }
        };
        if ended.is_none() {
            self.world.tell(&Event::Over {
                run,
                outcome: Outcome::Cut,
            });
        }
    }

    async fn run(self, run: RunNo, stand: Stand, acts: Vec<Act>, end: End) -> Outcome {
        let options = options(&stand);
        let name = self.world.names[stand.name].clone();
        let (me, nested) = (self.clone(), options.clone());
        let body = move |lease: LeaseHandle| {
            me.world.granted(run, &lease);
            let world = me.world.clone();
            let acting = Acting {
                me,
                run,
                lease: lease.clone(),
                options: nested,
                stand,
                written: 0,
            };
            Watched::new(world, run, lease, acting.body(acts, end))
        };
        let running = self.elector.run_if_leader_result(name, &options, body);
        match AssertUnwindSafe(running).catch_unwind().await {
            Ok(Ok(RunOutcome::Elected(()))) => Outcome::Elected,
            Ok(Ok(RunOutcome::ActionFailed(BodyFailed))) => Outcome::ActionFailed,
            Ok(Ok(RunOutcome::Skipped(_))) => Outcome::Skipped,
            Ok(Err(error)) => outcome(&error),
            Err(panic) if panic.is::<AsPlanned>() => Outcome::Panicked,
            Err(panic) => resume_unwind(panic),
        }
    }

    async fn hold(
        self,
        run: RunNo,
        stand: Stand,
        acts: Vec<Act>,
        letting_go: LettingGo,
    ) -> Outcome {
        let options = options(&stand);
        let name = self.world.names[stand.name].clone();
        let lease: Lease = match self.elector.acquire(&name, &options).await {
            Ok(Acquisition::Elected(lease)) => lease,
            Ok(Acquisition::Skipped(_)) => return Outcome::Skipped,
            Err(error) => return outcome(&error),
        };
        self.world.granted(run, &lease);
        let world = self.world.clone();
        let mut acting = Acting {
            me: self,
            run,
            lease: lease.handle(),
            options,
            stand,
            written: 0,
        };
        for act in acts {
            acting.act(act).await;
        }
        drop(acting);
        world.tell(&Event::LettingGo { run });
        match letting_go {
            LettingGo::Release => match lease.release().await {
                Ok(()) => Outcome::LetGo,
                Err(error) => outcome(&error),
            },
            LettingGo::Drop => {
                let valid = lease.ensure_valid();
                world.lock().facts.runs[run].dropped = true;
                drop(lease);
                valid.map_or_else(|error| outcome(&error), |()| Outcome::LetGo)
            }
            LettingGo::ReleaseCutShort(polls) => {
                let patience = ms(4 * world.plan.command_timeout);
                match timeout(
                    patience,
                    DropAtPoll {
                        left: polls,
                        deed: lease.release(),
                    },
                )
                .await
                {
                    Ok(Some(Ok(()))) => Outcome::LetGo,
                    Ok(Some(Err(error))) => outcome(&error),
                    Ok(None) | Err(_) => Outcome::Cut,
                }
            }
        }
    }

    /// Stands once the faults are over, and leads for a moment.
    pub(crate) async fn stand_at_last(self, stand: Stand) {
        let run = self
            .world
            .stood((self.node, self.task), &stand, false, true);
        let held = self
            .clone()
            .hold(run, stand, vec![Act::Work(1)], LettingGo::Release);
        let outcome = Attempt { run, deed: held }.await;
        self.world.tell(&Event::Over { run, outcome });
    }
}

fn options(stand: &Stand) -> LeaseOptions {
    let mut builder = LeaseOptions::builder()
        .wait(ms(stand.wait))
        .lease(ms(stand.lease))
        .min_lease(ms(stand.min_lease))
        .auto_extend(stand.auto_extend)
        .on_lost(if stand.notify {
            OnLost::Notify
        } else {
            OnLost::Cancel
        })
        .slots(stand.slots);
    if let Some(longest) = stand.max_tenure {
        builder = builder.max_tenure(ms(longest));
    }
    builder.build().unwrap_or_default()
}

fn outcome(error: &LeaderError) -> Outcome {
    match error {
        LeaderError::LeaseLost { reason, .. } => Outcome::Lost(*reason),
        LeaderError::Backend { step, kind, .. } => Outcome::Backend(*step, *kind),
        LeaderError::ShutDown => Outcome::ShutDown,
        other => Outcome::Odd(other.to_string()),
    }
}

/// The body's own error.
struct BodyFailed;
/// What a body panics with.
struct AsPlanned;

/// Somebody who has a lease, and does things.
struct Acting {
    me: Candidate,
    run: RunNo,
    lease: LeaseHandle,
    options: LeaseOptions,
    stand: Stand,
    /// How many requests to the register there were.
    written: u64,
}

impl Acting {
    async fn body(mut self, acts: Vec<Act>, end: End) -> Result<(), BodyFailed> {
        for act in acts {
            self.act(act).await;
        }
        match end {
            End::Return => Ok(()),
            End::Fail => Err(BodyFailed),
            // Without the report that `panic!` would print, thousands of times.
            End::Panic => resume_unwind(Box::new(AsPlanned)),
            End::Never => std::future::pending().await,
        }
    }

    async fn act(&mut self, act: Act) {
        match act {
            Act::Work(0) => tokio::task::yield_now().await,
            Act::Work(time) => sleep(ms(time)).await,
            Act::Extend(by) => self.extend(by, None).await,
            Act::ExtendCutShort(by, after) => self.extend(by, Some(after)).await,
            Act::Watch(patience) => {
                let token = self.lease.cancellation_token();
                let _ = timeout(ms(patience), token.cancelled()).await;
            }
            // Holders of several slots would refuse each other.
            Act::Write if self.stand.slots == 1 => {
                let fence = self.lease.fence().get();
                count_up(&self.me.world, self.run, fence, &mut self.written).await;
            }
            Act::Write => {}
            Act::Nested(time) => {
                let (world, run) = (self.me.world.clone(), self.run);
                let inner = async move |lease: LeaseHandle| {
                    let fence = lease.fence().get();
                    world.tell(&Event::Nested { run, fence });
                    sleep(ms(time)).await;
                };
                let name = self.me.world.names[self.stand.name].clone();
                let _ = self
                    .me
                    .elector
                    .run_if_leader(name, &self.options, inner)
                    .await;
            }
        }
    }

    async fn extend(&self, by: u64, cut: Option<u64>) {
        let (begun, frozen) = (Instant::now(), self.me.world.freezers[self.me.node].total());
        let extending = self.lease.extend(ms(by));
        let result = match cut {
            None => extending.await,
            Some(after) => match timeout(ms(after), extending).await {
                Ok(result) => result,
                Err(_) => return,
            },
        };
        let frozen = self.me.world.frozen_since(self.me.node, frozen);
        let (run, took) = (self.run, begun.elapsed());
        let result = result.map_err(|error| outcome(&error));
        self.me.world.tell(&Event::ExtendedByHand {
            run,
            result,
            took,
            frozen,
        });
    }
}

pin_project! {
    /// Marks the requests that are sent meanwhile as those of an attempt.
    struct Attempt<F> {
        run: RunNo,
        #[pin]
        deed: F,
    }
}

impl<F: Future> Future for Attempt<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        as_attempt(*this.run, || this.deed.poll(cx))
    }
}

pin_project! {
    /// Gives its future up after so many polls.
    struct DropAtPoll<F> {
        left: u64,
        #[pin]
        deed: F,
    }
}

impl<F: Future> Future for DropAtPoll<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.deed.poll(cx) {
            return Poll::Ready(Some(output));
        }
        *this.left = this.left.saturating_sub(1);
        if *this.left == 0 {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }
}
