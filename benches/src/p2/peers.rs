//! What else there is: our scripts sent bare, `rslock`, and a lock by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Client, Script};
use rslock::LockManager;

use crate::bare::{self, ByFred, CLAIM, RELEASE};
use crate::figure::Outcome;
use crate::ground::fred_client;

const DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const LEASE: Duration = Duration::from_secs(60);

/// Each another one.
#[derive(Clone, Default)]
struct Tokens(Arc<AtomicU64>);

impl Tokens {
    fn next(&self) -> String {
        bare::token(self.0.fetch_add(1, Ordering::Relaxed))
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
            let mut release = self.release.key(&key);
            let release = release.arg(&token).arg(bare::slot(&said)?);
            let said: String = release.invoke_async(&mut self.connection).await?;
            bare::check_released(&said)?;
        }
        Ok(())
    }
}

/// The same by fred, with Nagle's algorithm as ours.
#[derive(Clone)]
pub(super) struct RawByFred(ByFred);

impl RawByFred {
    pub(super) async fn connect(url: &str) -> Outcome<Self> {
        let client = fred_client(url, false).await?;
        Ok(Self(ByFred::load(&client).await?))
    }

    pub(super) async fn runs(self, task: usize, runs: usize) -> Outcome {
        let name = format!("fred:{task}");
        for run in 0..runs {
            self.0.run(&name, (task * runs + run) as u64).await?;
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
