//! A plan of candidates as a table: the real engine under paused time, in ticks.
//!
//! `cargo run --example timeline` lists the scenarios; `cargo run --example timeline -- contention` plays one.

use std::io::{self, Write};
use std::process::ExitCode;

use leader_workbench::ticks::{
    Candidate, Language, OnLost, Pause, Plan, Row, Scenario, Stand, play, table,
};
use serde::Serialize;

const OPTIONS: &str = "\
Usage: timeline [SCENARIO] [OPTIONS]

Options, each of which changes the scenario's plan (without a scenario: that of `contention`); times are in ticks:
  --lease N        how long a lease lives, 1 to 30
  --work N         how long the work takes, 1 to 60
  --wait N         how long a candidate waits to be elected, 0 to 60; 0 is one attempt
  --min-lease N    how long a slot is kept even when the work ends early, up to the lease
  --slots N        how many lead at once, 1 to 4
  --stands LIST    who stands when: `0,1,9` is a, b, c; `a@0,b@1,a@9` names them, a to f
  --pause LIST     who is frozen when: `a@2-10`; `none`
  --extend, --no-extend               leases are extended while the work runs, or not
  --keep-working, --stop-working      what the work does when its lease is lost
  --writes, --no-writes               the work writes to a fenced resource as it begins and as it ends, or not
  --json           rows as lines of JSON, without the chart
  --lang en|ko     the language of the table
  -h, --help       this text

Exit code: 0, or 2 when the arguments are wrong.
";

fn main() -> ExitCode {
    match answer(std::env::args().skip(1)) {
        Ok(text) => {
            // A reader that has gone, `head` say, has read all it wanted.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(mistake) => {
            eprintln!("timeline: {mistake}; see --help");
            ExitCode::from(2)
        }
    }
}

fn answer(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let Some(asked) = Asked::read(arguments)? else {
        return Ok(format!("{}\n{OPTIONS}", list(Language::English)));
    };
    let Some(plan) = asked.plan else {
        return Ok(list(asked.language));
    };
    let rows = play(plan.clone()).map_err(|error| error.to_string())?;
    if asked.json {
        return rows.iter().map(|row| json(row, asked.language)).collect();
    }
    let sentence = asked
        .scenario
        .map(|scenario| format!("{}\n", scenario.sentence(asked.language)));
    Ok(format!(
        "{}{}\n\n{}",
        sentence.unwrap_or_default(),
        plan.words(asked.language),
        table(&plan, &rows, asked.language)
    ))
}

/// The row, and its result in words.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    row: &'a Row,
    result: String,
}

fn json(row: &Row, language: Language) -> Result<String, String> {
    let result = row.result(language);
    let line = serde_json::to_string(&Line { row, result }).map_err(|error| error.to_string())?;
    Ok(line + "\n")
}

fn list(language: Language) -> String {
    let head = match language {
        Language::Korean => "시나리오, `cargo run --example timeline -- 이름`:\n",
        Language::English => "Scenarios, for `cargo run --example timeline -- NAME`:\n",
    };
    let scenario = |scenario: &Scenario| {
        let sentence = scenario.sentence(language);
        format!("  {:<12}{sentence}\n", scenario.name())
    };
    let scenarios: Vec<_> = Scenario::ALL.iter().map(scenario).collect();
    head.to_owned() + &scenarios.concat()
}

const FLAGS: [&str; 7] = [
    "--json",
    "--extend",
    "--no-extend",
    "--keep-working",
    "--stop-working",
    "--writes",
    "--no-writes",
];

/// What the arguments ask for.
#[derive(Default)]
struct Asked {
    scenario: Option<Scenario>,
    /// `None` for the list of scenarios.
    plan: Option<Plan>,
    json: bool,
    language: Language,
}

impl Asked {
    /// Reads the arguments: `None` for help.
    fn read(arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut arguments = arguments.peekable();
        let mut asked = Self::default();
        if let Some(name) = arguments.next_if(|first| !first.starts_with('-')) {
            let scenario =
                Scenario::named(&name).ok_or_else(|| format!("there is no scenario `{name}`"))?;
            asked.scenario = Some(scenario);
            asked.plan = Some(scenario.plan());
        }
        while let Some(argument) = arguments.next() {
            let (option, given) = match argument.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            if FLAGS.contains(&option) && given.is_some() {
                return Err(format!("{option} takes no value"));
            }
            let mut value = || {
                given
                    .clone()
                    .or_else(|| arguments.next())
                    .filter(|value| !value.is_empty())
                    .ok_or_else(|| format!("{option} needs a value"))
            };
            match option {
                "-h" | "--help" => return Ok(None),
                "--json" => asked.json = true,
                "--lang" => {
                    let tag = value()?;
                    asked.language = Language::tagged(&tag)
                        .ok_or_else(|| format!("--lang takes en or ko, not `{tag}`"))?;
                }
                _ => change(asked.plan.get_or_insert_default(), option, &mut value)?,
            }
        }
        Ok(Some(asked))
    }
}

/// Changes what `option` says of the plan.
fn change(
    plan: &mut Plan,
    option: &str,
    value: &mut dyn FnMut() -> Result<String, String>,
) -> Result<(), String> {
    let mut number = || {
        let value = value()?;
        value
            .parse()
            .map_err(|_| format!("{option} takes a number of ticks, not `{value}`"))
    };
    match option {
        "--lease" => plan.lease = number()?,
        "--work" => plan.work = number()?,
        "--wait" => plan.wait = number()?,
        "--min-lease" => plan.min_lease = number()?,
        "--slots" => plan.slots = number()?,
        "--extend" => plan.auto_extend = true,
        "--no-extend" => plan.auto_extend = false,
        "--keep-working" => plan.on_lost = OnLost::Continue,
        "--stop-working" => plan.on_lost = OnLost::Stop,
        "--writes" => plan.writes = true,
        "--no-writes" => plan.writes = false,
        "--stands" => plan.stands = stands(&value()?)?,
        "--pause" => plan.pauses = pauses(&value()?)?,
        _ if option.starts_with('-') => return Err(format!("unknown option `{option}`")),
        _ => {
            return Err(format!(
                "`{option}` stands without its option; a scenario comes first"
            ));
        }
    }
    Ok(())
}

fn stands(list: &str) -> Result<Vec<Stand>, String> {
    let stand = |(number, item): (usize, &str)| {
        let (candidate, tick) = match item.split_once('@') {
            Some((letter, tick)) => (candidate(letter), tick),
            None => (Candidate::number(number), item),
        };
        Some(Stand {
            candidate: candidate?,
            tick: tick.parse().ok()?,
        })
    };
    let stands: Option<Vec<_>> = list.split(',').enumerate().map(stand).collect();
    stands.ok_or_else(|| {
        format!("--stands takes ticks of a to f, as `0,1,9` or `a@0,b@1,a@9`, not `{list}`")
    })
}

fn pauses(list: &str) -> Result<Vec<Pause>, String> {
    if list == "none" {
        return Ok(Vec::new());
    }
    let pause = |item: &str| {
        let (letter, ticks) = item.split_once('@')?;
        let (from, until) = ticks.split_once('-')?;
        Some(Pause {
            candidate: candidate(letter)?,
            from: from.parse().ok()?,
            until: until.parse().ok()?,
        })
    };
    let pauses: Option<Vec<_>> = list.split(',').map(pause).collect();
    pauses.ok_or_else(|| format!("--pause takes `a@2-10`, or `none`, not `{list}`"))
}

fn candidate(letter: &str) -> Option<Candidate> {
    Candidate::try_from(letter.parse::<char>().ok()?).ok()
}
