//! What the director is asked for.

use std::path::PathBuf;
use std::time::Duration;

use crate::topology::Topology;
use crate::worker::Wrong;

/// How it is called.
pub const HELP: &str = "\
Real servers, real worker processes, faults on both sides, and a checker that reads the logs afterwards.

Usage: chaos --topology single|replicated|quorum|cluster|all [options]

  --seconds N     for how long, in each topology; 60 by default
  --seed X        the seed of the first run; by the clock by default. It decides the faults, not their effects
  --json FILE     write the figures there as well
  --page FILE     add a line for each run to the table at the end of that page
  --keep          keep the logs of runs without violations too
  --check DIR     only judge the logs of a run that was kept
  --wrong deaf|unfenced|hoarding
                  let worker 0 be wrong, to see the checker find it out

Exit code: 0 without violations; 1 with some, and they are shown, and where the logs are; 2 for wrong arguments.
";

/// What is to be played.
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) topologies: Vec<Topology>,
    pub(crate) length: Duration,
    pub(crate) seed: u64,
    pub(crate) json: Option<PathBuf>,
    pub(crate) page: Option<PathBuf>,
    pub(crate) keep: bool,
    pub(crate) check: Option<PathBuf>,
    pub(crate) wrong: Option<Wrong>,
}

impl Options {
    /// From the command line, without the program's name.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(args: &[&str]) -> Result<Self, String> {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let mut options = Self {
            topologies: Vec::new(),
            length: Duration::from_secs(60),
            seed: since.map_or(1, |since| since.as_secs()),
            json: None,
            page: None,
            keep: false,
            check: None,
            wrong: None,
        };
        let mut args = args.iter();
        while let Some(option) = args.next() {
            if *option == "--keep" {
                options.keep = true;
                continue;
            }
            let Some(value) = args.next() else {
                return Err(format!("`{option}` is no option, or lacks its value"));
            };
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|_| format!("{option}: no number: {value}"))
            };
            match *option {
                "--topology" if *value == "all" => options.topologies = Topology::ALL.to_vec(),
                "--topology" => options.topologies.push(value.parse()?),
                "--seconds" => options.length = Duration::from_secs(number()?),
                "--seed" => options.seed = number()?,
                "--json" => options.json = Some(value.into()),
                "--page" => options.page = Some(value.into()),
                "--check" => options.check = Some(value.into()),
                "--wrong" => {
                    let wrong = Wrong::named(value);
                    options.wrong = Some(wrong.ok_or_else(|| format!("wrong how? {value}"))?);
                }
                _ => return Err(format!("there is no option `{option}`")),
            }
        }
        if options.topologies.is_empty() && options.check.is_none() {
            return Err(
                "which topology? `--topology single`, replicated, quorum, cluster or all"
                    .to_owned(),
            );
        }
        Ok(options)
    }
}
