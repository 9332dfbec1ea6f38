//! The access rule of the README, and its parts.

pub(crate) const USER: &str = "leader";
/// What the README writes.
pub(crate) const PASSWORD: &str = "secret";

/// The rule that the README says is enough, without the word `user`.
pub(crate) fn readme() -> String {
    let readme = include_str!("../../../README.md");
    let start = format!("user {USER} on >{PASSWORD} ");
    let mut rules = readme.lines().filter(|line| line.starts_with(&start));
    let rule = rules.next().expect("the README has a rule");
    assert!(rules.next().is_none(), "the README has several rules");
    rule.trim_start_matches("user ").to_owned()
}

/// `+command`, `~keys` or `&channels`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Permission(String);

pub(crate) fn permissions(rule: &str) -> Vec<Permission> {
    let is_permission = |word: &&str| word.starts_with(['+', '~', '&']);
    rule.split(' ')
        .filter(is_permission)
        .map(Permission::new)
        .collect()
}

pub(crate) fn without(rule: &str, missing: &Permission) -> String {
    let rest: Vec<&str> = rule.split(' ').filter(|word| *word != missing.0).collect();
    rest.join(" ")
}

impl Permission {
    pub(crate) fn new(word: &str) -> Self {
        Self(word.to_owned())
    }

    /// What the README says can be left out.
    pub(crate) fn is_optional(&self) -> bool {
        ["+client|id", "+info"].contains(&self.0.as_str())
    }

    /// Without it no run fails, but waiters are woken late.
    pub(crate) fn keeps_waiters_waiting(&self) -> bool {
        self.0.starts_with('&')
            || ["+publish", "+subscribe", "+unsubscribe"].contains(&self.0.as_str())
    }

    /// Whether the server's log of refusals means it; before 7.0 it has commands without their sub-commands.
    pub(crate) fn is_logged_as(&self, object: &str) -> bool {
        let command = self.0.split('|').next().unwrap_or_default();
        self.is_named_in(object) || command.strip_prefix('+') == Some(object)
    }

    /// Whether `words` say that it is missing: a command by its name, keys and channels by the pattern.
    pub(crate) fn is_named_in(&self, words: &str) -> bool {
        let words = words.to_lowercase();
        match self.0.strip_prefix('+') {
            Some(command) => words
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '|')
                .any(|word| word == command),
            None => words.contains(&self.0),
        }
    }
}
