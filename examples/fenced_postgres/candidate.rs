//! The process that stands for the lead, and writes as the leader.

use std::error::Error;
use std::fmt;
use std::io::BufRead as _;
use std::sync::Arc;
use std::time::Duration;

use leader_core::{ElectorExt, FencingToken, LeaseOptions};
use leader_redis::{FencedKey, RedisElector};
use tokio::sync::Notify;

use crate::accounts::Accounts;
use crate::tell;

/// Where in Redis the leader signs for what it has written.
pub(crate) const SIGNATURE: &str = "accounts:signed-by";

/// What the leader deposits, and the opening balance.
pub(crate) const DEPOSIT: i64 = 50;
pub(crate) const OPENING: i64 = 100;

pub(crate) async fn stand(name: &str, redis: &str, postgres: &str) -> Result<(), Box<dyn Error>> {
    let elector = RedisElector::builder().url(redis).node_id(name);
    let elector = elector.connect().await?;
    let accounts = Accounts::connect(postgres).await?;
    let options = LeaseOptions::builder()
        .wait(Duration::from_secs(60))
        // Whoever is frozen for longer is followed.
        .lease(Duration::from_secs(1))
        .auto_extend(true)
        .build()?;
    let signature = elector.store().fenced_key(SIGNATURE);
    let writer = Writer {
        name: name.to_owned(),
        accounts,
        signature,
    };
    let told = a_word_on_standard_input();

    let led = elector
        .run_if_leader("accounts", &options, |lease| async move {
            let fence = lease.fence();
            say("leads", format_args!("with fencing token {fence}"));
            // A task that the body spawns is one of the things that a lost lease does not stop.
            let work = tokio::spawn(writer.work(fence, told));
            let _ = work.await;
        })
        .await;
    match led {
        Ok(Some(())) => say("ended", format_args!("as the leader")),
        Ok(None) => say("skipped", format_args!("")),
        Err(error) => say("stopped", format_args!("{error}")),
    }
    // Until the story is over: then standard input is closed, and the process ends.
    std::future::pending().await
}

/// What the leader does with the two resources.
struct Writer {
    name: String,
    accounts: Accounts,
    signature: FencedKey,
}

impl Writer {
    /// Whatever the outcome, it is told, and the next one is tried.
    async fn work(self, fence: FencingToken, told: Arc<Notify>) {
        let accounts = &self.accounts;
        match accounts.read(7).await {
            Ok(None) => match accounts.open(fence, 7, OPENING).await {
                Ok(()) => say("opens", format_args!("account 7 with {OPENING}")),
                Err(error) => say("cannot", format_args!("open account 7: {error}")),
            },
            Ok(Some((balance, _))) => say("reads", format_args!("account 7: {balance}")),
            Err(error) => say("cannot", format_args!("read account 7: {error}")),
        }

        say("works", format_args!("out what to write"));
        told.notified().await;

        match accounts.deposit(fence, 7, DEPOSIT).await {
            Ok(()) => say("deposits", format_args!("{DEPOSIT} to account 7")),
            Err(error) => say("cannot", format_args!("deposit to account 7: {error}")),
        }
        match accounts.open(fence, 8, OPENING).await {
            Ok(()) => say("opens", format_args!("account 8 with {OPENING}")),
            Err(error) => say("cannot", format_args!("open account 8: {error}")),
        }
        match self.signature.set(fence, &self.name).await {
            Ok(()) => say("signs", format_args!("in Redis")),
            Err(error) => say("cannot", format_args!("sign in Redis: {error}")),
        }
        say("done", format_args!(""));
    }
}

/// The word that the work takes no longer. The process ends with its standard input.
fn a_word_on_standard_input() -> Arc<Notify> {
    let word = Arc::new(Notify::new());
    let told = word.clone();
    std::thread::spawn(move || {
        for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
            told.notify_one();
        }
        std::process::exit(0);
    });
    word
}

fn say(verb: &str, words: fmt::Arguments<'_>) {
    tell(format_args!("{verb} {words}"));
}
