//! `cargo xtask browser`: the workbench's page in a real browser.

use crate::command::{self, Done, cargo, on_path, root, say};
use crate::packages;
use std::env;
use std::fs;

/// Built and tested by this command only: a client of browsers is a large tree, and few have a browser that listens.
const TESTS: &str = "leader-browser-tests";
const WORKBENCH: &str = "leader-workbench";
/// Where the pictures are kept that the documentation shows.
const PICTURES: &str = "docs/workbench";

/// What is needed: the variable that names it, how it is called, and what the managers call its package.
const NEEDED: [(&str, &[&str], &[&str]); 2] = [
    (
        "LEADER_TEST_CHROMIUM",
        &[
            "chromium",
            "chromium-browser",
            "google-chrome",
            "google-chrome-stable",
        ],
        &["chromium", "chromium-browser"],
    ),
    (
        "LEADER_TEST_CHROMEDRIVER",
        &["chromedriver"],
        &["chromium-driver", "chromedriver", "chromium-chromedriver"],
    ),
];

/// What becomes of the pictures that the tests take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pictures {
    Kept,
    NotTaken,
}

pub(crate) fn run(pictures: Pictures, args: &[&str]) -> Done {
    for (variable, programs, names) in NEEDED {
        ensure(variable, programs, names)?;
    }
    // As programs, which the tests run.
    command::run(&mut cargo(&["build", "--package", WORKBENCH, "--examples"]))?;
    let mut tests = cargo(&["test", "--package", TESTS, "--no-fail-fast", "--"]);
    // They wait for leases most of the time, and each browser is several processes.
    tests.arg("--test-threads=2").args(args);
    if pictures == Pictures::Kept {
        let folder = root().join(PICTURES);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        say(&format!("pictures are kept in {}", folder.display()));
        tests.env("LEADER_SCREENSHOTS", folder);
    }
    command::run(&mut tests)
}

/// One test of each kind: all of them take minutes.
const IN_CI: [&str; 5] = [
    "loads::it_loads_and_shows_its_candidates",
    "settings::what_is_out_of_range_is_refused",
    "candidates::a_frozen_leader_is_succeeded",
    "stories::contention",
    "ticks::each_plan_gives_the_table",
];

pub(crate) fn in_ci() -> Done {
    run(Pictures::NotTaken, &IN_CI)
}

/// Finds a program or installs it, and says so.
fn ensure(variable: &str, programs: &[&str], packages: &[&str]) -> Done {
    if let Some(asked) = env::var_os(variable).filter(|it| !it.is_empty()) {
        say(&format!("{variable} asks for {}", asked.display()));
        return Ok(());
    }
    let found = || {
        programs
            .iter()
            .find_map(|name| on_path(name).into_iter().next())
    };
    if let Some(program) = found() {
        say(&format!("the tests use {}", program.display()));
        return Ok(());
    }
    say(&format!(
        "the tests need {}, and it is not here",
        programs[0]
    ));
    let why = match packages::install(packages) {
        Ok(()) if found().is_some() => return Ok(()),
        Ok(()) => "the package has no such program".to_owned(),
        Err(why) => why,
    };
    Err(format!(
        "{} cannot be installed ({why}); install it (on Debian: chromium and chromium-driver), or set {variable}",
        programs[0]
    ))
}
