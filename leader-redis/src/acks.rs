//! [`Acks`]: leases count only once replicas have acknowledged them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leader_core::LeaderError;
use tokio::sync::oneshot;

use crate::client::{Acked, Call, Connection, Place, Wait};
use crate::fault::{Failure, Shortage};
use crate::reply::{self, Reply};
use crate::runtime::Lodging;
use crate::script::EXTEND;

/// Servers look ten times a second whether a wait is over.
const TICK: Duration = Duration::from_millis(100);

/// How many replicas have to acknowledge, and within what time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) replicas: u32,
    pub(crate) limit: Duration,
    pub(crate) place: Place,
}

impl Need {
    /// How long a group may take beyond the time of a command.
    pub(crate) fn patience(&self) -> Duration {
        self.limit + TICK
    }

    pub(crate) fn check(&self) -> Result<(), LeaderError> {
        let (shortest, longest) = (Duration::from_millis(1), Duration::from_secs(60));
        let reason = if self.replicas == 0 {
            "it asks for none; let at least one replica acknowledge, or leave it out".to_owned()
        } else if (shortest..=longest).contains(&self.limit) {
            return Ok(());
        } else {
            let limit = self.limit;
            format!("{limit:?} is out of range; acknowledgements may take 1 ms to 60 s")
        };
        let option = match self.place {
            Place::Memory => "replica_ack",
            Place::Disk => "replica_ack_on_disk",
        };
        Err(LeaderError::invalid_options(option, reason))
    }

    fn wait(&self) -> Wait {
        Wait {
            replicas: self.replicas,
            limit: self.limit,
            place: self.place,
        }
    }
}

/// Extends leases on a connection of its own, and waits until replicas have acknowledged that.
///
/// A server that waits serves that connection nothing else meanwhile, so it is not the one for everything else. What was
/// granted on the other is extended here, if it is still in force, which is a write and so can be waited for. That the
/// lease is in force on the very server that then waits also holds when one of the connections has gone to another server
/// meanwhile, in a failover.
///
/// While one group waits for its acknowledgement the next one gathers: however many leases there are, the server is told
/// to wait once for each group.
pub(crate) struct Acks {
    desk: Arc<Desk>,
    lodging: Lodging,
}

struct Desk {
    connection: Connection,
    need: Need,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Entry>,
    at_work: bool,
}

struct Entry {
    call: Call,
    done: oneshot::Sender<Answer>,
}

/// What came of a call.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What the script has answered.
    pub(crate) reply: Result<Reply, Failure>,
    /// Whether what it wrote was acknowledged.
    pub(crate) acknowledged: Result<(), Failure>,
}

impl Acks {
    pub(crate) fn new(connection: Connection, need: Need, lodging: Lodging) -> Self {
        Self {
            desk: Arc::new(Desk {
                connection,
                need,
                queue: Mutex::default(),
            }),
            lodging,
        }
    }

    /// Runs the script that extends, and waits for the acknowledgement of what it wrote.
    pub(crate) async fn extend(&self, call: Call) -> Answer {
        let (done, answer) = oneshot::channel();
        let idle = {
            let mut queue = self.desk.queue();
            queue.waiting.push(Entry { call, done });
            !std::mem::replace(&mut queue.at_work, true)
        };
        if idle {
            let desk = self.desk.clone();
            self.lodging.spawn(async move { desk.work().await });
        }
        answer.await.unwrap_or_else(|_| {
            let failure = Failure::Cut("its runtime has ended".to_owned());
            Answer {
                reply: Err(failure.clone()),
                acknowledged: Err(failure),
            }
        })
    }

    pub(crate) fn need(&self) -> &Need {
        &self.desk.need
    }

    pub(crate) async fn close(&self) {
        self.desk.connection.close().await;
    }
}

impl Desk {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one group after the other until nobody waits.
    async fn work(&self) {
        while let Some((calls, done)) = self.next_group() {
            let wait = self.need.wait();
            let Acked { answers, waited } =
                self.connection.run_and_wait(&EXTEND, &calls, wait).await;
            let acknowledged = self.judge(waited).await;
            for (done, reply) in done.into_iter().zip(answers) {
                let _ = done.send(Answer {
                    reply,
                    acknowledged: acknowledged.clone(),
                });
            }
        }
    }

    fn next_group(&self) -> Option<(Vec<Call>, Vec<oneshot::Sender<Answer>>)> {
        let mut queue = self.queue();
        let waiting = std::mem::take(&mut queue.waiting);
        // Whoever has given up meanwhile releases, or will.
        let wanted = waiting.into_iter().filter(|entry| !entry.done.is_closed());
        let (calls, done): (Vec<_>, Vec<_>) = wanted.map(|entry| (entry.call, entry.done)).unzip();
        queue.at_work = !calls.is_empty();
        queue.at_work.then_some((calls, done))
    }

    async fn judge(&self, waited: Result<Reply, Failure>) -> Result<(), Failure> {
        let Need {
            replicas: needed,
            limit: within,
            place,
        } = self.need;
        let acknowledged = reply::acknowledged(&waited?)?;
        if acknowledged.replicas >= u64::from(needed) && acknowledged.by_server {
            return Ok(());
        }
        let told = self.connection.info("replication").await;
        Err(Failure::TooFew(Shortage {
            acknowledged: acknowledged.replicas,
            needed,
            within,
            connected: told.ok().and_then(|told| reply::online_replicas(&told)),
            what: match place {
                Place::Memory => "acknowledged",
                Place::Disk if acknowledged.by_server => "acknowledged on disk",
                Place::Disk => "acknowledged on disk, but the server itself did not,",
            },
        }))
    }
}
