//! Logins as fred says `HELLO`: in a line as people type it, while servers are asked everything else in counted bytes.
//!
//! There a space would end a password, and quotes would change it, so such logins are put in the quotes and escapes that
//! servers read in such lines.

use std::fmt::Write as _;

use fred::types::RespVersion;
use fred::types::config::Config;

/// Sets the version of the protocol to RESP3, and the login to what is to be said then.
pub(super) fn by_resp3(config: &mut Config) {
    // Who speaks it already has logged in by it: a client that is shared.
    if config.version == RespVersion::RESP3 {
        return;
    }
    config.version = RespVersion::RESP3;
    let login = [&mut config.username, &mut config.password];
    for text in login.into_iter().flatten() {
        *text = in_a_line(text);
    }
}

fn in_a_line(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\'';
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    let mut quoted = "\"".to_owned();
    for byte in text.bytes() {
        let _ = write!(quoted, "\\x{byte:02x}");
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_line_would_change_is_escaped() {
        assert_eq!(in_a_line("pa55/w\\ord?"), "pa55/w\\ord?");
        assert_eq!(in_a_line(""), "\"\"");
        assert_eq!(in_a_line("a b"), "\"\\x61\\x20\\x62\"");
        for text in ["\"", "'", "\r\n", "\t", "ä", "\0"] {
            assert!(in_a_line(text).starts_with("\"\\x"), "{text:?}");
        }
    }
}
