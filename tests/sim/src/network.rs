//! The network between a candidate and the server: [`SimStore`], the `LeaseStore` whose every request is a message
//! with a fate of its own.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use leader_core::store::{
    Claim, ClaimReply, ExtendReply, Extension, Hint, HintSender, LeaseStore, Release, ReleaseReply,
    Revision, StoreError, Watching,
};
use leader_core::{BackendKind, Holder, LockName, NodeId};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::event::{Event, Fate, Op, RunNo, Said};
use crate::plan::{FaultKind, Refusal};
use crate::server::key;
use crate::world::{State, Watcher, World};

thread_local! {
    /// The attempt whose task is being polled.
    static ATTEMPT: Cell<Option<RunNo>> = const { Cell::new(None) };
}

/// Does `poll` as part of the attempt `run`.
pub(crate) fn as_attempt<T>(run: RunNo, poll: impl FnOnce() -> T) -> T {
    let outer = ATTEMPT.replace(Some(run));
    let polled = poll();
    ATTEMPT.set(outer);
    polled
}

/// One candidate's way to the server.
pub(crate) struct SimStore {
    world: Arc<World>,
    node: usize,
    claims_now: bool,
    releases_now: bool,
    /// Counted as long as the engine has this store.
    _alive: Arc<()>,
}

impl SimStore {
    pub(crate) fn new(world: Arc<World>, node: usize, alive: Arc<()>) -> Self {
        let candidate = &world.plan.candidates[node];
        let (claims_now, releases_now) = (candidate.claims_now, candidate.releases_now);
        Self {
            world,
            node,
            claims_now,
            releases_now,
            _alive: alive,
        }
    }

    /// Past the network, while the server is there.
    fn at_once(&self, request: Request) -> Option<Answer> {
        let name = self.world.number(request.name());
        let (message, op) = {
            let mut state = self.world.lock();
            if state.down > 0 || state.hanging > 0 {
                return None;
            }
            let message = state.next_message();
            let op = *request.ops(&mut state).first()?;
            state.tell(&Event::Sent {
                message,
                node: self.node,
                name,
                op,
                run: ATTEMPT.get(),
            });
            (message, op)
        };
        let answer = self.world.apply(message, self.node, name, request);
        let said = answer.said(0);
        self.world.tell(&Event::Answered {
            message,
            node: self.node,
            name,
            op,
            said,
        });
        Some(answer)
    }

    async fn call(&self, request: Request) -> Result<Answer, StoreError> {
        let name = self.world.number(request.name());
        let (message, fates) = {
            let state = &mut self.world.lock();
            let message = state.next_message();
            let ops = request.ops(state);
            for (index, op) in ops.iter().enumerate() {
                let name = self.world.number(request.name_of(index));
                state.tell(&Event::Sent {
                    message,
                    node: self.node,
                    name,
                    op: *op,
                    run: ATTEMPT.get(),
                });
            }
            (
                message,
                Fates::draw(&self.world, state, self.node, &request),
            )
        };
        let ops = request.ops(&mut self.world.lock());
        let names: Vec<_> = (0..ops.len())
            .map(|index| self.world.number(request.name_of(index)))
            .collect();
        let mut pending = Pending {
            world: &self.world,
            node: self.node,
            message,
            asked: names.into_iter().zip(ops).collect(),
        };
        let answer = self.travel(message, name, request, fates).await;
        pending.tell(answer.as_ref().ok());
        answer
    }

    async fn travel(
        &self,
        message: u64,
        name: usize,
        request: Request,
        fates: Fates,
    ) -> Result<Answer, StoreError> {
        let tell = |fate| self.world.tell(&Event::Fate { message, fate });
        if let Some(refusal) = fates.refused {
            tell(Fate::Refused);
            sleep(fates.back).await;
            return Err(refusal_error(refusal));
        }
        if fates.request_lost {
            tell(Fate::RequestLost);
            return std::future::pending().await;
        }
        if let Some(later) = fates.again {
            tell(Fate::Duplicated);
            let (again, _) = oneshot::channel();
            let parcel = Parcel {
                message,
                node: self.node,
                name,
                request: request.clone(),
                broken: true,
            };
            tokio::spawn(parcel.deliver(
                self.world.clone(),
                fates.out + later,
                Duration::ZERO,
                again,
            ));
        }
        let (answer, answered) = oneshot::channel();
        let parcel = Parcel {
            message,
            node: self.node,
            name,
            request,
            broken: fates.broken,
        };
        tokio::spawn(parcel.deliver(self.world.clone(), fates.out, fates.back, answer));
        match fates.reply {
            Reply::Comes => match answered.await {
                Ok(answer) => answer,
                Err(_) => std::future::pending().await,
            },
            Reply::Lost => {
                tell(Fate::ReplyLost);
                std::future::pending().await
            }
            Reply::Cut => {
                let _ = answered.await;
                tell(Fate::ReplyCut);
                Err(StoreError::new(
                    BackendKind::Unreachable,
                    "the connection was cut",
                ))
            }
            Reply::Failed => {
                let _ = answered.await;
                tell(Fate::ReplyCut);
                Err(StoreError::new(BackendKind::Other, "something went wrong"))
            }
        }
    }
}

/// A call whose end is told, also when its future is dropped.
struct Pending<'a> {
    world: &'a World,
    node: usize,
    message: u64,
    asked: Vec<(usize, Op)>,
}

impl Pending<'_> {
    fn tell(&mut self, answer: Option<&Answer>) {
        for (index, (name, op)) in std::mem::take(&mut self.asked).into_iter().enumerate() {
            let said = answer.and_then(|answer| answer.said(index));
            let (node, message) = (self.node, self.message);
            self.world.tell(&Event::Answered {
                message,
                node,
                name,
                op,
                said,
            });
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.tell(None);
    }
}

fn refusal_error(refusal: Refusal) -> StoreError {
    match refusal {
        Refusal::ReadOnly => StoreError::new(BackendKind::ReadOnly, "a replica"),
        Refusal::NotReady => StoreError::new(BackendKind::NotReady, "loading"),
        Refusal::Unreachable => StoreError::new(BackendKind::Unreachable, "refused").not_run(),
        Refusal::OutOfMemory => StoreError::new(BackendKind::OutOfMemory, "no memory"),
        Refusal::Other => StoreError::new(BackendKind::Other, "something went wrong"),
    }
}

/// What becomes of one message, decided when it is sent.
struct Fates {
    refused: Option<Refusal>,
    request_lost: bool,
    out: Duration,
    back: Duration,
    again: Option<Duration>,
    reply: Reply,
    /// When the server is down on arrival: whether the client hears of it.
    broken: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reply {
    Comes,
    Lost,
    Cut,
    Failed,
}

impl Fates {
    fn draw(world: &World, state: &mut State, node: usize, request: &Request) -> Self {
        state.sent[node] += 1;
        let mut dice = Dice::of(world.plan.seed, node as u64 + 1, state.sent[node]);
        let millis = Duration::from_millis;
        let latency = world.plan.latency;
        let mut fates = Self {
            refused: None,
            request_lost: false,
            out: millis(dice.between(0, latency)),
            back: millis(dice.between(0, latency)),
            again: None,
            reply: Reply::Comes,
            broken: dice.chance(50),
        };
        let elapsed = u64::try_from(world.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        for fault in world
            .plan
            .faults
            .iter()
            .filter(|fault| (fault.at..fault.until).contains(&elapsed))
        {
            match fault.kind {
                FaultKind::Slow(by) => {
                    fates.out += millis(dice.between(0, by));
                    fates.back += millis(dice.between(0, by));
                }
                FaultKind::LoseRequests(percent) => fates.request_lost |= dice.chance(percent),
                FaultKind::LoseReplies(percent) if dice.chance(percent) => {
                    fates.reply = Reply::Lost;
                }
                FaultKind::CutReplies(percent) if dice.chance(percent) => fates.reply = Reply::Cut,
                FaultKind::Duplicate(percent, by) if dice.chance(percent) => {
                    fates.again = Some(millis(dice.between(0, by)));
                }
                FaultKind::Refuse(percent, Refusal::Other) if dice.chance(percent) => {
                    if dice.chance(50) {
                        fates.reply = Reply::Failed;
                    } else {
                        fates.refused = Some(Refusal::Other);
                    }
                }
                FaultKind::Refuse(percent, refusal) if dice.chance(percent) => {
                    fates.refused = Some(refusal);
                }
                _ => {}
            }
        }
        // A request is sent again because its reply was not seen. A claim whose reply was seen, and the tenure after
        // it ended, comes no second time: no client keeps a request that was answered.
        if matches!(request, Request::Claim(_)) && fates.reply == Reply::Comes {
            fates.again = fates.again.map(|_| Duration::ZERO);
        }
        fates
    }
}

/// A request on its way.
struct Parcel {
    message: u64,
    node: usize,
    name: usize,
    request: Request,
    broken: bool,
}

impl Parcel {
    async fn deliver(
        self,
        world: Arc<World>,
        out: Duration,
        back: Duration,
        answer: oneshot::Sender<Result<Answer, StoreError>>,
    ) {
        if !out.is_zero() {
            sleep(out).await;
        }
        loop {
            let resumed = world.resumed.notified();
            tokio::pin!(resumed);
            resumed.as_mut().enable();
            if world.lock().hanging == 0 {
                break;
            }
            resumed.await;
        }
        let reply = if world.lock().down > 0 {
            world.tell(&Event::Fate {
                message: self.message,
                fate: Fate::Down,
            });
            if !self.broken {
                return;
            }
            Err(StoreError::new(BackendKind::Unreachable, "no connection"))
        } else {
            Ok(world.apply(self.message, self.node, self.name, self.request))
        };
        if !back.is_zero() {
            sleep(back).await;
        }
        let _ = answer.send(reply);
    }
}

#[derive(Clone)]
enum Request {
    Claim(Claim),
    Extend(Vec<Extension>),
    Release(Release),
    Watch(LockName, Revision, HintSender),
    Inspect(LockName),
    Evict(LockName),
}

enum Answer {
    Claim(ClaimReply),
    Extend(Vec<ExtendReply>),
    Release(ReleaseReply),
    Watch(Watching),
    Inspect(Vec<Holder>),
    Evict(u32),
}

impl Request {
    fn name(&self) -> &LockName {
        self.name_of(0)
    }

    /// The name of one of its steps: a batch of extensions may be of several names.
    fn name_of(&self, index: usize) -> &LockName {
        match self {
            Self::Claim(claim) => &claim.name,
            Self::Extend(batch) => &batch[index].name,
            Self::Release(release) => &release.name,
            Self::Watch(name, ..) | Self::Inspect(name) | Self::Evict(name) => name,
        }
    }

    fn ops(&self, state: &mut State) -> Vec<Op> {
        match self {
            Self::Claim(claim) => vec![Op::Claim {
                token: state.token(key(claim.token)),
                slots: claim.slots,
                lease: claim.lease,
            }],
            Self::Extend(batch) => batch
                .iter()
                .map(|extension| extend_op(state, extension))
                .collect(),
            Self::Release(release) => vec![Op::Release {
                token: state.token(key(release.token)),
                keep: release.keep,
                marks: release.mark.is_some(),
            }],
            Self::Watch(..) => vec![Op::Watch],
            Self::Inspect(_) => vec![Op::Inspect],
            Self::Evict(_) => vec![Op::Evict],
        }
    }
}

fn extend_op(state: &mut State, extension: &Extension) -> Op {
    Op::Extend {
        token: state.token(key(extension.token)),
        lease: extension.lease,
    }
}

impl Answer {
    fn said(&self, index: usize) -> Option<Said> {
        Some(match self {
            Self::Claim(reply) => said_of_claim(reply),
            Self::Extend(replies) => said_of_extend(*replies.get(index)?),
            Self::Release(reply) => said_of_release(*reply),
            Self::Watch(_) | Self::Inspect(_) | Self::Evict(_) => Said::Done,
        })
    }
}

fn said_of_claim(reply: &ClaimReply) -> Said {
    match reply {
        ClaimReply::Granted { slot, fence } => Said::Granted {
            slot: *slot,
            fence: fence.get(),
        },
        ClaimReply::Taken { .. } => Said::Taken,
        _ => Said::Ended,
    }
}

fn said_of_extend(reply: ExtendReply) -> Said {
    match reply {
        ExtendReply::NotHeld(reason) => Said::NotHeld(reason),
        _ => Said::Extended,
    }
}

fn said_of_release(reply: ReleaseReply) -> Said {
    match reply {
        ReleaseReply::NotHeld(reason) => Said::NotHeld(reason),
        _ => Said::Released,
    }
}

impl World {
    pub(crate) fn number(&self, name: &LockName) -> usize {
        self.names
            .iter()
            .position(|known| known == name)
            .unwrap_or_default()
    }

    /// A duration of `node`'s clock, by the store's.
    fn to_store(&self, node: usize, duration: Duration) -> Duration {
        stretch(
            duration,
            1_000_000 + self.plan.candidates[node].rate_ppm,
            1_000_000,
        )
    }

    /// A duration of the store's clock, by `node`'s.
    fn to_candidate(&self, node: usize, duration: Duration) -> Duration {
        stretch(
            duration,
            1_000_000,
            1_000_000 + self.plan.candidates[node].rate_ppm,
        )
    }

    /// The server carries a request out.
    fn apply(self: &Arc<Self>, message: u64, node: usize, name: usize, request: Request) -> Answer {
        let mut state = self.lock();
        let moment = state.moment();
        let now = moment.now;
        match request {
            Request::Claim(mut claim) => {
                let op = Request::Claim(claim.clone()).ops(&mut state)[0];
                claim.lease = self.to_store(node, claim.lease);
                let before = state.server.slots(&claim.name, now);
                let mut reply = state.server.claim(&claim, moment);
                let said = said_of_claim(&reply);
                self.applied(&mut state, (message, node, name), op, said, before);
                if let ClaimReply::Taken { retry_after, .. } = &mut reply {
                    *retry_after = self.to_candidate(node, *retry_after);
                }
                Answer::Claim(reply)
            }
            Request::Extend(batch) => {
                let replies = batch.into_iter().map(|mut extension| {
                    let op = extend_op(&mut state, &extension);
                    let name = self.number(&extension.name);
                    extension.lease = self.to_store(node, extension.lease);
                    let before = state.server.slots(&extension.name, now);
                    let reply = state.server.extend(&extension, now);
                    self.applied(
                        &mut state,
                        (message, node, name),
                        op,
                        said_of_extend(reply),
                        before,
                    );
                    reply
                });
                Answer::Extend(replies.collect())
            }
            Request::Release(mut release) => {
                let op = Request::Release(release.clone()).ops(&mut state)[0];
                release.keep = self.to_store(node, release.keep);
                let before = state.server.slots(&release.name, now);
                let (mut reply, free_in) = state.server.release(&release, moment);
                self.applied(
                    &mut state,
                    (message, node, name),
                    op,
                    said_of_release(reply),
                    before,
                );
                if let ReleaseReply::Released { revision, told } = &mut reply {
                    *told = self.hint(&state, message, name, *revision, free_in);
                }
                Answer::Release(reply)
            }
            Request::Watch(lock, since, hints) => {
                let id = state.next_watcher();
                if state.server.is_news(&lock, since, now) {
                    hints.push(Hint::Missed);
                }
                state.watchers.insert(id, Watcher { node, name, hints });
                let before = state.server.slots(&lock, now);
                self.applied(
                    &mut state,
                    (message, node, name),
                    Op::Watch,
                    Said::Done,
                    before,
                );
                Answer::Watch(Watching::new(EndOfWatch {
                    world: self.clone(),
                    id,
                }))
            }
            Request::Inspect(lock) => {
                let slots = state.server.slots(&lock, now);
                let holder = |slot: &crate::server::Slot| {
                    let fence = leader_core::FencingToken::new(slot.fence);
                    Holder::new(NodeId::new("somebody"), slot.number, fence, slot.ends - now)
                };
                Answer::Inspect(slots.iter().map(holder).collect())
            }
            Request::Evict(lock) => Answer::Evict(self.evict(&mut state, &lock)),
        }
    }

    /// An operator frees a name.
    pub(crate) fn evict(self: &Arc<Self>, state: &mut State, name: &LockName) -> u32 {
        let moment = state.moment();
        let number = self.number(name);
        let (freed, revision) = state.server.evict(name, moment);
        let after = state.server.slots(name, moment.now);
        state.facts.turn_slots(number, after, moment.now);
        if freed > 0 {
            self.hint(state, 0, number, revision, Duration::ZERO);
        }
        freed
    }

    fn applied(
        &self,
        state: &mut State,
        (message, node, name): (u64, usize, usize),
        op: Op,
        said: Said,
        before: Vec<crate::server::Slot>,
    ) {
        let after = state.server.slots(&self.names[name], Instant::now());
        let broken = state.tell(&Event::Applied {
            message,
            node,
            name,
            op,
            said,
            before,
            after,
        });
        if broken {
            self.broken.notify_one();
        }
    }

    /// Sends released-hints to those who watch `name`; how many that are.
    fn hint(
        self: &Arc<Self>,
        state: &State,
        message: u64,
        name: usize,
        revision: Revision,
        free_in: Duration,
    ) -> u32 {
        let mut told = 0;
        let elapsed = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        for (id, watcher) in state
            .watchers
            .iter()
            .filter(|(_, watcher)| watcher.name == name)
        {
            told += 1;
            let mut dice = Dice::of(self.plan.seed, 98 + id, revision.get());
            let mut delay = dice.between(0, self.plan.latency);
            let mut lost = false;
            for fault in self
                .plan
                .faults
                .iter()
                .filter(|fault| (fault.at..fault.until).contains(&elapsed))
            {
                match fault.kind {
                    FaultKind::LoseHints(percent) => lost |= dice.chance(percent),
                    FaultKind::Slow(by) => delay += dice.between(0, by),
                    _ => {}
                }
            }
            let hints = watcher.hints.clone();
            let free_in = self.to_candidate(watcher.node, free_in);
            let world = self.clone();
            tokio::spawn(async move {
                sleep(Duration::from_millis(delay)).await;
                if lost {
                    world.tell(&Event::Fate {
                        message,
                        fate: Fate::HintLost,
                    });
                } else if world.lock().down == 0 {
                    hints.push(Hint::Released { revision, free_in });
                }
            });
        }
        told
    }

    /// The server is up again: the clients notice that they may have missed something.
    pub(crate) fn reconnect(self: &Arc<Self>) {
        let world = self.clone();
        tokio::spawn(async move {
            sleep(Duration::from_millis(1 + 2 * world.plan.latency)).await;
            let watchers: Vec<_> = world
                .lock()
                .watchers
                .values()
                .map(|watcher| watcher.hints.clone())
                .collect();
            for hints in watchers {
                hints.push(Hint::Missed);
            }
        });
    }
}

fn stretch(duration: Duration, by: i64, of: i64) -> Duration {
    let nanos = duration.as_nanos() * u128::from(by.unsigned_abs()) / u128::from(of.unsigned_abs());
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
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
    Err(StoreError::new(
        BackendKind::MalformedReply,
        "the simulation mixed up its answers",
    ))
}

impl LeaseStore for SimStore {
    async fn claim(&self, claim: &Claim) -> Result<ClaimReply, StoreError> {
        match self.call(Request::Claim(claim.clone())).await? {
            Answer::Claim(reply) => Ok(reply),
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
            Answer::Release(reply) => Ok(reply),
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

    async fn inspect(&self, name: &LockName) -> Result<Vec<Holder>, StoreError> {
        match self.call(Request::Inspect(name.clone())).await? {
            Answer::Inspect(holders) => Ok(holders),
            _ => mixed_up(),
        }
    }

    async fn evict(&self, name: &LockName) -> Result<u32, StoreError> {
        match self.call(Request::Evict(name.clone())).await? {
            Answer::Evict(freed) => Ok(freed),
            _ => mixed_up(),
        }
    }

    fn command_timeout(&self) -> Duration {
        Duration::from_millis(self.world.plan.command_timeout)
    }

    fn claim_now(&self, claim: &Claim, _now: Instant) -> Option<ClaimReply> {
        if !self.claims_now {
            return None;
        }
        match self.at_once(Request::Claim(claim.clone()))? {
            Answer::Claim(reply) => Some(reply),
            _ => None,
        }
    }

    fn release_now(&self, release: &Release, _now: Instant) -> Option<ReleaseReply> {
        if !self.releases_now {
            return None;
        }
        match self.at_once(Request::Release(release.clone()))? {
            Answer::Release(reply) => Some(reply),
            _ => None,
        }
    }
}

impl fmt::Debug for SimStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimStore")
            .field("node", &self.node)
            .finish_non_exhaustive()
    }
}
