//! The two tokens: the secret [`Token`] that proves ownership to the store, and the public [`FencingToken`].

use std::fmt;

use uuid::Uuid;

/// Proves ownership to the store: a fresh 128-bit random value for each attempt to be elected.
///
/// Only stores see it. `Debug` hides it, and it has no `Display`, so that it reaches no log and no error.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token([u8; 16]);

impl Token {
    /// A fresh token from the operating system's source of randomness.
    #[must_use]
    pub fn random() -> Self {
        Self(*Uuid::new_v4().as_bytes())
    }

    /// The token with these bytes, for stores that read it back and for simulations that choose it.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The token's bytes, for a store that keeps it.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The token as 32 lower-case hexadecimal digits, for a store that keeps text. Never log it.
    #[must_use]
    pub fn to_hex(&self) -> String {
        Uuid::from_bytes(self.0).simple().to_string()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// A number that grows strictly with every grant of a name, across all holders, restarts and failovers.
///
/// A resource that remembers the highest number it has seen and refuses a lower one cannot be written by a leader
/// that was paused, lost its lease, and does not know it yet.
///
/// # How it is made, and what that assumes
///
/// The store issues it in the same atomic step as the grant: `max(last + 1, server time in microseconds)`. A plain
/// counter that is lost in a failover would hand out numbers again, exactly when two holders may exist. The time
/// term keeps the order as long as the new primary's clock is not behind the old one's by more than the failover
/// took; the `last + 1` term keeps it when a clock steps back. Numbers therefore have gaps. They fit in 53 bits
/// until the year 2255, so scripting languages whose only number is a double carry them exactly.
///
/// The idea is Martin Kleppmann's ("How to do distributed locking", 2016).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The fencing token with this number, for stores and for resources that read it back.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, to be sent along with every write to the protected resource.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FencingToken({})", self.0)
    }
}

impl From<FencingToken> for u64 {
    fn from(fence: FencingToken) -> Self {
        fence.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_show_itself() {
        let token = Token::random();
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_eq!(token.to_hex().len(), 32);
        assert_ne!(token, Token::random());
    }
}
