//! [`LockName`]: what is led, validated once.

use std::borrow::Borrow;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::LeaderError;

/// What is led: `invoice-close`, `order-feed:eu`.
///
/// 1 to 255 ASCII characters; the first is a letter or a digit, the rest are letters, digits or one of
/// `_ - . : /`. Names are compared byte by byte: `Billing` and `billing` are two names.
///
/// Every method of an elector takes anything that converts into a `LockName`, so a `&str` will do. Where the same
/// name is used over and over, convert it once: a clone only counts a reference.
///
/// ```
/// use leader_core::LockName;
///
/// let name = LockName::new("order-feed:eu")?;
/// assert_eq!(name.as_str(), "order-feed:eu");
/// assert!(LockName::new("-eu").is_err());
/// # Ok::<(), leader_core::LeaderError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(Arc<str>);

impl LockName {
    /// The longest name, in characters.
    pub const MAX_LEN: usize = 255;

    /// Checks `name` and keeps it.
    ///
    /// # Errors
    ///
    /// [`LeaderError::InvalidName`] says which rule the name breaks.
    pub fn new(name: impl AsRef<str>) -> Result<Self, LeaderError> {
        let name = name.as_ref();
        match fault(name) {
            None => Ok(Self(Arc::from(name))),
            Some(reason) => Err(LeaderError::InvalidName {
                name: printable(name),
                reason,
            }),
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

fn fault(name: &str) -> Option<&'static str> {
    let Some(first) = name.chars().next() else {
        return Some("it is empty; write 1 to 255 characters");
    };
    if name.len() > LockName::MAX_LEN {
        return Some("it is longer than 255 characters");
    }
    if !first.is_ascii_alphanumeric() {
        return Some("it must start with an ASCII letter or digit");
    }
    if name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"_-.:/".contains(&b))
    {
        None
    } else {
        Some("after the first character only ASCII letters, digits and `_ - . : /` may stand")
    }
}

/// Names that were refused may hold anything; an error message holds one short line.
fn printable(name: &str) -> String {
    const SHOWN: usize = 64;
    let mut shown: String = name
        .chars()
        .take(SHOWN)
        .flat_map(char::escape_debug)
        .collect();
    if name.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl AsRef<str> for LockName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for LockName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for LockName {
    type Err = LeaderError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl TryFrom<&str> for LockName {
    type Error = LeaderError;

    fn try_from(name: &str) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl TryFrom<String> for LockName {
    type Error = LeaderError;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl TryFrom<&String> for LockName {
    type Error = LeaderError;

    fn try_from(name: &String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<&LockName> for LockName {
    fn from(name: &LockName) -> Self {
        name.clone()
    }
}

/// Lets a `LockName` stand where "something that converts into a `LockName`" is asked for.
impl From<Infallible> for LeaderError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a08_names_are_accepted_or_refused_by_rule() {
        let longest = "x".repeat(255);
        for good in ["a", "9", "a_b-c.d:e/f", "INVOICE", longest.as_str()] {
            assert_eq!(LockName::new(good).unwrap().as_str(), good);
        }
        let too_long = "x".repeat(256);
        for bad in [
            "",
            " ",
            "\t",
            "-a",
            "_a",
            ":a",
            "a b",
            "a{b}",
            "{a}",
            "a\r\nb",
            "a\0b",
            "🦀",
            "a🦀",
            "é",
            "a*",
            "a?",
            too_long.as_str(),
        ] {
            let error = LockName::new(bad).unwrap_err();
            assert!(
                matches!(error, LeaderError::InvalidName { .. }),
                "{bad:?} gave {error:?}"
            );
            assert!(!error.to_string().contains(['\r', '\n', '\0']), "{error}");
        }
    }

    #[test]
    fn a_refused_name_is_cut_short_in_the_message() {
        let message = LockName::new("{".repeat(10_000)).unwrap_err().to_string();
        assert!(message.len() < 300, "{message}");
    }
}
