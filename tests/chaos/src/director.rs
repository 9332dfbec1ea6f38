//! The director: starts everything, lets storm and lull take turns until the time is over, and has the logs judged.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use leader_tests::Server;
use tokio::time::{Instant, sleep};

use crate::check::{ALLOWANCE, Verdict, check, counted};
use crate::clock::Clock;
use crate::crew::Crew;
use crate::heart::Heart;
use crate::job::Job;
use crate::nemesis::Nemesis;
use crate::options::Options;
use crate::plan::Plan;
use crate::record::{Log, Record, director_log};
use crate::report::Report;
use crate::site::{Cluster, Quorum, Replicated, Single, Site};
use crate::topology::Topology;
use crate::worker::Orders;

const WORKERS: usize = 5;
/// Below a third of the shortest lease, and no less: a busy machine takes its time.
const COMMAND_MS: u64 = 200;
/// How often a lull looks whether it may end.
const LOOK: Duration = Duration::from_millis(20);
/// How often something is said.
const WORD: Duration = Duration::from_secs(10);

/// Plays what is asked for. Whether there was no violation.
///
/// # Errors
///
/// Something cannot be begun, read or written.
pub async fn run(options: &Options) -> Result<bool, String> {
    if let Some(dir) = &options.check {
        let verdict = check(dir)?;
        let report = Report::new(
            &verdict,
            Duration::from_micros(verdict.story.over - verdict.story.from),
        );
        print!("{}", report.table(&verdict));
        return Ok(verdict.violations.is_empty());
    }
    let mut reports = Vec::new();
    let mut clean = true;
    for (topology, seed) in options.topologies.iter().zip(options.seed..) {
        let dir = tempfile::Builder::new().prefix("leader-chaos-").tempdir();
        let dir = dir
            .map_err(|error| format!("no folder for the logs: {error}"))?
            .keep();
        println!(
            "chaos: {topology} for {} s, seed {seed}, logs in {}",
            options.length.as_secs(),
            dir.display()
        );
        let began = Instant::now();
        let jobs = Job::all(*topology);
        let run = Run {
            topology: *topology,
            seed,
            jobs: &jobs,
            options,
            dir: &dir,
        };
        match topology {
            Topology::Single => run.play(&Single::start(WORKERS).await).await?,
            Topology::Replicated => run.play(&Replicated::start(WORKERS).await).await?,
            Topology::Quorum => run.play(&Quorum::start(WORKERS).await).await?,
            Topology::Cluster => run.play(&Cluster::start(WORKERS, &jobs).await).await?,
        }
        let verdict = check(&dir)?;
        let report = Report::new(&verdict, began.elapsed());
        print!("{}", report.table(&verdict));
        let good = verdict.violations.is_empty();
        put_away(&dir, good && !options.keep, &verdict);
        clean &= good;
        reports.push(report);
    }
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&reports).map_err(|error| error.to_string())?;
        std::fs::write(file, text + "\n")
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if let Some(page) = &options.page {
        let lines: String = reports.iter().map(Report::row).collect();
        let text = std::fs::read_to_string(page)
            .map_err(|error| format!("{}: {error}", page.display()))?;
        std::fs::write(page, text + &lines)
            .map_err(|error| format!("{}: {error}", page.display()))?;
    }
    Ok(clean)
}

fn put_away(dir: &Path, remove: bool, verdict: &Verdict) {
    if remove {
        if let Err(error) = std::fs::remove_dir_all(dir) {
            eprintln!("chaos: {} stays: {error}", dir.display());
        }
    } else {
        println!(
            "chaos: {} violations; the logs are kept in {}, and judged again by `--check`",
            verdict.violations.len(),
            dir.display()
        );
    }
}

/// One run: what is played, and where it is written.
struct Run<'a> {
    topology: Topology,
    seed: u64,
    jobs: &'a [Job],
    options: &'a Options,
    dir: &'a Path,
}

impl Run<'_> {
    async fn play(&self, site: &impl Site) -> Result<(), String> {
        let Self {
            topology,
            seed,
            jobs,
            options,
            dir,
        } = *self;
        let clock = Clock::new();
        let log = Log::create(&director_log(dir)).map_err(|error| format!("no log: {error}"))?;
        log.write(&Record::Run {
            topology,
            seed,
            workers: WORKERS,
            jobs: jobs.to_vec(),
        });
        let resource = Server::start().await;
        let orders = (0..WORKERS).map(|worker| Orders {
            worker,
            life: 0,
            log: PathBuf::new(),
            store: site.store(worker),
            command_ms: COMMAND_MS,
            resource: resource.url(),
            jobs: jobs.to_vec(),
            seed,
            wrong: options.wrong.filter(|_| worker == 0),
        });
        let heart = Heart::start(clock, log.clone());
        let crew = Crew::start(dir.to_owned(), log.clone(), clock, orders.collect()).await;
        let nemesis = Nemesis {
            site,
            crew: &crew,
            log: &log,
            clock,
        };
        let mut plan = Plan::new(topology, WORKERS, Job::longest_lease(jobs), seed);
        let lull = Lull {
            crew: &crew,
            clock,
            heart: &heart,
            jobs,
        };
        lull.wait().await;
        let (begin, mut said) = (Instant::now(), Instant::now());
        let (mut storms, mut faults) = (0, 0);
        while begin.elapsed() < options.length || !plan.had_all() {
            let storm = plan.storm();
            storms += 1;
            faults += storm.iter().map(Vec::len).sum::<usize>();
            nemesis.rage(storm).await;
            lull.wait().await;
            sleep(plan.rest()).await;
            if said.elapsed() >= WORD {
                said = Instant::now();
                println!(
                    "chaos: {} s, {storms} storms, {faults} faults",
                    begin.elapsed().as_secs()
                );
            }
        }
        log.write(&Record::Over { at: clock.now() });
        drop(heart);
        crew.end_all().await;
        for job in jobs {
            for slot in 0..job.slots {
                let key = format!("value:{}#{slot}", job.name);
                let value = resource.command(&["HGET", &key, "fence"]).await;
                if let leader_tests::Reply::Bulk(_) = value {
                    let fence = u64::try_from(value.integer()).unwrap_or_default();
                    log.write(&Record::Value { key, fence });
                }
            }
        }
        Ok(())
    }
}

/// The time after a storm.
struct Lull<'a> {
    crew: &'a Crew,
    clock: Clock,
    heart: &'a Heart,
    jobs: &'a [Job],
}

impl Lull<'_> {
    /// Until every name is led again, or ought to be. Whether that was in time is the checker's to say.
    async fn wait(&self) {
        let (from, stalled) = (self.clock.now(), self.heart.stalled());
        let longest = Job::longest_lease(self.jobs) + Duration::from_millis(ALLOWANCE) + LOOK * 5;
        let is_due = || {
            let (time, stalled) = (self.clock.now() - from, self.heart.stalled() - stalled);
            Duration::from_micros(counted(time, stalled)) > longest
        };
        let mut tails: Vec<Tail> = self
            .crew
            .logs()
            .await
            .into_iter()
            .filter_map(Tail::of)
            .collect();
        let mut led = BTreeSet::new();
        while led.len() < self.jobs.len() && !is_due() {
            sleep(LOOK).await;
            for tail in &mut tails {
                tail.read(|record| match record {
                    Record::Begin { at, name, .. }
                    | Record::Act {
                        at,
                        name,
                        until: Some(_),
                        ..
                    } if at >= from => {
                        led.insert(name);
                    }
                    _ => {}
                });
            }
        }
    }
}

/// What is added to a log from now on.
struct Tail {
    file: File,
    rest: Vec<u8>,
}

impl Tail {
    fn of(path: PathBuf) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        // Lines are written whole, so this is the begin of one.
        file.seek(SeekFrom::End(0)).ok()?;
        Some(Self {
            file,
            rest: Vec::new(),
        })
    }

    fn read(&mut self, mut each: impl FnMut(Record)) {
        // What cannot be read now is read the next time.
        let _ = self.file.read_to_end(&mut self.rest);
        let whole = self
            .rest
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        for line in self
            .rest
            .drain(..whole)
            .collect::<Vec<_>>()
            .split(|byte| *byte == b'\n')
        {
            if let Ok(record) = serde_json::from_slice(line) {
                each(record);
            }
        }
    }
}
