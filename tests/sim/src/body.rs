//! A guarded body that tells when it is polled and how it ends.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use leader_core::LeaseHandle;
use pin_project_lite::pin_project;
use tokio::time::Instant;

use crate::event::{BodyEnd, Event, RunNo};
use crate::world::World;

pin_project! {
    /// See the module.
    pub(crate) struct Watched<F> {
        #[pin]
        body: F,
        teller: Teller,
    }
}

/// Tells how a body ended, at the latest when it is dropped. Declared after the body: dropped after it.
struct Teller {
    world: Arc<World>,
    run: RunNo,
    lease: LeaseHandle,
    ended: bool,
}

impl Teller {
    fn tell(&mut self, end: BodyEnd) {
        if !std::mem::replace(&mut self.ended, true) {
            let valid = self
                .lease
                .reckoning()
                .is_some_and(|until| Instant::now() < until);
            self.world.tell(&Event::BodyEnded {
                run: self.run,
                end,
                valid,
            });
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        self.tell(BodyEnd::Dropped);
    }
}

impl<F> Watched<F> {
    pub(crate) fn new(world: Arc<World>, run: RunNo, lease: LeaseHandle, body: F) -> Self {
        Self {
            body,
            teller: Teller {
                world,
                run,
                lease,
                ended: false,
            },
        }
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        struct Panicked<'a>(&'a mut Teller);
        impl Drop for Panicked<'_> {
            fn drop(&mut self) {
                if std::thread::panicking() {
                    self.0.tell(BodyEnd::Panicked);
                }
            }
        }
        let this = self.project();
        this.teller.world.tell(&Event::Polled {
            run: this.teller.run,
        });
        let panicked = Panicked(this.teller);
        let polled = this.body.poll(cx);
        if polled.is_ready() {
            panicked.0.tell(BodyEnd::Returned);
        }
        polled
    }
}
