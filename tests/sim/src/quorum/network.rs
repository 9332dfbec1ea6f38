//! The network to each node: every message has a fate of its own.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, Hint, HintSender, LeaseStore, Release, ReleaseReply,
    Revision, StoreError, Watching,
};
use leader_core::{BackendKind, Holder, LockName};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use super::ledger::Ledger;
use super::plan::{Fault, Kind, Plan};
use crate::dice::Dice;
use crate::model::{Model, Moment};

/// All that the candidates share.
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) begun: Instant,
    /// Rung when something has changed.
    pub(super) bell: Notify,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) nodes: Vec<Model>,
    pub(super) ledger: Ledger,
    watchers: BTreeMap<u64, Watcher>,
    messages: u64,
    pub(super) trace: Option<String>,
}

struct Watcher {
    node: usize,
    hints: HintSender,
}

/// Some time after the epoch.
const EPOCH_MICROS: u64 = 1_700_000_000_000_000;

impl World {
    pub(super) fn new(plan: &Plan, traces: bool) -> Arc<Self> {
        let ahead = |ahead: &u64| Model::ahead(i64::try_from(*ahead).unwrap_or_default());
        let nodes = plan.clocks.iter().map(ahead);
        Arc::new(Self {
            plan: plan.clone(),
            begun: Instant::now(),
            bell: Notify::new(),
            state: Mutex::new(State {
                nodes: nodes.collect(),
                ledger: Ledger::default(),
                watchers: BTreeMap::new(),
                messages: 0,
                trace: traces.then(String::new),
            }),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn say(&self, what: impl FnOnce() -> String) {
        let at = self.begun.elapsed();
        if let Some(trace) = &mut self.lock().trace {
            // Writing to a string does not fail.
            let _ = writeln!(trace, "{at:>12?} {}", what());
        }
    }

    pub(super) fn watchers(&self) -> usize {
        self.lock().watchers.len()
    }

    fn moment(&self) -> Moment {
        let micros = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or_default();
        Moment {
            now: Instant::now(),
            micros: EPOCH_MICROS + micros,
        }
    }

    /// The faults of a node at this moment.
    fn faults(&self, node: usize) -> impl Iterator<Item = &Fault> {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let here = move |fault: &&Fault| {
            fault.kind != Kind::Freeze
                && fault.whose == node
                && (fault.at..fault.until).contains(&now)
        };
        self.plan.faults.iter().filter(here)
    }

    fn is_down(&self, node: usize) -> bool {
        self.faults(node).any(|fault| fault.kind == Kind::Stop)
    }

    /// A duration of the candidates' clock, by a node's.
    pub(super) fn stretch(&self, node: usize, duration: Duration) -> Duration {
        let rate = u128::try_from(1_000_000 + self.plan.rates[node]).unwrap_or(1_000_000);
        let nanos = duration.as_nanos() * rate / 1_000_000;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// What happens to one message.
struct Fate {
    out: Duration,
    back: Duration,
    request_lost: bool,
    reply_lost: bool,
    again: Option<Duration>,
    refused: bool,
}

impl World {
    fn fate(&self, node: usize, message: u64) -> Fate {
        let mut dice = Dice::of(self.plan.seed, 21 + node as u64, message);
        let mut fate = Fate {
            out: Duration::from_millis(dice.between(0, self.plan.latency)),
            back: Duration::from_millis(dice.between(0, self.plan.latency)),
            request_lost: false,
            reply_lost: false,
            again: None,
            refused: false,
        };
        for fault in self.faults(node) {
            match fault.kind {
                Kind::Slow(by) => {
                    fate.out += Duration::from_millis(dice.between(0, by));
                    fate.back += Duration::from_millis(dice.between(0, by));
                }
                Kind::LoseRequests(percent) => fate.request_lost |= dice.chance(percent),
                Kind::LoseReplies(percent) => fate.reply_lost |= dice.chance(percent),
                Kind::Duplicate(percent, by) if dice.chance(percent) => {
                    fate.again = Some(Duration::from_millis(dice.between(0, by)));
                }
                Kind::Refuse(percent) => fate.refused |= dice.chance(percent),
                _ => {}
            }
        }
        fate
    }
}

#[derive(Clone)]
enum Request {
    Claim(Claim),
    Extend(Vec<Extension>),
    Release(Release),
    Watch(LockName, Revision, HintSender),
    Inspect,
    Evict,
}

enum Answer {
    /// With what the node's clock showed.
    Claim(ClaimReply, u64),
    Extend(Vec<ExtendReply>),
    Release(ReleaseReply, u64),
    Watch(Watching),
    Nothing,
}

/// One node as one candidate reaches it.
#[derive(Clone)]
pub(super) struct NodeStore {
    world: Arc<World>,
    candidate: usize,
    node: usize,
    /// When it last answered, and what its clock had shown.
    seen: Arc<Mutex<Option<(Instant, u64)>>>,
    /// How many there are of it.
    _alive: Arc<()>,
}

impl NodeStore {
    pub(super) fn new(world: &Arc<World>, candidate: usize, node: usize, alive: &Arc<()>) -> Self {
        Self {
            world: world.clone(),
            candidate,
            node,
            seen: Arc::default(),
            _alive: alive.clone(),
        }
    }

    fn see(&self, micros: u64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = Some((Instant::now(), micros));
    }

    async fn call(&self, request: Request) -> Result<Answer, StoreError> {
        let (world, node) = (&self.world, self.node);
        let message = {
            let mut state = world.lock();
            state.messages += 1;
            state.messages
        };
        let fate = world.fate(node, message);
        let refusal = |kind| Err(StoreError::new(kind, "refused by the plan").not_run());
        if world.is_down(node) {
            sleep(fate.out).await;
            return refusal(BackendKind::Unreachable);
        }
        if fate.refused {
            sleep(fate.out + fate.back).await;
            return refusal(BackendKind::ReadOnly);
        }
        let (answer, answered) = oneshot::channel();
        let carry = Carry {
            world: world.clone(),
            candidate: self.candidate,
            node,
            message,
        };
        if let Some(later) = fate.again {
            let (carry, request) = (carry.clone(), request.clone());
            tokio::spawn(async move {
                sleep(later).await;
                carry.out(request, fate.out).await;
            });
        }
        if !fate.request_lost {
            tokio::spawn(async move {
                let reply = carry.out(request, fate.out).await;
                sleep(fate.back).await;
                if let Some(reply) = reply
                    && !fate.reply_lost
                {
                    let _ = answer.send(reply);
                }
            });
        }
        match answered.await {
            Ok(answer) => Ok(answer),
            Err(_) => std::future::pending().await,
        }
    }
}

/// A request on its way.
#[derive(Clone)]
struct Carry {
    world: Arc<World>,
    candidate: usize,
    node: usize,
    message: u64,
}

impl Carry {
    /// Carries it there, and has it executed if the node is there then.
    async fn out(&self, request: Request, takes: Duration) -> Option<Answer> {
        sleep(takes).await;
        let (world, node) = (&self.world, self.node);
        loop {
            let hangs = world.faults(node).filter(|fault| fault.kind == Kind::Hang);
            let Some(until) = hangs.map(|fault| fault.until).max() else {
                break;
            };
            sleep_until(world.begun + Duration::from_millis(until)).await;
        }
        (!world.is_down(node)).then(|| self.apply(request))
    }

    fn apply(&self, request: Request) -> Answer {
        let (world, node) = (&self.world, self.node);
        let moment = world.moment();
        world.bell.notify_one();
        let state = &mut *world.lock();
        let at = world.begun.elapsed();
        let mut say = |said: String| {
            if let Some(trace) = &mut state.trace {
                let (message, candidate) = (self.message, self.candidate);
                let _ = writeln!(trace, "{at:>12?} m{message} c{candidate} at {node}: {said}");
            }
        };
        let model = &mut state.nodes[node];
        let clock = model.clock(moment);
        match request {
            Request::Claim(mut claim) => {
                claim.lease = world.stretch(node, claim.lease);
                let reply = model.claim(&claim, moment);
                say(format!(
                    "claim {} of {:?} at least {}, {} proposed: {reply:?}",
                    short(claim.token),
                    claim.slot,
                    claim.at_least.get(),
                    claim.proposed.get()
                ));
                Answer::Claim(reply, clock)
            }
            Request::Extend(batch) => {
                let replies = batch.into_iter().map(|mut extension| {
                    extension.lease = world.stretch(node, extension.lease);
                    let reply = model.extend(&extension, moment.now);
                    say(format!("extend {}: {reply:?}", short(extension.token)));
                    reply
                });
                Answer::Extend(replies.collect())
            }
            Request::Release(mut release) => {
                release.keep = world.stretch(node, release.keep);
                let (mut reply, free_in) = model.release(&release, moment);
                say(format!(
                    "release {} marked {}: {reply:?}",
                    short(release.token),
                    release.mark.is_some()
                ));
                if let ReleaseReply::Released { revision, told } = &mut reply {
                    *told = tell(world, &state.watchers, node, *revision, free_in);
                }
                Answer::Release(reply, clock)
            }
            Request::Watch(name, since, hints) => {
                if model.is_news(&name, since, moment.now) {
                    hints.push(Hint::Missed);
                }
                let id = self.message;
                state.watchers.insert(id, Watcher { node, hints });
                Answer::Watch(Watching::new(EndOfWatch {
                    world: world.clone(),
                    id,
                }))
            }
            Request::Inspect | Request::Evict => Answer::Nothing,
        }
    }
}

fn short(token: leader_core::Token) -> String {
    token.to_hex()[20..].to_owned()
}

fn tell(
    world: &Arc<World>,
    watchers: &BTreeMap<u64, Watcher>,
    node: usize,
    revision: Revision,
    free_in: Duration,
) -> u32 {
    let mut told = 0;
    for (id, watcher) in watchers.iter().filter(|(_, watcher)| watcher.node == node) {
        told += 1;
        let mut dice = Dice::of(world.plan.seed, 98 + id, revision.get());
        let delay = dice.between(0, world.plan.latency);
        if world
            .faults(node)
            .any(|fault| fault.kind == Kind::LoseHints)
        {
            continue;
        }
        let hints = watcher.hints.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(delay)).await;
            hints.push(Hint::Released { revision, free_in });
        });
    }
    told
}

struct EndOfWatch {
    world: Arc<World>,
    id: u64,
}

impl Drop for EndOfWatch {
    fn drop(&mut self) {
        let watcher = self.world.lock().watchers.remove(&self.id);
        drop(watcher);
    }
}

fn mixed_up<T>() -> Result<T, StoreError> {
    let words = "the simulation mixed up its answers";
    Err(StoreError::new(BackendKind::MalformedReply, words))
}

impl LeaseStore for NodeStore {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        self.world.note_claim(self.node, claim.token);
        match self.call(Request::Claim(claim.clone())).await? {
            Answer::Claim(reply, micros) => {
                self.see(micros);
                Ok(reply)
            }
            _ => mixed_up(),
        }
    }

    async fn extend(&self, batch: &[Extension]) -> Vec<Result<ExtendReply, StoreError>> {
        match self.call(Request::Extend(batch.to_vec())).await {
            Ok(Answer::Extend(replies)) => replies.into_iter().map(Ok).collect(),
            Ok(_) => vec![mixed_up(); batch.len()],
            Err(error) => vec![Err(error); batch.len()],
        }
    }

    async fn release(&self, release: &Release) -> Result<ReleaseReply, StoreError> {
        match self.call(Request::Release(release.clone())).await? {
            Answer::Release(reply, micros) => {
                self.see(micros);
                Ok(reply)
            }
            _ => mixed_up(),
        }
    }

    async fn watch(
        &self,
        name: &LockName,
        since: Revision,
        hints: HintSender,
    ) -> Result<Watching, StoreError> {
        match self
            .call(Request::Watch(name.clone(), since, hints))
            .await?
        {
            Answer::Watch(watching) => Ok(watching),
            _ => mixed_up(),
        }
    }

    async fn inspect(&self, _name: &LockName) -> Result<Vec<Holder>, StoreError> {
        self.call(Request::Inspect).await.map(|_| Vec::new())
    }

    async fn evict(&self, _name: &LockName) -> Result<u32, StoreError> {
        self.call(Request::Evict).await.map(|_| 0)
    }

    fn time_by_now(&self) -> Option<Duration> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.map(|(answered, micros)| Duration::from_micros(micros) + answered.elapsed())
    }

    fn command_timeout(&self) -> Duration {
        Duration::from_millis(self.world.plan.command_timeout)
    }
}

impl fmt::Debug for NodeStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeStore").field(&self.node).finish()
    }
}
