//! The PostgreSQL that some tests write to. The harness finds it by the same rules; here it is made sure that it will.

use crate::command::{Done, on_path, say};
use crate::packages;
use std::env;
use std::fs;
use std::path::PathBuf;

/// What the managers call it, the most common name first.
const PACKAGES: [&str; 3] = ["postgresql", "postgresql-server", "postgresql17"];

/// Finds the programs or installs them, and says which.
pub(crate) fn ensure() -> Done {
    if let Some(folder) = env::var_os("LEADER_TEST_POSTGRES_BIN").filter(|it| !it.is_empty()) {
        say(&format!(
            "LEADER_TEST_POSTGRES_BIN asks for {}",
            PathBuf::from(folder).display()
        ));
        return Ok(());
    }
    if found() {
        return Ok(());
    }
    say("some tests need PostgreSQL, and it is not here");
    let why = match packages::install(&PACKAGES) {
        Ok(()) if found() => return Ok(()),
        Ok(()) => "the package has no server where it is looked for".to_owned(),
        Err(why) => why,
    };
    Err(format!(
        "PostgreSQL cannot be installed ({why}); install it, or set LEADER_TEST_POSTGRES_BIN (see CONTRIBUTING.md)"
    ))
}

fn found() -> bool {
    let programs = on_path("initdb").into_iter();
    // Where Debian and its kin keep it, one folder per version.
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let versions = versions.map(|version| version.path().join("bin/initdb"));
    let Some(program) = programs.chain(versions).find(|program| program.is_file()) else {
        return false;
    };
    say(&format!(
        "the tests use {}",
        program.with_file_name("postgres").display()
    ));
    true
}
