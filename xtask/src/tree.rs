//! What must hold for the tree of dependencies and of files.

use crate::command::{Done, cargo, output, root, say};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that the core must never see: a store knows Redis, the engine does not.
const CLIENTS: [&str; 3] = ["fred", "redis", "redis-protocol"];

/// The workspace's `rust-version` is at least that of each dependency, optional ones too.
pub(crate) fn check_rust_versions() -> Done {
    let metadata = output(&mut cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--all-features",
    ]))?;
    let metadata: Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata lists no packages")?;
    let (ours, theirs): (Vec<_>, Vec<_>) = packages
        .iter()
        .partition(|package| package["source"].is_null());
    let promised = ours
        .iter()
        .filter_map(|package| rust_version(package))
        .min();
    let promised = promised.ok_or("the workspace's packages have no rust-version")?;
    let above: Vec<String> = theirs
        .iter()
        .filter(|package| rust_version(package) > Some(promised))
        .map(|package| {
            format!(
                "{} {} needs {}",
                package["name"], package["version"], package["rust_version"]
            )
        })
        .collect();
    if !above.is_empty() {
        let (major, minor, patch) = promised;
        return Err(format!(
            "rust-version is {major}.{minor}.{patch}, but {}",
            above.join(", ")
        ));
    }
    say(&format!(
        "{} dependencies build with the Rust version that the workspace promises",
        theirs.len()
    ));
    Ok(())
}

fn rust_version(package: &Value) -> Option<(u64, u64, u64)> {
    let mut parts = package["rust_version"]
        .as_str()?
        .split('.')
        .map(|part| part.parse().unwrap_or(0));
    Some((
        parts.next()?,
        parts.next().unwrap_or(0),
        parts.next().unwrap_or(0),
    ))
}

/// `leader-core` depends on no client of Redis.
pub(crate) fn check_layers() -> Done {
    let tree = [
        "tree",
        "--package",
        "leader-core",
        "--all-features",
        "--target",
        "all",
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    let tree = output(&mut cargo(&tree))?;
    let names: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    if !names.contains(&"leader-core") {
        return Err("cargo tree does not list leader-core".to_owned());
    }
    let is_client = |name: &&&str| CLIENTS.contains(name) || name.starts_with("leader-redis");
    if let Some(name) = names.iter().find(is_client) {
        return Err(format!("leader-core depends on {name}; only a store may"));
    }
    say("leader-core depends on no client of Redis");
    Ok(())
}

/// No test is switched off, in code or in documentation.
pub(crate) fn check_no_ignored_tests() -> Done {
    let files = rust_files(&root())?;
    if files.is_empty() {
        return Err("no Rust file was looked at".to_owned());
    }
    let mut found = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file);
        let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| is_ignored(line));
        found.extend(lines.map(|(number, _)| format!("{}:{}", file.display(), number + 1)));
    }
    if !found.is_empty() {
        return Err(format!("tests are ignored: {}", found.join(", ")));
    }
    say(&format!("no test is ignored in {} files", files.len()));
    Ok(())
}

fn is_ignored(line: &str) -> bool {
    let code = line.trim_start();
    let comment = code
        .strip_prefix("///")
        .or_else(|| code.strip_prefix("//!"));
    comment.is_some_and(|comment| comment.trim_start().starts_with("```ignore"))
        || code.starts_with("#[ignore")
        || code.starts_with("#[cfg_attr") && code.contains(", ignore")
}

fn rust_files(dir: &Path) -> Done<Vec<PathBuf>> {
    let mut files = Vec::new();
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && !name.to_string_lossy().starts_with('.') {
                files.extend(rust_files(&path)?);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_way_to_ignore_a_test_is_seen() {
        let ways = [
            "    #[ignore]",
            "#[ignore = \"slow\"]",
            "#[cfg_attr(miri, ignore)]",
            "/// ```ignore",
        ];
        assert!(ways.iter().all(|line| is_ignored(line)));
        assert!(
            !["// ignore", "fn ignore() {", "/// ```no_run"]
                .iter()
                .any(|line| is_ignored(line))
        );
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let version = |text: &str| rust_version(&json!({ "rust_version": text }));
        assert!(version("1.9") < version("1.89.1"));
        assert_eq!(version("1.89"), version("1.89.0"));
        assert!(rust_version(&json!({ "rust_version": null })) < version("1.0"));
    }
}
