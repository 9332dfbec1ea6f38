//! The [`World`] of one run: the server and its troubles, the facts, the invariants, the trace.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leader_core::store::HintSender;
use leader_core::{LeaseHandle, LockName};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::event::{Event, Line, RunNo, TokenNo};
use crate::facts::{Facts, RunFact};
use crate::freeze::Freezer;
use crate::invariants::{Invariant, all};
use crate::model::{Model, Moment};
use crate::plan::{Plan, Stand};
use crate::register::Register;
use crate::server::Server;
use crate::tally::Tally;

/// The microseconds on the server's wall clock when a run begins.
const EPOCH: u64 = 1_700_000_000_000_000;
/// More messages than this in one run, and somebody asks in a hot loop.
const MANY: u64 = 20_000;

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: &'static str,
    /// What happened.
    pub what: String,
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) names: Vec<LockName>,
    pub(crate) begun: Instant,
    pub(crate) freezers: Vec<Freezer>,
    /// Rung when an invariant did not hold.
    pub(crate) broken: Notify,
    /// Rung when the server goes on after it hung.
    pub(crate) resumed: Notify,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) server: Server,
    /// What replicas knew when they fell behind, by the fault's number.
    pub(crate) copies: BTreeMap<usize, Model>,
    pub(crate) down: u32,
    pub(crate) hanging: u32,
    pub(crate) watchers: BTreeMap<u64, Watcher>,
    next_watcher: u64,
    messages: u64,
    /// Messages by sender.
    pub(crate) sent: Vec<u64>,
    steps: u64,
    tokens: BTreeMap<[u8; 16], TokenNo>,
    pub(crate) register: Register,
    pub(crate) facts: Facts,
    invariants: Vec<Box<dyn Invariant>>,
    pub(crate) tally: Tally,
    trace: Option<String>,
    violation: Option<Violation>,
}

/// Somebody to be told of releases.
pub(crate) struct Watcher {
    pub(crate) node: usize,
    pub(crate) name: usize,
    pub(crate) hints: HintSender,
}

impl World {
    pub(crate) fn new(plan: &Plan, tracing: bool) -> Arc<Self> {
        let begun = Instant::now();
        let names = (0..plan.names()).filter_map(|name| LockName::new(format!("n{name}")).ok());
        let freezers: Vec<_> = plan.candidates.iter().map(|_| Freezer::default()).collect();
        Arc::new(Self {
            plan: plan.clone(),
            names: names.collect(),
            begun,
            freezers: freezers.clone(),
            broken: Notify::new(),
            resumed: Notify::new(),
            state: Mutex::new(State {
                server: Server::new(plan.server, EPOCH),
                copies: BTreeMap::new(),
                down: 0,
                hanging: 0,
                watchers: BTreeMap::new(),
                next_watcher: 0,
                messages: 0,
                sent: vec![0; plan.candidates.len()],
                steps: 0,
                tokens: BTreeMap::new(),
                register: Register::default(),
                facts: Facts::new(plan.clone(), begun, freezers.clone()),
                invariants: all(),
                tally: Tally::default(),
                trace: tracing.then(String::new),
                violation: None,
            }),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, event: &Event) {
        if self.lock().tell(event) {
            self.broken.notify_one();
        }
    }

    /// Something is wrong that no invariant was asked about.
    pub(crate) fn fail(&self, invariant: &'static str, what: String) {
        self.lock()
            .violation
            .get_or_insert(Violation { invariant, what });
        self.broken.notify_one();
    }

    /// Opens the book on a new attempt.
    pub(crate) fn stood(
        &self,
        (node, task): (usize, usize),
        stand: &Stand,
        guarded: bool,
        last: bool,
    ) -> RunNo {
        let frozen = self.freezers[node].total();
        let mut state = self.lock();
        let run = state.facts.runs.len();
        state.facts.runs.push(RunFact {
            node,
            name: stand.name,
            stand: stand.clone(),
            guarded,
            last,
            begun: Instant::now(),
            frozen,
            lease: None,
            fence: None,
            granted: None,
            bodies: 0,
            body_end: None,
            letting_go: None,
            dropped: false,
            over: None,
        });
        drop(state);
        self.tell(&Event::Stood {
            run,
            node,
            task,
            name: stand.name,
        });
        run
    }

    pub(crate) fn granted(&self, run: RunNo, lease: &LeaseHandle) {
        let (node, name) = {
            let fact = &mut self.lock().facts.runs[run];
            fact.lease = Some(lease.clone());
            fact.bodies += 1;
            (fact.node, fact.name)
        };
        let (slot, fence) = (lease.slot(), lease.fence().get());
        self.tell(&Event::Granted {
            run,
            node,
            name,
            slot,
            fence,
        });
    }

    /// By how long `node` has been frozen since `run` began.
    pub(crate) fn frozen_since(&self, node: usize, earlier: Duration) -> Duration {
        self.freezers[node].total().saturating_sub(earlier)
    }

    pub(crate) fn violation(&self) -> Option<Violation> {
        self.lock().violation.clone()
    }

    pub(crate) fn trace(&self) -> String {
        self.lock().trace.clone().unwrap_or_default()
    }
}

impl State {
    /// Whether an invariant does not hold.
    pub(crate) fn tell(&mut self, event: &Event) -> bool {
        let at = Instant::now();
        if let Some(trace) = &mut self.trace {
            let since = self.facts.begun;
            // Writing to a string does not fail.
            let _ = writeln!(trace, "{}", Line { since, at, event });
        }
        self.tally.count(event);
        self.facts.learn(at, event);
        for invariant in &mut self.invariants {
            if self.violation.is_some() {
                break;
            }
            if let Err(what) = invariant.see(at, event, &self.facts) {
                let invariant = invariant.name();
                if let Some(trace) = &mut self.trace {
                    let _ = writeln!(trace, "!!!! {invariant}: {what}");
                }
                self.violation = Some(Violation { invariant, what });
            }
        }
        self.violation.is_some()
    }

    pub(crate) fn next_message(&mut self) -> u64 {
        self.messages += 1;
        if self.messages > MANY {
            self.violation.get_or_insert(Violation {
                invariant: "quiet",
                what: format!("more than {MANY} messages: somebody asks in a hot loop"),
            });
        }
        self.messages
    }

    pub(crate) fn next_watcher(&mut self) -> u64 {
        self.next_watcher += 1;
        self.next_watcher
    }

    /// The next step's moment. A step takes the server a microsecond at least.
    pub(crate) fn moment(&mut self) -> Moment {
        self.steps += 1;
        let now = Instant::now();
        let elapsed = u64::try_from((now - self.facts.begun).as_micros()).unwrap_or(u64::MAX);
        Moment {
            now,
            micros: EPOCH + elapsed + self.steps,
        }
    }

    /// The number of a token.
    pub(crate) fn token(&mut self, key: [u8; 16]) -> TokenNo {
        let next = self.tokens.len();
        *self.tokens.entry(key).or_insert(next)
    }
}
