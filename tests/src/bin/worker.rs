//! The second process of the scenarios that need one: a candidate that tells what it does, a line at a time.
//!
//! ```text
//! worker wait                                     says `ready` and waits
//! worker lead URL NAME LEASE_MS WAIT_MS [extend]  runs one guarded body that says `tick N` until it is stopped
//! worker hold URL NAME LEASE_MS [extend]          holds a lease by hand, and says whether it is valid, and the wall clock
//! worker campaign URL NAME LOG                    leads for long, writes what its body does to LOG, and obeys `resign`,
//!                                                 `stand`, and SIGTERM
//! worker contend URL NAME TASKS                   stands with many tasks at once, again and again
//! ```
//!
//! It ends when its standard input is closed, as it is when the test ends, however that ends.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use leader_core::{ElectorExt, LeaderError, LeadershipChange, LeaseHandle, LeaseOptions};
use leader_redis::RedisElector;
use leader_tests::elector_at;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

type Outcome = Result<(), Box<dyn Error>>;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = if let ["campaign", url, name, log] = args.as_slice() {
        campaign(url, name, log).await
    } else {
        tokio::select! {
            done = work(&args) => done,
            () = closed() => Ok(()),
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error {error}");
            ExitCode::FAILURE
        }
    }
}

async fn work(args: &[&str]) -> Outcome {
    match args {
        [] | ["wait"] => {
            println!("ready");
            std::future::pending().await
        }
        ["lead", url, name, lease, wait, extend @ ..] => {
            let elector = patient_elector(url).await?;
            lead(&elector, name, &options(lease, wait, extend)?).await
        }
        ["hold", url, name, lease, extend @ ..] => {
            let elector = patient_elector(url).await?;
            hold(&elector, name, &options(lease, "20000", extend)?).await
        }
        ["contend", url, name, tasks] => {
            let elector = patient_elector(url).await?;
            contend(&elector, name, tasks.parse()?).await
        }
        _ => Err(format!("no such work: {args:?}").into()),
    }
}

/// Gives each command five seconds, for a busy machine.
async fn patient_elector(url: &str) -> Result<RedisElector, LeaderError> {
    let builder = elector_at(url).command_timeout(Duration::from_secs(5));
    builder.connect().await
}

/// Ends when nobody can speak to this process any more.
async fn closed() {
    let mut ignored = [0; 64];
    while matches!(tokio::io::stdin().read(&mut ignored).await, Ok(read) if read > 0) {}
}

fn options(lease: &str, wait: &str, extend: &[&str]) -> Result<LeaseOptions, Box<dyn Error>> {
    Ok(LeaseOptions::builder()
        .lease(Duration::from_millis(lease.parse()?))
        .wait(Duration::from_millis(wait.parse()?))
        .auto_extend(extend == ["extend"])
        .build()?)
}

async fn lead(elector: &RedisElector, name: &str, options: &LeaseOptions) -> Outcome {
    println!("standing");
    let run = elector.run_if_leader(name, options, |lease| async move {
        println!("leading {}", lease.fence());
        for tick in 0.. {
            println!("tick {tick}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    match run.await {
        Ok(Some(())) => println!("ended"),
        Ok(None) => println!("skipped"),
        Err(LeaderError::LeaseLost { fence, reason, .. }) => {
            println!("lost {fence} {}", reason.as_str());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Leads until it is told to end, by a signal or by the end of its standard input.
async fn campaign(url: &str, name: &str, log: &str) -> Outcome {
    let elector = patient_elector(url).await?;
    let log = Arc::new(OpenOptions::new().append(true).open(log)?);
    let options = LeaseOptions::builder()
        .lease(Duration::from_secs(60))
        .build()?;
    let campaign = elector.campaign(name, &options, move |lease| {
        let log = log.clone();
        async move {
            let stop = lease.cancellation_token();
            note(&log, "begin", &lease)?;
            while !stop.is_cancelled() {
                let pause = tokio::time::sleep(Duration::from_millis(2));
                tokio::select! { () = pause => {}, () = stop.cancelled() => {} }
                note(&log, "step", &lease)?;
            }
            // The end of a real body takes its time.
            tokio::time::sleep(Duration::from_millis(5)).await;
            note(&log, "end", &lease)
        }
    });
    let mut changes = campaign.subscribe();
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let mut terminated = signal(SignalKind::terminate())?;
    println!("standing");
    loop {
        tokio::select! {
            _ = terminated.recv() => break,
            change = changes.next() => match change {
                Some(LeadershipChange::Granted { fence, .. }) => println!("leading {fence}"),
                Some(LeadershipChange::Revoked { fence, reason, .. }) => println!("revoked {fence}: {reason}"),
                other => println!("error {other:?}"),
            },
            order = orders.next_line() => match order?.as_deref() {
                Some("resign") => {
                    campaign.resign().await?;
                    println!("resigned");
                }
                Some("stand") => campaign.stand(),
                Some(other) => println!("error no such order: {other}"),
                None => break,
            },
        }
    }
    elector.shutdown().await;
    println!("shut down");
    // The runtime would wait for the end of a read of standard input that nobody ends.
    std::process::exit(0)
}

/// One line, written at once: what happens in two processes keeps its order.
fn note(mut log: &File, what: &str, lease: &LeaseHandle) -> std::io::Result<()> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let line = format!("{what} {} {}\n", lease.fence(), now.as_micros());
    log.write_all(line.as_bytes())
}

async fn hold(elector: &RedisElector, name: &str, options: &LeaseOptions) -> Outcome {
    println!("standing");
    let lease = elector.try_acquire(name, options).await?.ok_or("skipped")?;
    println!("leading {}", lease.fence());
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let wall = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        println!(
            "{} {wall}",
            if lease.is_valid() { "valid" } else { "invalid" }
        );
    }
}

async fn contend(elector: &RedisElector, name: &str, tasks: usize) -> Outcome {
    let options = Arc::new(
        LeaseOptions::builder()
            .wait(Duration::from_secs(120))
            .lease(Duration::from_secs(60))
            .build()?,
    );
    println!("standing");
    let failed = Arc::new(AtomicBool::new(false));
    let mut standing = JoinSet::new();
    for task in 0..tasks {
        let (elector, name, options) = (elector.clone(), name.to_owned(), options.clone());
        let failed = failed.clone();
        standing.spawn(async move {
            while !failed.load(Ordering::Relaxed) {
                let led = elector
                    .run_if_leader(name.as_str(), &options, |lease| async move {
                        println!("led {} by task {task}", lease.fence());
                    })
                    .await;
                if let Err(error) = led {
                    println!("error {error}");
                    failed.store(true, Ordering::Relaxed);
                }
            }
        });
    }
    while standing.join_next().await.is_some() {}
    Err("a task failed".into())
}
