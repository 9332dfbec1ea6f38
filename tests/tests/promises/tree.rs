//! Which tests there are, read from the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// `(package, binary, function)`; the binary of unit tests is `lib`.
pub(crate) type Test = (String, String, String);

/// The cases of the conformance suite stand under this name once, and under those of the programs that run it.
pub(crate) const SUITE: &str = "conformance";

/// All tests, and the chores that `cargo xtask` knows.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) tests: BTreeSet<Test>,
    /// Those of the conformance suite.
    pub(crate) cases: Vec<String>,
    pub(crate) chores: String,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> Self {
        let suite = text(&root.join("leader-core/src/testing/conformance/mod.rs"));
        let mut tree = Self {
            cases: conformance_cases(&suite),
            chores: text(&root.join("xtask/src/main.rs")),
            ..Self::default()
        };
        tree.add("leader-core", SUITE, tree.cases.clone());
        tree.walk(root, "", root);
        tree
    }

    fn add(&mut self, package: &str, binary: &str, functions: Vec<String>) {
        for function in functions {
            let test = (package.to_owned(), binary.to_owned(), function);
            self.tests.insert(test);
        }
    }

    pub(crate) fn has(&self, package: &str, binary: &str, function: &str) -> bool {
        let test = (package.to_owned(), binary.to_owned(), function.to_owned());
        self.tests.contains(&test)
    }

    /// Goes through `dir`, which is in the package `name` at `package`.
    fn walk(&mut self, dir: &Path, name: &str, package: &Path) {
        let own = package_name(&text(&dir.join("Cargo.toml")));
        let (name, package) = match &own {
            Some(own) => (own.as_str(), dir),
            None => (name, package),
        };
        for path in entries(dir) {
            if path.is_dir() {
                self.walk(&path, name, package);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && let Some(binary) = binary(path.strip_prefix(package).unwrap_or(&path))
            {
                let functions = functions(&text(&path), &self.cases);
                self.add(name, &binary, functions);
            }
        }
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// What is in a folder, but for what others have built or fetched there.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with('.') && name != "target" && name != "fuzz"
    };
    paths.filter(is_ours).collect()
}

fn package_name(manifest: &str) -> Option<String> {
    let (_, package) = manifest.split_once("[package]")?;
    let name = package
        .lines()
        .find_map(|line| line.strip_prefix("name = \""))?;
    Some(name.strip_suffix('"')?.to_owned())
}

/// The test program to which a file belongs, from its path in its package.
fn binary(path: &Path) -> Option<String> {
    let mut parts = path
        .components()
        .map(|part| part.as_os_str().to_string_lossy());
    match parts.next()?.as_ref() {
        "src" => Some("lib".to_owned()),
        "tests" => Some(parts.next()?.trim_end_matches(".rs").to_owned()),
        _ => None,
    }
}

/// The functions that the test runner finds in a file: those with an attribute, those of a story that is played on every
/// store, and the cases of the conformance suite where it is run.
pub(crate) fn functions(source: &str, cases: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let (mut is_test, mut is_list) = (false, false);
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if line.ends_with("on_every_store!(") {
            is_list = true;
        } else if line.starts_with("leader_core::conformance_tests!") {
            found.extend(cases.iter().cloned());
        } else if is_list {
            is_list = line != ");";
            found.extend(is_list.then(|| line.trim_end_matches(',').to_owned()));
        } else if is_test && let Some(name) = function(line) {
            found.push(name);
            is_test = false;
        }
    }
    found
}

fn function(line: &str) -> Option<String> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let name = line.strip_prefix("fn ")?;
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    Some(name[..end].to_owned())
}

/// The one list of the suite's cases.
pub(crate) fn conformance_cases(source: &str) -> Vec<String> {
    let list = source.lines().map(str::trim);
    let list = list.skip_while(|line| *line != "macro_rules! __conformance_cases {");
    let list = list
        .skip(1)
        .take_while(|line| !line.starts_with("macro_rules!"));
    let is_name = |line: &&str| {
        let mut bytes = line.bytes();
        !line.is_empty() && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    list.filter(is_name).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_what_makes_them_tests() {
        let source = "#[test]\nfn one() {}\nfn helper() {}\n  #[tokio::test(start_paused = true)]\n  #[cfg(x)]\n  \
                      async fn two() {}\nleader_tests::on_every_store!(\n  three,\n  four\n);\nasync fn three() {}\n";
        assert_eq!(functions(source, &[]), ["one", "two", "three", "four"]);
        let suite = "leader_core::conformance_tests!(store = x);\n";
        assert_eq!(functions(suite, &["case".to_owned()]), ["case"]);
        let list = "macro_rules! __conformance_cases {\n  () => { x! {\n    claim {\n      a01_one\n    }\n}\nmacro_rules! y {\n  z\n";
        assert_eq!(conformance_cases(list), ["a01_one"]);
    }

    #[test]
    fn a_file_belongs_to_its_program() {
        let of = |path: &str| binary(Path::new(path));
        assert_eq!(of("src/url.rs").as_deref(), Some("lib"));
        assert_eq!(
            of("tests/redis_store/claim.rs").as_deref(),
            Some("redis_store")
        );
        assert_eq!(of("tests/guard.rs").as_deref(), Some("guard"));
        assert_eq!(of("examples/poll_cost.rs"), None);
    }
}
