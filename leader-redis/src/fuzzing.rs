//! What must hold of whatever a server answers and whatever somebody writes into a URL: each function panics where it
//! does not. What a reply says is read here a second time, straight from the client library's values.

#[cfg(test)]
mod properties;

use std::time::Duration;

use fred::types::Value;
use leader_core::store::{ClaimReply, ExtendReply, Hint, ReleaseReply, Revision, hints};
use leader_core::{BackendKind, FencingToken, LeaderError, LockName, LossReason, NodeId};

use crate::client::{Node, Topology};
use crate::fault::Failure;
use crate::keys::Keys;
use crate::reply::{self, Oddity, Reply};
use crate::{RedisElector, script, url};

/// A reply of any shape to each script: an error, or what it says; a lease only where it says that there is one.
pub fn reply(value: &Value, slots: u32, count: usize) {
    let reply = Reply::from(value.clone());
    let said = Said::of(value);

    let granted = numbers(value, "granted").and_then(|(slot, fence)| {
        let slot = u32::try_from(slot).ok()?;
        let is_one = slot < slots && fence > 0 && fence < 1 << 53;
        is_one.then(|| ClaimReply::Granted {
            slot,
            fence: FencingToken::new(fence),
        })
    });
    let claimed = said.meaning(|word, rest| match (word, rest) {
        ("taken", [free_in, revision, holder]) => Some(ClaimReply::Taken {
            retry_after: Duration::from_micros(int(free_in)?),
            revision: Revision::new(int(revision)?),
            holder: Some(somebody(holder)?),
        }),
        ("ended", []) => Some(ClaimReply::Ended),
        _ => None,
    });
    agree(reply::claim(&reply, slots), granted.or(claimed));

    extended(value, &reply, count);

    let released = |told, revision| ReleaseReply::Released {
        revision: Revision::new(revision),
        told,
    };
    let told = numbers(value, "released")
        .and_then(|(told, revision)| Some(released(u32::try_from(told).ok()?, revision)));
    let otherwise = said.meaning(|word, rest| match (word, rest) {
        ("released", [revision, why]) => text(why).and(Some(released(0, int(revision)?))),
        (word, []) => loss(word).map(ReleaseReply::NotHeld),
        _ => None,
    });
    let read = reply::release(&reply).map(|read| read.reply);
    agree(read, told.or(otherwise));

    let flag = |value: &Value| match int(value) {
        Some(0) => Some(false),
        Some(1) => Some(true),
        _ => None,
    };
    let held = said.meaning(|word, rest| {
        let holder = |holder: &Value| {
            let Value::Array(fields) = holder else {
                return None;
            };
            let [slot, remaining, fence, retained, node] = fields.as_slice() else {
                return None;
            };
            let (slot, fence) = (u32::try_from(int(slot)?).ok()?, int(fence)?);
            let remaining = Duration::from_micros(int(remaining)?);
            let fence = FencingToken::new(fence);
            let holder = leader_core::Holder::new(somebody(node)?, slot, fence, remaining);
            Some(if flag(retained)? {
                holder.retained()
            } else {
                holder
            })
        };
        (word == "holders").then(|| rest.iter().map(holder).collect::<Option<Vec<_>>>())?
    });
    agree(reply::inspect(&reply), held);

    let evicted = said.meaning(|word, rest| match (word, rest) {
        ("evicted", [count]) => u32::try_from(int(count)?).ok(),
        _ => None,
    });
    agree(reply::evict(&reply), evicted);
    let observed = said.meaning(|word, rest| match (word, rest) {
        ("observed", [before]) => flag(before),
        _ => None,
    });
    agree(reply::observe(&reply), observed);

    beside_scripts(value, &reply);
}

/// A batch of extensions: as many answers as there were questions, and "extended" only where it stands.
fn extended(value: &Value, reply: &Reply, count: usize) {
    let each = match reply::extend(reply, count) {
        Ok(each) => each,
        Err(error) => return odd(&error),
    };
    let Value::Array(values) = value else {
        panic!("{value:?} was taken for a batch");
    };
    assert_eq!((each.len(), values.len()), (count, count));
    for (read, value) in each.iter().zip(values) {
        let said = text(value);
        let extended = matches!(read, Ok(ExtendReply::Extended));
        assert_eq!(
            extended,
            said == Some("extended"),
            "{value:?} gave {read:?}"
        );
        if let Ok(ExtendReply::NotHeld(reason)) = read {
            assert_eq!(said.and_then(loss), Some(*reason));
        }
    }
}

/// What is read of answers to plain commands, and to the scripts for values.
fn beside_scripts(value: &Value, reply: &Reply) {
    if let Ok(Some(revision)) = reply::revision(reply) {
        assert_eq!(text(value).and_then(digits), Some(revision.get()));
    }
    match reply::fenced_set(reply) {
        Ok(reply::FencedSet::Written) => assert_eq!(Said::of(value), Said::Words("written", &[])),
        Ok(reply::FencedSet::Stale { seen }) => {
            let Said::Words("stale", [number]) = Said::of(value) else {
                panic!("{value:?} was taken for stale");
            };
            assert_eq!(text(number).and_then(digits), Some(seen.get()));
        }
        Err(error) => odd(&error),
    }
    match reply::fenced_get(reply) {
        Ok(None) => assert_eq!(Said::of(value), Said::Words("none", &[])),
        Ok(Some(read)) => {
            let Said::Words("value", [fence, kept]) = Said::of(value) else {
                panic!("{value:?} was taken for a value");
            };
            assert_eq!(text(fence).and_then(digits), Some(read.fence().get()));
            assert_eq!(kept.as_bytes(), Some(read.value()));
        }
        Err(error) => odd(&error),
    }
    if let Ok(acknowledged) = reply::acknowledged(reply) {
        let counted = match value {
            Value::Array(both) => both.get(1).and_then(int),
            one => int(one),
        };
        assert_eq!(counted, Some(acknowledged.replicas));
    }
    let _ = reply::online_replicas(reply);
    if let Some(run_id) = reply::run_id(reply) {
        assert!(text(value).is_some_and(|text| text.contains(&run_id)));
    }
    let _ = reply.is_from_a_replica();
    let topology = Topology::new();
    let asked = Node {
        host: "asked".to_owned(),
        port: 1,
    };
    let read = topology.read(reply, &asked);
    assert!(read.is_some() || topology.primaries().is_empty());
}

/// A message of any shape on a name's channel: read as what our scripts write, or as "ask again". It can be passed on.
pub fn message(value: &Value) {
    let hint = reply::hint(&Reply::from(value.clone()));
    let said = text(value);
    let released = said.and_then(|said| {
        let (revision, free_in) = said.split_once(':')?;
        Some((digits(revision)?, digits(free_in)?))
    });
    match (hint, released) {
        (Hint::Released { revision, free_in }, Some((number, micros))) => {
            assert_eq!(revision.get(), number);
            assert_eq!(free_in.as_micros(), u128::from(micros));
        }
        (Hint::Changed, None) => assert_eq!(said, Some("changed")),
        (Hint::Missed, None) => {}
        (hint, _) => panic!("{value:?} was read as {hint:?}"),
    }
    let (sender, _hints) = hints();
    sender.push(hint);
    sender.push(hint);
}

/// What a server refuses with, or a library says of a connection: some kind of error, in which the address stands.
pub fn refusal(words: &str) {
    let refused = Failure::Refused(words.to_owned());
    let _ = (refused.redirect(), refused.is_unknown_script());
    let _ = (refused.is_unknown_command(), refused.is_from_a_replica());
    for failure in [
        refused.clone().within(&script::CLAIM),
        refused.clone().within(&script::EXTEND),
        refused,
        Failure::Cut(words.to_owned()),
        Failure::NotSent(Some(Box::new(Failure::Cut(words.to_owned())))),
        Failure::Client(words.to_owned()),
    ] {
        for error in [
            failure.at("cache:6379", Some("leader:{invoice-close}:lease")),
            failure.at_value("cache:6379", "balance"),
            failure.at("cache:6379", None),
        ] {
            assert!(error.to_string().starts_with("cache:6379: "), "{error}");
            assert_ne!(error.kind(), BackendKind::MalformedReply);
        }
    }
}

/// Two names, or two prefixes, share no key and no channel; all keys of one name are in one slot of a cluster.
pub fn keys((prefix, name): (&str, &str), (other_prefix, other_name): (&str, &str)) {
    let all = |prefix: &str, name: &str| {
        let (keys, name) = (Keys::new(prefix).ok()?, LockName::new(name).ok()?);
        let all = [
            keys.record(&name),
            keys.channel(&name),
            keys.changes(&name),
            // As scripts call it.
            keys.record(&name).replace("}:lease", "}:ended:00ff"),
        ];
        for key in &all {
            let tagged = key
                .split_once('{')
                .and_then(|(_, rest)| rest.split_once('}'));
            assert_eq!(tagged.map(|(tag, _)| tag), Some(name.as_str()));
        }
        Some(all)
    };
    let (Some(one), Some(other)) = (all(prefix, name), all(other_prefix, other_name)) else {
        return;
    };
    let is_same = (prefix, name) == (other_prefix, other_name);
    assert_eq!(one == other, is_same);
    assert_eq!(one.iter().any(|key| other.contains(key)), is_same);
}

/// A URL that may have `secret` in its password: it is refused without telling it, or read and shown without it.
pub fn url(text: &str, secret: &str) {
    let builder = RedisElector::builder().url(text);
    let shown = match builder.plan() {
        Ok(plan) => {
            let endpoint = plan.way.endpoint();
            assert!(!endpoint.hosts().is_empty());
            for Node { host, port } in endpoint.hosts() {
                let is_odd = |c: char| c.is_control() || c.is_whitespace() || c == '@';
                assert!(port > 0 && !host.is_empty(), "{text:?}");
                assert!(!host.contains(is_odd), "{text:?} is at {host:?}");
            }
            let quorum = RedisElector::quorum([text, "redis://a", text]);
            let refused = quorum.plans().err().map(|error| error.to_string());
            format!("{endpoint:?} {} {refused:?}", plan.address())
        }
        Err(error) => {
            assert!(
                matches!(&error, LeaderError::InvalidOptions { option, .. } if *option == "url")
            );
            let told = format!("{error} {error:?}");
            assert!(!told.contains(char::is_control), "{told:?}");
            told
        }
    };
    let shown = format!("{shown} {builder:?}");
    assert!(
        secret.is_empty() || !shown.contains(secret),
        "{text:?} was shown as {shown}"
    );
    let _ = url::endpoint(text);
}

/// A user and a password of any characters, escaped as the documentation says, are what the server will be told.
pub fn login(user: &str, password: &str, host: &str, port: u16) {
    if password.is_empty() || port == 0 {
        return;
    }
    let escape = |text: &str| {
        text.bytes().fold(String::new(), |escaped, byte| {
            escaped + &format!("%{byte:02X}")
        })
    };
    let (user_there, password_there) = (escape(user), escape(password));
    let text = format!("redis://{user_there}:{password_there}@{host}:{port}");
    let endpoint = url::endpoint(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let (read_user, read_password) = endpoint.login();
    assert_eq!(read_user.unwrap_or_default(), user);
    assert_eq!(read_password.unwrap_or_default(), password);
    assert_eq!(endpoint.address(), format!("{host}:{port}"));
}

/// A list that starts with a word.
#[derive(Debug, PartialEq)]
enum Said<'a> {
    Words(&'a str, &'a [Value]),
    Nothing,
}

impl<'a> Said<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Array(values) => match values.split_first() {
                Some((word, rest)) => {
                    text(word).map_or(Self::Nothing, |word| Self::Words(word, rest))
                }
                None => Self::Nothing,
            },
            _ => Self::Nothing,
        }
    }

    fn meaning<T>(&self, read: impl FnOnce(&str, &[Value]) -> Option<T>) -> Option<T> {
        match self {
            Self::Words(word, rest) => read(word, rest),
            Self::Nothing => None,
        }
    }
}

/// `<word>:<number>:<number>`, as scripts answer what is answered most.
fn numbers(value: &Value, word: &str) -> Option<(u64, u64)> {
    let parts: Vec<&str> = text(value)?.split(':').collect();
    let [first, small, large] = parts.as_slice() else {
        return None;
    };
    (*first == word).then_some(())?;
    Some((digits(small)?, digits(large)?))
}

#[track_caller]
fn agree<T: PartialEq + std::fmt::Debug>(read: Result<T, Oddity>, said: impl Into<Option<T>>) {
    let said = said.into();
    match read {
        Ok(read) => assert_eq!(Some(read), said),
        Err(error) => {
            assert_eq!(None, said, "{error:?}");
            odd(&error);
        }
    }
}

/// An error about a reply is one line that a log can take.
fn odd(error: &Oddity) {
    if let Oddity::Malformed(words) = error {
        assert!(words.chars().count() < 1500, "{words}");
        assert!(!words.contains(char::is_control), "{words:?}");
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

fn int(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn digits(text: &str) -> Option<u64> {
    let number: u128 = match text.trim_start_matches('0') {
        "" if text.is_empty() => return None,
        "" => 0,
        rest if rest.len() > 20 || !rest.bytes().all(|byte| byte.is_ascii_digit()) => return None,
        rest => rest
            .bytes()
            .fold(0, |sum, byte| sum * 10 + u128::from(byte - b'0')),
    };
    u64::try_from(number).ok()
}

/// A holder who has a name.
fn somebody(value: &Value) -> Option<NodeId> {
    let id = match value {
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => return None,
    };
    (!id.trim().is_empty()).then(|| NodeId::new(id))
}

fn loss(word: &str) -> Option<LossReason> {
    match word {
        "expired" => Some(LossReason::Expired),
        "taken" => Some(LossReason::Taken),
        "deleted" => Some(LossReason::Deleted),
        _ => None,
    }
}
