//! What happens to the two candidates, and whether it ended well.

use std::error::Error;
use std::time::Duration;

use leader_redis::RedisElector;
use leader_tests::{Postgres, Server, Worker};

use crate::accounts::Accounts;
use crate::candidate::{DEPOSIT, OPENING, SIGNATURE};
use crate::tell;

/// Far more than any step takes.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) async fn play() -> Result<(), Box<dyn Error>> {
    let redis = Server::start().await;
    let postgres = Postgres::start().await;
    let accounts = Accounts::connect(&postgres.url()).await?;
    accounts.create_table().await?;
    tell(format_args!(
        "Two candidates stand for the lead. Leases of 1 s are on Redis, accounts in PostgreSQL.\n"
    ));

    let mut a = Candidate::start("A", &redis, &postgres)?;
    a.until("works").await?;
    a.process.freeze().await;
    tell(format_args!("           (A is frozen with SIGSTOP)"));

    let mut b = Candidate::start("B", &redis, &postgres)?;
    b.until("works").await?;
    b.process.say("go on");
    b.until("done").await?;

    // It finds both when it wakes: that its work is ready, and that its lease is over.
    a.process.say("go on");
    a.process.thaw().await;
    tell(format_args!("           (A wakes, and writes)"));
    a.until("done").await?;
    a.until("stopped").await?;

    let store = RedisElector::builder().url(redis.url()).connect_store();
    let signature = store.await?.fenced_key(SIGNATURE).get().await?;
    let signature = signature.ok_or("nobody has signed")?;
    let (_, fence) = accounts.read(8).await?.ok_or("B did not write")?;
    let rows = (accounts.read(7).await?, accounts.read(8).await?);
    tell(format_args!(
        "\nfenced_postgres: 2 leaders, {} stale writes refused, {} lost lease; account 7 has {}, account 8 has {}, signed by {}, under {}",
        a.count("the write was refused"),
        a.count("lost the lease"),
        rows.0.map_or(0, |(balance, _)| balance),
        rows.1.map_or(0, |(balance, _)| balance),
        String::from_utf8_lossy(signature.value()),
        signature.fence(),
    ));
    let expected = (Some((OPENING + DEPOSIT, fence)), Some((OPENING, fence)));
    let signed = signature.value() == b"B" && signature.fence() == fence;
    if rows != expected || !signed || a.count("the write was refused") != 3 {
        return Err("a write of the stale leader came through".into());
    }
    Ok(())
}

/// A process of its own, whose words are passed on.
struct Candidate {
    name: &'static str,
    process: Worker,
    said: Vec<String>,
}

impl Candidate {
    fn start(
        name: &'static str,
        redis: &Server,
        postgres: &Postgres,
    ) -> Result<Self, Box<dyn Error>> {
        let program = std::env::current_exe()?;
        let program = program
            .to_str()
            .ok_or("the path of this program is no text")?;
        let args = ["candidate", name, &redis.url(), &postgres.url()];
        Ok(Self {
            name,
            process: Worker::spawn(program, &args),
            said: Vec::new(),
        })
    }

    /// Passes on what it says, up to a line that begins with `verb`, unless it has said one before.
    async fn until(&mut self, verb: &str) -> Result<(), Box<dyn Error>> {
        while !self.said.iter().any(|line| line.starts_with(verb)) {
            let line = self.process.next_line(LIMIT).await;
            let line = line.ok_or_else(|| format!("{} does not say `{verb}`", self.name))?;
            if line.trim() != "done" {
                tell(format_args!("{:>10} {line}", self.name));
            }
            self.said.push(line);
        }
        Ok(())
    }

    fn count(&self, words: &str) -> usize {
        let lines = self.said.iter();
        lines.filter(|line| line.contains(words)).count()
    }
}
