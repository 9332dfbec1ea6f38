//! The floors: what a run and a hand-over cost without the engine, by the same client or by nothing but a socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use leader_redis::fred::interfaces::ClientLike;
use leader_redis::fred::prelude::Client;
use leader_redis::fred::types::{ClusterHash, CustomCommand};

use crate::figure::Outcome;

pub(crate) const CLAIM: &str = include_str!("../../leader-redis/src/scripts/claim.lua");
pub(crate) const RELEASE: &str = include_str!("../../leader-redis/src/scripts/release.lua");
/// In microseconds.
const LEASE: &str = "60000000";
const NODE: &str = "peer:1:00000000";

/// A token of 32 digits as ours; each number another one.
pub(crate) fn token(number: u64) -> String {
    format!("{number:032x}")
}

pub(crate) fn key(name: &str) -> String {
    format!("bare:{{{name}}}:lease")
}

pub(crate) fn channel(name: &str) -> String {
    format!("bare:{{{name}}}:released")
}

/// The slot of a grant.
pub(crate) fn slot(said: &str) -> Outcome<&str> {
    let granted = said.strip_prefix("granted:");
    let slot = granted.and_then(|rest| rest.split(':').next());
    slot.ok_or_else(|| format!("a claim was answered {said}").into())
}

pub(crate) fn check_released(said: &str) -> Outcome {
    if said.starts_with("released:") {
        return Ok(());
    }
    Err(format!("a release was answered {said}").into())
}

/// The two scripts, sent by fred.
#[derive(Clone)]
pub(crate) struct ByFred {
    client: Client,
    claim: String,
    release: String,
}

impl ByFred {
    pub(crate) async fn load(client: &Client) -> Outcome<Self> {
        let load = async |script: &str| {
            let args = vec!["LOAD".to_owned(), script.to_owned()];
            client
                .custom::<String, String>(command("SCRIPT"), args)
                .await
        };
        Ok(Self {
            claim: load(CLAIM).await?,
            release: load(RELEASE).await?,
            client: client.clone(),
        })
    }

    /// Claims and releases `name`.
    pub(crate) async fn run(&self, name: &str, number: u64) -> Outcome {
        let (key, token) = (key(name), token(number));
        let claim = [&self.claim, "1", &key, &token, LEASE, "1", NODE];
        let said = self.ask(&claim).await?;
        let release = [&self.release, "1", &key, &token, slot(&said)?];
        check_released(&self.ask(&release).await?)
    }

    async fn ask(&self, args: &[&str]) -> Outcome<String> {
        let args: Vec<String> = args.iter().copied().map(str::to_owned).collect();
        Ok(self.client.custom(command("EVALSHA"), args).await?)
    }
}

fn command(name: &'static str) -> CustomCommand {
    CustomCommand::new_static(name, ClusterHash::Random, false)
}

/// A blocking connection: no runtime, no client library, one command at a time.
pub(crate) struct Socket {
    read: BufReader<TcpStream>,
    write: TcpStream,
}

impl Socket {
    pub(crate) fn connect(url: &str) -> Outcome<Self> {
        let address = url.trim_start_matches("redis://").trim_end_matches('/');
        let write = TcpStream::connect(address)?;
        write.set_nodelay(true)?;
        write.set_read_timeout(Some(Duration::from_secs(60)))?;
        let read = BufReader::new(write.try_clone()?);
        Ok(Self { read, write })
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn ask(&mut self, command: &[&str]) -> Outcome<String> {
        let mut bytes = Vec::new();
        write!(bytes, "*{}\r\n", command.len())?;
        for part in command {
            write!(bytes, "${}\r\n{part}\r\n", part.len())?;
        }
        self.write.write_all(&bytes)?;
        self.told()
    }

    /// The next thing that the server says; the last part of it, if it has several.
    pub(crate) fn told(&mut self) -> Outcome<String> {
        let mut line = String::new();
        self.read.read_line(&mut line)?;
        let line = line.trim_end();
        let (kind, rest) = line.split_at_checked(1).ok_or("the server has gone")?;
        match kind {
            "+" | ":" => Ok(rest.to_owned()),
            "$" => {
                let mut text = vec![0; rest.parse::<usize>()? + 2];
                self.read.read_exact(&mut text)?;
                Ok(String::from_utf8(text)?.trim_end().to_owned())
            }
            "*" => {
                let mut last = String::new();
                for _ in 0..rest.parse::<usize>()? {
                    last = self.told()?;
                }
                Ok(last)
            }
            _ => Err(format!("the server said {line}").into()),
        }
    }

    pub(crate) fn load(&mut self) -> Outcome<[String; 2]> {
        let claim = self.ask(&["SCRIPT", "LOAD", CLAIM])?;
        Ok([claim, self.ask(&["SCRIPT", "LOAD", RELEASE])?])
    }

    pub(crate) fn claim(&mut self, claim: &str, name: &str, number: u64) -> Outcome<String> {
        let (key, token) = (key(name), token(number));
        let said = self.ask(&["EVALSHA", claim, "1", &key, &token, LEASE, "1", NODE])?;
        Ok(slot(&said)?.to_owned())
    }

    pub(crate) fn release(
        &mut self,
        release: &str,
        name: &str,
        number: u64,
        slot: &str,
    ) -> Outcome {
        let (key, token) = (key(name), token(number));
        check_released(&self.ask(&["EVALSHA", release, "1", &key, &token, slot])?)
    }
}
