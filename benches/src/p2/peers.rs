//! What else there is: our scripts sent bare, `rslock`, and a lock by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, Script};
use rslock::LockManager;

use crate::figure::Outcome;

const CLAIM: &str = include_str!("../../../leader-redis/src/scripts/claim.lua");
const RELEASE: &str = include_str!("../../../leader-redis/src/scripts/release.lua");
const DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const LEASE: Duration = Duration::from_secs(60);

/// Tokens of 32 digits as ours; each is another one.
#[derive(Clone, Default)]
struct Tokens(Arc<AtomicU64>);

impl Tokens {
    fn next(&self) -> String {
        format!("{:032x}", self.0.fetch_add(1, Ordering::Relaxed))
    }
}

async fn connection(url: &str) -> Outcome<MultiplexedConnection> {
    Ok(Client::open(url)?
        .get_multiplexed_async_connection()
        .await?)
}

/// The same two scripts with the same keys and arguments, without the engine.
#[derive(Clone)]
pub(super) struct Raw {
    connection: MultiplexedConnection,
    claim: Arc<Script>,
    release: Arc<Script>,
    tokens: Tokens,
}

impl Raw {
    pub(super) async fn connect(url: &str) -> Outcome<Self> {
        Ok(Self {
            connection: connection(url).await?,
            claim: Arc::new(Script::new(CLAIM)),
            release: Arc::new(Script::new(RELEASE)),
            tokens: Tokens::default(),
        })
    }

    pub(super) async fn runs(mut self, task: usize, runs: usize) -> Outcome {
        let key = format!("raw:{{partner:{task}}}:lease");
        for _ in 0..runs {
            let token = self.tokens.next();
            let mut claim = self.claim.key(&key);
            claim.arg(&token).arg(60_000_000).arg(1);
            let claim = claim.arg("peer:1:00000000");
            let said: String = claim.invoke_async(&mut self.connection).await?;
            let slot = said
                .strip_prefix("granted:")
                .and_then(|rest| rest.split(':').next());
            let slot = slot.ok_or_else(|| format!("a claim was answered {said}"))?;
            let mut release = self.release.key(&key);
            let release = release.arg(&token).arg(slot);
            let said: String = release.invoke_async(&mut self.connection).await?;
            if !said.starts_with("released:") {
                return Err(format!("a release was answered {said}").into());
            }
        }
        Ok(())
    }
}

/// `SET NX PX`, and a script that compares and deletes.
#[derive(Clone)]
pub(super) struct SetNx {
    connection: MultiplexedConnection,
    delete: Arc<Script>,
    tokens: Tokens,
}

impl SetNx {
    pub(super) async fn connect(url: &str) -> Outcome<Self> {
        Ok(Self {
            connection: connection(url).await?,
            delete: Arc::new(Script::new(DELETE)),
            tokens: Tokens::default(),
        })
    }

    pub(super) async fn runs(mut self, task: usize, runs: usize) -> Outcome {
        let key = format!("set-nx:{task}");
        for _ in 0..runs {
            let token = self.tokens.next();
            let mut set = redis::cmd("SET");
            set.arg(&key).arg(&token).arg("NX").arg("PX");
            let set = set.arg(60_000);
            let done: Option<String> = set.query_async(&mut self.connection).await?;
            done.ok_or("somebody else has the key")?;
            let mut delete = self.delete.key(&key);
            let deleted: u32 = delete
                .arg(&token)
                .invoke_async(&mut self.connection)
                .await?;
            if deleted != 1 {
                return Err("the key was gone".into());
            }
        }
        Ok(())
    }
}

pub(super) fn rslock(url: &str) -> LockManager {
    LockManager::new(vec![url])
}

pub(super) async fn rslocks(manager: LockManager, task: usize, runs: usize) -> Outcome {
    let key = format!("rslock:{task}").into_bytes();
    for _ in 0..runs {
        let lock = manager.lock(&key[..], LEASE).await?;
        manager.unlock(&lock).await;
    }
    Ok(())
}
