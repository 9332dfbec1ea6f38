//! The fenced register: a resource that takes part in fencing, and that every leader counts up.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::dice::Dice;
use crate::event::{self, Event, RunNo};
use crate::plan::FaultKind;
use crate::world::World;

/// A number, and the greatest fencing token and the latest request of it that was seen.
#[derive(Debug, Default)]
pub(crate) struct Register {
    value: u64,
    seen: u64,
    last_request: u64,
    asked: u64,
}

/// What is asked of the register. Each request of one leader has a number of its own, which grows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    Read,
    Write(u64),
}

impl Register {
    fn serve(&mut self, fence: u64, number: u64, request: Request) -> event::Register {
        if fence < self.seen {
            return event::Register::Refused { seen: self.seen };
        }
        if fence > self.seen {
            self.seen = fence;
            self.last_request = 0;
        }
        match request {
            Request::Read => event::Register::Read { value: self.value },
            Request::Write(_) if number <= self.last_request => event::Register::Repeated,
            Request::Write(value) => {
                self.last_request = number;
                self.value = value;
                event::Register::Wrote { value }
            }
        }
    }
}

/// Counts the register up, as a leader does: reads it, and writes one more. `false` when the register refuses, or
/// cannot be reached.
pub(crate) async fn count_up(world: &Arc<World>, run: RunNo, fence: u64, number: &mut u64) -> bool {
    *number += 1;
    let Some(event::Register::Read { value }) =
        insist(world, run, fence, *number, Request::Read).await
    else {
        return false;
    };
    *number += 1;
    let write = insist(world, run, fence, *number, Request::Write(value + 1)).await;
    matches!(
        write,
        Some(event::Register::Wrote { .. } | event::Register::Repeated)
    )
}

/// Asks again until there is an answer, a few times.
async fn insist(
    world: &Arc<World>,
    run: RunNo,
    fence: u64,
    number: u64,
    request: Request,
) -> Option<event::Register> {
    for _ in 0..4 {
        let answer = send(world, run, fence, number, request);
        if let Ok(Ok(answer)) = timeout(Duration::from_millis(30), answer).await {
            return Some(answer);
        }
    }
    None
}

fn send(
    world: &Arc<World>,
    run: RunNo,
    fence: u64,
    number: u64,
    request: Request,
) -> oneshot::Receiver<event::Register> {
    let (answer, answered) = oneshot::channel();
    let asked = {
        let register = &mut world.lock().register;
        register.asked += 1;
        register.asked
    };
    let mut dice = Dice::of(world.plan.seed, 99, asked);
    let elapsed = u64::try_from(world.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut delay = dice.between(0, world.plan.latency);
    let mut lost = false;
    for fault in &world.plan.faults {
        if (fault.at..fault.until).contains(&elapsed) {
            match fault.kind {
                FaultKind::Slow(by) => delay += dice.between(0, by),
                FaultKind::LoseReplies(percent) => lost |= dice.chance(percent),
                _ => {}
            }
        }
    }
    let world = world.clone();
    tokio::spawn(async move {
        sleep(Duration::from_millis(delay)).await;
        let what = world.lock().register.serve(fence, number, request);
        world.tell(&Event::Register { run, fence, what });
        if !lost {
            let _ = answer.send(what);
        }
    });
    answered
}
