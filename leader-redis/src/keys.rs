//! [`Keys`]: where a name's record and its channel are.

use leader_core::{LeaderError, LockName};

/// The key prefix of an elector, validated once, and what is named after it.
///
/// The name stands in braces, so that everything of one name lives in one slot of a cluster. Neither names nor
/// prefixes have braces, so two names never share a key or a channel, nor do two prefixes.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
}

impl Keys {
    pub(crate) const DEFAULT_PREFIX: &'static str = "leader";
    const MAX_LEN: usize = 64;

    pub(crate) fn new(prefix: &str) -> Result<Self, LeaderError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_-.:/".contains(&b);
        let reason = if prefix.is_empty() {
            "it is empty; write 1 to 64 characters"
        } else if prefix.len() > Self::MAX_LEN {
            "it is longer than 64 characters"
        } else if !prefix.bytes().all(allowed) {
            "only ASCII letters, digits and `_ - . : /` may stand in it"
        } else {
            return Ok(Self {
                prefix: prefix.to_owned(),
            });
        };
        Err(LeaderError::invalid_options("key_prefix", reason))
    }

    /// The key of the name's record.
    pub(crate) fn record(&self, name: &LockName) -> String {
        self.record_parts(name).concat()
    }

    /// As [`record`](Self::record), for where it is written at once.
    pub(crate) fn record_parts<'a>(&'a self, name: &'a LockName) -> [&'a str; 4] {
        [&self.prefix, ":{", name.as_str(), "}:lease"]
    }

    /// The channel on which the name's releases are told. Scripts know it by the record's key, as they do the others.
    pub(crate) fn channel(&self, name: &LockName) -> String {
        format!("{}:{{{name}}}:released", self.prefix)
    }

    /// The channel on which the name's changes are told to observers.
    pub(crate) fn changes(&self, name: &LockName) -> String {
        format!("{}:{{{name}}}:changed", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_name_has_a_key_and_a_channel() {
        let keys = Keys::new("leader").unwrap();
        let name = LockName::new("invoice-close").unwrap();
        assert_eq!(keys.record(&name), "leader:{invoice-close}:lease");
        assert_eq!(keys.channel(&name), "leader:{invoice-close}:released");
        assert_eq!(keys.changes(&name), "leader:{invoice-close}:changed");
    }

    #[test]
    fn a08_names_and_prefixes_never_meet() {
        let mut seen = HashSet::new();
        for prefix in ["a", "a:", "a:b", "leader", "leader:a"] {
            let keys = Keys::new(prefix).unwrap();
            for name in ["a", "a:lease", "b:a", "a:b", "A", "a:released", "a:changed"] {
                let name = LockName::new(name).unwrap();
                assert!(seen.insert(keys.record(&name)), "{prefix} {name}");
                assert!(seen.insert(keys.channel(&name)), "{prefix} {name}");
                assert!(seen.insert(keys.changes(&name)), "{prefix} {name}");
            }
        }
    }

    #[test]
    fn a_bad_prefix_is_refused() {
        let too_long = "x".repeat(65);
        for bad in ["", " ", "a b", "a{b}", "a*", "ä", "a\n", too_long.as_str()] {
            let error = Keys::new(bad).unwrap_err();
            assert!(
                matches!(&error, LeaderError::InvalidOptions { option, .. } if *option == "key_prefix"),
                "{bad:?} gave {error:?}"
            );
        }
        assert!(Keys::new(&"x".repeat(64)).is_ok());
    }
}
