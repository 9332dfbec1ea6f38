//! [`Failure`]: why there is no answer, or what the answer refuses. The only file that reads the text of servers'
//! errors.

mod certificate;
mod lacking;

use std::fmt;
use std::time::Duration;

use leader_core::store::StoreError;
use leader_core::{BackendKind, LossReason};

use crate::reply::Oddity;
use crate::script::Script;

/// Why a command brought no usable answer, before it is known which kind of failure that is.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// It may have been executed, and may yet be.
    NoAnswer(Duration),
    /// The connection ended while the command was under way.
    Cut(String),
    /// It was never sent, and why: what the last attempt to connect brought, if that is known.
    NotSent(Option<Box<Failure>>),
    /// The server's refusal, in its words.
    Refused(String),
    /// An answer that could not be understood.
    Malformed(String),
    /// Something that is not ours stands at the key.
    Foreign,
    /// It was executed, and acknowledged by fewer replicas than it has to be.
    TooFew(Shortage),
    /// What was granted was gone when replicas were asked to acknowledge it.
    Gone(LossReason),
    /// The client library's own trouble.
    Client(String),
}

/// How many replicas acknowledged, and how many had to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) acknowledged: u64,
    pub(crate) needed: u32,
    pub(crate) within: Duration,
    /// How many replicas are connected to the server, if it has told.
    pub(crate) connected: Option<usize>,
    /// What they had to do: `"acknowledged"`, say.
    pub(crate) what: &'static str,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            acknowledged,
            needed,
            within,
            connected,
            what,
        } = self;
        let replicas = if *needed == 1 { "replica" } else { "replicas" };
        write!(
            f,
            "{acknowledged} of {needed} {replicas} {what} within {within:?}"
        )?;
        match connected {
            None => Ok(()),
            Some(1) => write!(f, "; 1 is connected"),
            Some(connected) => write!(f, "; {connected} are connected"),
        }
    }
}

/// Where to ask instead. An empty host is the one that was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// From now on.
    Moved { slot: u16, host: String, port: u16 },
    /// This once.
    Ask { host: String, port: u16 },
}

impl From<Oddity> for Failure {
    fn from(oddity: Oddity) -> Self {
        match oddity {
            Oddity::Foreign => Self::Foreign,
            Oddity::Malformed(what) => Self::Malformed(what),
            Oddity::Refused(words) => Self::Refused(words),
        }
    }
}

impl Failure {
    /// The server does not know a script by its digest.
    pub(crate) fn is_unknown_script(&self) -> bool {
        matches!(self, Self::Refused(words) if code(words) == "NOSCRIPT")
    }

    /// It does not know the command: it is too old for it.
    pub(crate) fn is_unknown_command(&self) -> bool {
        matches!(self, Self::Refused(words) if words.starts_with("ERR unknown command"))
    }

    /// The server is a replica of another one.
    pub(crate) fn is_from_a_replica(&self) -> bool {
        matches!(self, Self::Refused(words) if code(words) == "READONLY" || words.contains(CANNOT_WAIT))
    }

    /// Where the node of a cluster says that the key is, which has come to another slot owner or is about to.
    pub(crate) fn redirect(&self) -> Option<Redirect> {
        let Self::Refused(words) = self else {
            return None;
        };
        let mut parts = words.split(' ');
        let code = parts.next()?;
        let slot = parts.next()?.parse().ok()?;
        let (host, port) = parts.next()?.trim_end().rsplit_once(':')?;
        let (host, port) = (host.to_owned(), port.parse().ok()?);
        match code {
            "MOVED" => Some(Redirect::Moved { slot, host, port }),
            "ASK" => Some(Redirect::Ask { host, port }),
            _ => None,
        }
    }

    /// The same of a command within `script`, named if the server does not name it.
    pub(crate) fn within(self, script: &Script) -> Self {
        let Self::Refused(words) = self else {
            return self;
        };
        let words = match lacking::commands(&words, script.source()).as_slice() {
            [] => words,
            [command] => format!("{words}; the command is {command}"),
            commands => format!("{words}; the command is one of {}", commands.join(", ")),
        };
        Self::Refused(words)
    }

    pub(crate) fn kind(&self) -> BackendKind {
        match self {
            Self::NoAnswer(_) => BackendKind::TimedOut,
            Self::Cut(_) | Self::NotSent(None) => BackendKind::Unreachable,
            Self::NotSent(Some(why)) => why.kind(),
            Self::Refused(words) => kind_of(words),
            Self::Malformed(_) => BackendKind::MalformedReply,
            Self::Foreign => BackendKind::WrongType,
            Self::TooFew(_) => BackendKind::TooFewReplicas,
            Self::Gone(_) => BackendKind::NotReady,
            Self::Client(_) => BackendKind::Other,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::NoAnswer(limit) => format!("no answer within {limit:?}"),
            Self::Cut(words) => plain(words),
            Self::NotSent(None) => "not connected".to_owned(),
            Self::NotSent(Some(why)) => format!("not connected: {}", why.words()),
            Self::Refused(words) if matches!(code(words), "MOVED" | "ASK" | "CROSSSLOT") => {
                format!("{words}; the server is part of a cluster: write `redis-cluster://`")
            }
            Self::Refused(words) if words.contains("cluster support disabled") => {
                "the server is not part of a cluster: write `redis://`".to_owned()
            }
            Self::Refused(words) => discreet(words),
            Self::Malformed(what) => what.clone(),
            Self::Foreign => "it is a hash that this library did not write".to_owned(),
            Self::TooFew(shortage) => shortage.to_string(),
            Self::Gone(reason) => {
                format!("the grant was gone before replicas could acknowledge it: {reason}")
            }
            Self::Client(words) => words.clone(),
        }
    }

    /// What the engine is told: the server's address and words. `key` is what the step was about.
    pub(crate) fn at(&self, address: &str, key: Option<&str>) -> StoreError {
        self.told(address, key, "move it away, or set another key prefix")
    }

    /// As [`at`](Self::at), for a key that is the application's.
    pub(crate) fn at_value(&self, address: &str, key: &str) -> StoreError {
        self.told(address, Some(key), "move it away, or take another key")
    }

    fn told(&self, address: &str, key: Option<&str>, advice: &str) -> StoreError {
        let kind = self.kind();
        let mut words = self.words();
        if let (BackendKind::WrongType, Some(key)) = (kind, key) {
            words = format!("`{key}` holds something else ({words}); {advice}");
        }
        if let (BackendKind::Denied, Some(key)) = (kind, key)
            && let Some(pattern) = lacking::pattern(&words, key)
        {
            words = format!("{words}; this user must be allowed `{pattern}`");
        }
        let source = ServerError {
            address: address.to_owned(),
            words,
        };
        let error = StoreError::new(kind, source);
        match self {
            Self::NotSent(_) => error.not_run(),
            _ => error,
        }
    }
}

/// Which server, and what it said. Never a password or a user's name.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {words}")]
struct ServerError {
    address: String,
    words: String,
}

/// What kind of refusal a server's words are.
fn kind_of(words: &str) -> BackendKind {
    match code(words) {
        "READONLY" | "MISCONF" => BackendKind::ReadOnly,
        // The last one ends a wait for replicas, as the server becomes one itself.
        "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "BUSY" | "NOREPLICAS"
        | "UNBLOCKED" => BackendKind::NotReady,
        "OOM" => BackendKind::OutOfMemory,
        "NOPERM" | "NOAUTH" | "WRONGPASS" | "DENIED" => BackendKind::Denied,
        "WRONGTYPE" => BackendKind::WrongType,
        _ if DENIALS.iter().any(|denial| words.contains(denial)) => BackendKind::Denied,
        _ if words.contains(CANNOT_WAIT) => BackendKind::ReadOnly,
        _ if words.contains("max number of clients") => BackendKind::NotReady,
        // A slot is being moved, and this key of it has moved already, or was not there.
        _ if words.contains("attempted to access a non local key") => BackendKind::NotReady,
        _ => BackendKind::Other,
    }
}

/// What a replica says to `WAIT` and `WAITAOF`.
const CANNOT_WAIT: &str = "cannot be used with replica instances";

/// Refusals that have no code of their own: those of commands within scripts, and of logins.
const DENIALS: [&str; 5] = [
    "The user executing the script can't",
    "ERR ACL failure in script",
    "ERR AUTH ",
    "ERR Client sent AUTH",
    "ERR invalid password",
];

/// The code of a refusal: its first word, or, when a script failed, that of the command that failed within it. Servers
/// before 7.0 say `ERR Error running script (call to f_..): @user_script:9: @user_script: 9: -READONLY You can't ..`, or
/// `ERR Error running script (call to f_..): @user_script:9: WRONGTYPE Operation ..`.
fn code(words: &str) -> &str {
    let first = |words| first_word(words).trim_start_matches('-');
    let is_code = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase());
    let within = words.find("@user_script").and_then(|start| {
        let parts = words[start..].split(": ");
        parts.map(first).find(|word| is_code(word))
    });
    within.unwrap_or_else(|| first(words))
}

fn first_word(words: &str) -> &str {
    words.split([' ', '\r', '\n']).next().unwrap_or_default()
}

/// A server's words without what they repeat of a login.
fn discreet(words: &str) -> String {
    // A server that does not know AUTH or HELLO answers with their arguments.
    let words = words
        .split_once(", with args beginning with")
        .map_or(words, |(words, _)| words);
    if let Some((before, user)) = words.split_once("User ")
        && let Some((_, rest)) = user.split_once(" has no permissions")
    {
        return format!("{before}this user has no permissions{rest}");
    }
    words.trim_start_matches('-').to_owned()
}

/// What the system or a library says of a connection, in plain words: those in `Os { code: 111, kind:
/// ConnectionRefused, message: "Connection refused" }` or in `Custom { kind: Uncategorized, error: "failed to .." }`.
fn plain(words: &str) -> String {
    if let Some(meaning) = certificate::meaning(words) {
        return meaning.to_owned();
    }
    let debugged = words
        .strip_prefix("Os {")
        .or_else(|| words.strip_prefix("Custom {"))
        .and_then(|fields| fields.strip_suffix('}'))
        .and_then(|fields| {
            let message = fields.split_once("message: ");
            message.or_else(|| fields.split_once("error: "))
        });
    let words = debugged.map_or(words, |(_, message)| message.trim());
    let words = words
        .strip_prefix('"')
        .and_then(|words| words.strip_suffix('"'))
        .unwrap_or(words)
        .replace("\\\"", "\"");
    let words = words.trim_end_matches('.');
    let (first, rest) = words.split_at(words.chars().next().map_or(0, char::len_utf8));
    let word = rest.split(' ').next().unwrap_or_default();
    if words.is_empty() {
        "the connection failed".to_owned()
    } else if word.bytes().all(|b| b.is_ascii_lowercase()) {
        // It stands within a sentence.
        first.to_lowercase() + rest
    } else {
        words.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(words: &str, kind: BackendKind) {
        let failure = Failure::Refused(words.to_owned());
        assert_eq!(failure.kind(), kind, "{words}");
    }

    #[test]
    fn refusals_are_told_apart_by_their_code() {
        for (words, kind) in [
            (
                "READONLY You can't write against a read only replica. script: ab12, on @user_script:9.",
                BackendKind::ReadOnly,
            ),
            (
                "MISCONF Redis is configured to save RDB snapshots, but",
                BackendKind::ReadOnly,
            ),
            (
                "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
                BackendKind::NotReady,
            ),
            (
                "ERR WAIT cannot be used with replica instances. Please also note that",
                BackendKind::ReadOnly,
            ),
            (
                "LOADING Redis is loading the dataset in memory",
                BackendKind::NotReady,
            ),
            ("MASTERDOWN Link with MASTER is down", BackendKind::NotReady),
            ("CLUSTERDOWN The cluster is down", BackendKind::NotReady),
            (
                "TRYAGAIN Multiple keys request during rehashing",
                BackendKind::NotReady,
            ),
            ("BUSY Redis is busy running a script", BackendKind::NotReady),
            (
                "NOREPLICAS Not enough good replicas to write.",
                BackendKind::NotReady,
            ),
            ("ERR max number of clients reached", BackendKind::NotReady),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                BackendKind::OutOfMemory,
            ),
            (
                "NOPERM this user has no permissions to run the 'evalsha' command",
                BackendKind::Denied,
            ),
            ("NOAUTH Authentication required.", BackendKind::Denied),
            (
                "WRONGPASS invalid username-password pair or user is disabled.",
                BackendKind::Denied,
            ),
            (
                "DENIED Redis is running in protected mode because",
                BackendKind::Denied,
            ),
            (
                "ERR AUTH <password> called without any password configured for the default user.",
                BackendKind::Denied,
            ),
            (
                "ERR The user executing the script can't run this command or subcommand script: ab12",
                BackendKind::Denied,
            ),
            (
                "WRONGTYPE Operation against a key holding the wrong kind of value",
                BackendKind::WrongType,
            ),
            (
                "ERR ACL failure in script: User app has no permissions to run the 'hset' command script: ab12",
                BackendKind::Denied,
            ),
            (
                "ERR Error running script (call to f_3f2a): @user_script:20: WRONGTYPE Operation against a key",
                BackendKind::WrongType,
            ),
            ("ERR unknown command 'EVALSHA'", BackendKind::Other),
            ("MOVED 1234 10.0.0.1:6379", BackendKind::Other),
            (
                "ERR Script attempted to access a non local key in a cluster node script: ab12",
                BackendKind::NotReady,
            ),
            ("", BackendKind::Other),
        ] {
            refused(words, kind);
        }
    }

    #[test]
    fn what_fails_within_a_script_is_told_apart_as_older_servers_put_it() {
        let within =
            "ERR Error running script (call to f_3f2a): @user_script:48: @user_script: 48: ";
        for (words, kind) in [
            (
                "-READONLY You can't write against a read only replica.",
                BackendKind::ReadOnly,
            ),
            (
                "-OOM command not allowed when used memory > 'maxmemory'.",
                BackendKind::OutOfMemory,
            ),
            ("-WRONGTYPE Operation against a key", BackendKind::WrongType),
            (
                "The user executing the script can't run this command or subcommand",
                BackendKind::Denied,
            ),
            ("attempt to index a nil value", BackendKind::Other),
        ] {
            refused(&format!("{within}{words}"), kind);
        }
        // As a batch's answers have it, where an older server leaves the dash in front, or no code at all.
        refused(
            "@user_script: 48: The user executing the script can't run this command or subcommand",
            BackendKind::Denied,
        );
        refused(
            "-READONLY You can't write against a read only replica.",
            BackendKind::ReadOnly,
        );
    }

    #[test]
    fn only_an_unknown_script_is_an_unknown_script() {
        let unknown = |words: &str| Failure::Refused(words.to_owned()).is_unknown_script();
        assert!(unknown("NOSCRIPT No matching script. Please use EVAL."));
        assert!(!unknown("ERR NOSCRIPT"));
        assert!(!Failure::Cut("NOSCRIPT".to_owned()).is_unknown_script());
    }

    #[test]
    fn a_redirection_says_where_to() {
        let redirect = |words: &str| Failure::Refused(words.to_owned()).redirect();
        let moved = |host: &str| Redirect::Moved {
            slot: 1234,
            host: host.to_owned(),
            port: 6379,
        };
        assert_eq!(
            redirect("MOVED 1234 10.0.0.1:6379"),
            Some(moved("10.0.0.1"))
        );
        assert_eq!(redirect("MOVED 1234 ::1:6379"), Some(moved("::1")));
        assert_eq!(redirect("MOVED 1234 :6379"), Some(moved("")));
        let ask = Redirect::Ask {
            host: "cache.internal".to_owned(),
            port: 6379,
        };
        assert_eq!(redirect("ASK 1234 cache.internal:6379"), Some(ask));
        for words in [
            "",
            "MOVED",
            "MOVED 1234",
            "MOVED 1234 a",
            "MOVED x a:1",
            "MOVED 1 a:b",
            "TRYAGAIN 1 a:1",
        ] {
            assert_eq!(redirect(words), None, "{words:?}");
        }
    }

    #[test]
    fn a06_words_have_the_address_and_nothing_of_the_login() {
        let login = "ERR unknown command `AUTH`, with args beginning with: `billing`, `pa55`, ";
        let error = Failure::Refused(login.to_owned()).at("cache:6379", None);
        assert_eq!(error.to_string(), "cache:6379: ERR unknown command `AUTH`");

        let user = "NOPERM User billing has no permissions to run the 'evalsha' command";
        let error = Failure::Refused(user.to_owned()).at("cache:6379", None);
        assert_eq!(
            error.to_string(),
            "cache:6379: NOPERM this user has no permissions to run the 'evalsha' command"
        );
        assert!(!format!("{error:?}").contains("billing"));
    }

    #[test]
    fn only_what_was_not_sent_has_certainly_not_run() {
        let refused = "Os { code: 111, kind: ConnectionRefused, message: \"Connection refused\" }";
        let cut = Failure::Cut(refused.to_owned());
        assert!(cut.at("a:1", None).may_have_run());
        assert!(
            Failure::NoAnswer(Duration::from_secs(1))
                .at("a:1", None)
                .may_have_run()
        );

        let not_sent = Failure::NotSent(Some(Box::new(cut))).at("a:1", None);
        assert!(!not_sent.may_have_run());
        assert_eq!(not_sent.kind(), BackendKind::Unreachable);
        assert_eq!(
            not_sent.to_string(),
            "a:1: not connected: connection refused"
        );

        let loading = Failure::Refused("LOADING Redis is loading".to_owned());
        let not_sent = Failure::NotSent(Some(Box::new(loading))).at("a:1", None);
        assert_eq!(not_sent.kind(), BackendKind::NotReady);
        assert!(!not_sent.may_have_run());
    }

    #[test]
    fn a_failed_connection_is_told_in_plain_words() {
        for (words, told) in [
            (
                "Os { code: 111, kind: ConnectionRefused, message: \"Connection refused\" }",
                "connection refused",
            ),
            (
                "Custom { kind: Uncategorized, error: \"failed to lookup address information: Name or service not known\" }",
                "failed to lookup address information: Name or service not known",
            ),
            (
                "Custom { kind: Other, error: \"it said \\\"no\\\"\" }",
                "it said \"no\"",
            ),
            ("Kind(ConnectionReset)", "Kind(ConnectionReset)"),
            ("IO Error.", "IO Error"),
            ("", "the connection failed"),
        ] {
            let error = Failure::Cut(words.to_owned()).at("a:1", None);
            assert_eq!(error.to_string(), format!("a:1: {told}"));
        }
    }

    #[test]
    fn a15_a_foreign_key_is_named() {
        let error = Failure::Foreign.at("a:1", Some("leader:{x}:lease"));
        assert_eq!(error.kind(), BackendKind::WrongType);
        assert!(error.to_string().contains("`leader:{x}:lease`"), "{error}");
    }
}
