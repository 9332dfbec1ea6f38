//! P9: how much longer a service is built for the first time when it takes this library, than with the client alone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::figure::{Figure, Goal, Outcome, Reading};
use crate::rounds::median;
use leader_benches::cpu;

pub(crate) const FIGURE: Figure = Figure {
    id: "P9",
    what: "cold build of a service with leader-core and leader-redis, to one with fred alone",
    measure,
    play: None,
};

const ROUNDS: usize = 5;
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What a service with fred depends on. Its features are those that the library turns on.
const FRED: &str = r#"
fred = { version = "10.1", default-features = false, features = ["i-scripts", "sentinel-auth", "sha-1", "subscriber-client"] }
tokio = { version = "1", features = ["macros", "rt-multi-thread", "time"] }
"#;

fn measure() -> Outcome<Vec<Reading>> {
    let dir = tempfile::tempdir()?;
    let root = fs::canonicalize(WORKSPACE)?;
    let leader = format!(
        "leader-core = {{ path = {:?} }}\nleader-redis = {{ path = {:?} }}\n{FRED}",
        root.join("leader-core").to_string_lossy(),
        root.join("leader-redis").to_string_lossy()
    );
    let crates = [("with-leader", leader.as_str()), ("with-fred", FRED)];
    for (name, dependencies) in crates {
        lay_out(&dir.path().join(name), name, dependencies, &root)?;
    }
    let (mut walls, mut works) = ([vec![], vec![]], [vec![], vec![]]);
    for _ in 0..ROUNDS {
        for (at, (name, _)) in crates.iter().enumerate() {
            let (wall, work) = build(&dir.path().join(name))?;
            walls[at].push(wall.as_secs_f64());
            works[at].push(work.as_secs_f64());
        }
    }
    let to_fred = |[ours, freds]: &[Vec<f64>; 2]| {
        median(
            ours.iter()
                .zip(freds)
                .map(|(ours, fred)| ours / fred)
                .collect(),
        )
    };
    let note = format!(
        "{:.1} s and {:.1} s; in processor time x {:.2}",
        median(walls[0].clone()),
        median(walls[1].clone()),
        to_fred(&works)
    );
    let time = Reading::ratio("time", to_fred(&walls), "x fred", Goal::AtMost(1.15));
    Ok(vec![time.note(note)])
}

/// A crate that needs what it depends on, with the versions of this workspace.
fn lay_out(dir: &Path, name: &str, dependencies: &str, root: &Path) -> Outcome {
    fs::create_dir_all(dir.join("src"))?;
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n{dependencies}"
    );
    fs::write(dir.join("Cargo.toml"), manifest)?;
    fs::write(dir.join("src/main.rs"), "fn main() {}\n")?;
    fs::copy(root.join("Cargo.lock"), dir.join("Cargo.lock"))?;
    Ok(())
}

/// How long it takes by the clock, and how much processor time.
fn build(dir: &Path) -> Outcome<(Duration, Duration)> {
    let target = dir.join("target");
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .args(["build", "--offline", "--quiet"])
        .current_dir(dir)
        .env("CARGO_TARGET_DIR", &target)
        .stdin(Stdio::null());
    // What `cargo run` sets for this program is not meant for those builds.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    let (begun, before) = (Instant::now(), cpu::used_by_children()?);
    let status = cargo.status()?;
    if !status.success() {
        return Err(format!("the build in {} ended with {status}", dir.display()).into());
    }
    let used = cpu::used_by_children()?.saturating_sub(before);
    Ok((begun.elapsed(), used))
}
