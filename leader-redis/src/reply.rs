//! [`Reply`]: what a server answered, and what the scripts' answers mean. Any other shape is an error, never a grant.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use leader_core::store::{ClaimReply, ExtendReply, Hint, ReleaseReply, Revision};
use leader_core::{FencingToken, Holder, LossReason, NodeId};

use crate::fenced::FencedValue;

/// A server's answer, in no client library's words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Number(i64),
    Text(String),
    /// What is no UTF-8.
    Bytes(Vec<u8>),
    List(Vec<Reply>),
    Nil,
    /// Of a type that no command of ours is answered with.
    Strange(&'static str),
}

/// An answer that is no grant, no refusal, nothing: why a reply could not be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Oddity {
    /// Something that is not ours stands at the key.
    Foreign,
    /// An answer that the script does not give.
    Malformed(String),
    /// The server's refusal of one part of a batch, in its words.
    Refused(String),
}

/// The answer to a release, with what only this store knows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Released {
    pub(crate) reply: ReleaseReply,
    /// Why nobody could be told, in the server's words.
    pub(crate) untold: Option<String>,
}

/// The answer to a claim or a release without the time that is told behind it, and that time in microseconds.
pub(crate) fn split_time(reply: Reply) -> (Reply, Option<u64>) {
    if let Reply::Text(text) = &reply
        && let Some((answer, time)) = text.split_once('@')
        && let Some(time) = decimal(time)
        && (1..=MAX_EXACT).contains(&time)
    {
        return (Reply::Text(answer.to_owned()), Some(time));
    }
    (reply, None)
}

/// The answer to a claim of one of `slots`.
pub(crate) fn claim(reply: &Reply, slots: u32) -> Result<ClaimReply, Oddity> {
    if let Some((slot, fence)) = pair(reply, "granted:") {
        // Beyond that a script cannot tell a number from the next.
        if slot >= slots || !(1..=MAX_EXACT).contains(&fence) {
            return Err(malformed(reply));
        }
        return Ok(ClaimReply::Granted {
            slot,
            fence: FencingToken::new(fence),
        });
    }
    match known(reply)? {
        ("taken", [free_in, revision, holder]) => Ok(ClaimReply::Taken {
            retry_after: Duration::from_micros(number(free_in)?),
            holder: Some(node_id(holder)?),
            revision: Revision::new(number(revision)?),
        }),
        ("ended", []) => Ok(ClaimReply::Ended),
        _ => Err(malformed(reply)),
    }
}

/// The largest number that Lua, whose numbers are doubles, keeps apart from those beside it.
const MAX_EXACT: u64 = (1 << 53) - 1;

/// The answers to a batch of `count` extensions, in its order.
pub(crate) fn extend(
    reply: &Reply,
    count: usize,
) -> Result<Vec<Result<ExtendReply, Oddity>>, Oddity> {
    let ("extended", [extended, others @ ..]) = known(reply)? else {
        return Err(malformed(reply));
    };
    let mut answers = vec![Ok(ExtendReply::Extended); count];
    for other in others.chunks(2) {
        let [place, Reply::Text(why)] = other else {
            return Err(malformed(reply));
        };
        let place = usize::try_from(number(place)?).unwrap_or(usize::MAX);
        let answer = place.checked_sub(1).and_then(|at| answers.get_mut(at));
        match answer {
            // Each is told of once.
            Some(answer) if *answer == Ok(ExtendReply::Extended) => {
                *answer = not_extended(why, reply);
            }
            _ => return Err(malformed(reply)),
        }
    }
    let not_told_of = answers
        .iter()
        .filter(|answer| **answer == Ok(ExtendReply::Extended));
    if number(extended)? == not_told_of.count() as u64 {
        Ok(answers)
    } else {
        Err(malformed(reply))
    }
}

fn not_extended(why: &str, reply: &Reply) -> Result<ExtendReply, Oddity> {
    match why.strip_prefix('!') {
        Some(words) => Err(Oddity::Refused(words.to_owned())),
        None if why == "foreign" => Err(Oddity::Foreign),
        None => reason(why)
            .map(ExtendReply::NotHeld)
            .ok_or_else(|| malformed(reply)),
    }
}

pub(crate) fn release(reply: &Reply) -> Result<Released, Oddity> {
    let released = |revision, told, untold| Released {
        reply: ReleaseReply::Released {
            revision: Revision::new(revision),
            told,
        },
        untold,
    };
    if let Some((told, revision)) = pair(reply, "released:") {
        return Ok(released(revision, told, None));
    }
    match known(reply)? {
        ("released", [revision, Reply::Text(words)]) => {
            Ok(released(number(revision)?, 0, Some(words.clone())))
        }
        (text, []) if reason(text).is_some() => Ok(Released {
            reply: ReleaseReply::NotHeld(reason(text).unwrap_or(LossReason::Deleted)),
            untold: None,
        }),
        _ => Err(malformed(reply)),
    }
}

pub(crate) fn inspect(reply: &Reply) -> Result<Vec<Holder>, Oddity> {
    let ("holders", holders) = known(reply)? else {
        return Err(malformed(reply));
    };
    holders.iter().map(holder).collect()
}

fn holder(reply: &Reply) -> Result<Holder, Oddity> {
    let Reply::List(fields) = reply else {
        return Err(malformed(reply));
    };
    let [slot, remaining, fence, retained, node] = fields.as_slice() else {
        return Err(malformed(reply));
    };
    let holder = Holder::new(
        node_id(node)?,
        small(slot)?,
        FencingToken::new(number(fence)?),
        Duration::from_micros(number(remaining)?),
    );
    match number(retained)? {
        0 => Ok(holder),
        1 => Ok(holder.retained()),
        _ => Err(malformed(reply)),
    }
}

pub(crate) fn evict(reply: &Reply) -> Result<u32, Oddity> {
    match known(reply)? {
        ("evicted", [count]) => small(count),
        _ => Err(malformed(reply)),
    }
}

/// Whether the name had been observed until then.
pub(crate) fn observe(reply: &Reply) -> Result<bool, Oddity> {
    match known(reply)? {
        ("observed", [before]) => match number(before)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(malformed(reply)),
        },
        _ => Err(malformed(reply)),
    }
}

/// What became of a fenced write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FencedSet {
    Written,
    Stale { seen: FencingToken },
}

pub(crate) fn fenced_set(reply: &Reply) -> Result<FencedSet, Oddity> {
    match known(reply)? {
        ("written", []) => Ok(FencedSet::Written),
        ("stale", [seen]) => Ok(FencedSet::Stale {
            seen: digits(seen)?,
        }),
        _ => Err(malformed(reply)),
    }
}

pub(crate) fn fenced_get(reply: &Reply) -> Result<Option<FencedValue>, Oddity> {
    match known(reply)? {
        ("none", []) => Ok(None),
        ("value", [fence, Reply::Text(value)]) => Ok(Some(FencedValue::new(
            digits(fence)?,
            value.as_bytes().to_vec(),
        ))),
        ("value", [fence, Reply::Bytes(value)]) => {
            Ok(Some(FencedValue::new(digits(fence)?, value.clone())))
        }
        _ => Err(malformed(reply)),
    }
}

/// A fencing token that was kept as text, by a script of ours or by somebody's hand.
fn digits(reply: &Reply) -> Result<FencingToken, Oddity> {
    match reply {
        Reply::Text(digits) => decimal(digits)
            .map(FencingToken::new)
            .ok_or(Oddity::Foreign),
        _ => Err(malformed(reply)),
    }
}

/// The last revision that a record has, `None` when there is no record.
pub(crate) fn revision(reply: &Reply) -> Result<Option<Revision>, Oddity> {
    match reply {
        Reply::Nil => Ok(None),
        Reply::Text(digits) => decimal(digits)
            .map(|number| Some(Revision::new(number)))
            .ok_or(Oddity::Foreign),
        _ => Err(malformed(reply)),
    }
}

/// Who has acknowledged what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledged {
    pub(crate) replicas: u64,
    /// The server itself, where that is asked for.
    pub(crate) by_server: bool,
}

/// The answer to `WAIT`, or to `WAITAOF`.
pub(crate) fn acknowledged(reply: &Reply) -> Result<Acknowledged, Oddity> {
    let (server, replicas) = match reply {
        Reply::List(both) => match both.as_slice() {
            [server, replicas] => (number(server)?, number(replicas)?),
            _ => return Err(malformed(reply)),
        },
        replicas => (1, number(replicas)?),
    };
    Ok(Acknowledged {
        replicas,
        by_server: server > 0,
    })
}

/// How many replicas are connected and up to date but for what is on its way, of what `INFO replication` tells.
pub(crate) fn online_replicas(reply: &Reply) -> Option<usize> {
    let Reply::Text(info) = reply else {
        return None;
    };
    let replicas = info.lines().filter(|line| {
        let number = line.strip_prefix("slave");
        number.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    Some(
        replicas
            .filter(|line| line.contains("state=online"))
            .count(),
    )
}

/// The name that a server has given itself, in its answer to `INFO server`.
pub(crate) fn run_id(reply: &Reply) -> Option<String> {
    let Reply::Text(info) = reply else {
        return None;
    };
    let mut lines = info.lines();
    let run_id = lines.find_map(|line| line.strip_prefix("run_id:"))?.trim();
    (!run_id.is_empty()).then(|| run_id.to_owned())
}

/// Reads the message of a release, `<revision>:<microseconds until free>`, or of another change, `changed`. What cannot be
/// read says no more than that there is something to ask after.
pub(crate) fn hint(told: &Reply) -> Hint {
    let Reply::Text(text) = told else {
        return Hint::Missed;
    };
    if text == "changed" {
        return Hint::Changed;
    }
    let read = || {
        let (revision, free_in) = text.split_once(':')?;
        Some(Hint::Released {
            revision: Revision::new(decimal(revision)?),
            free_in: Duration::from_micros(decimal(free_in)?),
        })
    };
    read().unwrap_or(Hint::Missed)
}

/// A text that starts with a word and has two numbers, a small one and one of 16 digits.
fn pair(reply: &Reply, word: &str) -> Option<(u32, u64)> {
    let Reply::Text(text) = reply else {
        return None;
    };
    let (small, large) = text.strip_prefix(word)?.split_once(':')?;
    Some((decimal(small)?.try_into().ok()?, decimal(large)?))
}

/// A list that starts with a word.
fn known(reply: &Reply) -> Result<(&str, &[Reply]), Oddity> {
    let Reply::List(list) = reply else {
        return Err(malformed(reply));
    };
    match list.split_first() {
        Some((Reply::Text(word), [])) if word == "foreign" => Err(Oddity::Foreign),
        Some((Reply::Text(word), rest)) => Ok((word, rest)),
        _ => Err(malformed(reply)),
    }
}

fn reason(text: &str) -> Option<LossReason> {
    match text {
        "expired" => Some(LossReason::Expired),
        "taken" => Some(LossReason::Taken),
        "deleted" => Some(LossReason::Deleted),
        _ => None,
    }
}

fn number(reply: &Reply) -> Result<u64, Oddity> {
    match reply {
        Reply::Number(number) => u64::try_from(*number).map_err(|_| malformed(reply)),
        _ => Err(malformed(reply)),
    }
}

/// Digits and nothing else: no sign, which the standard library would read.
fn decimal(text: &str) -> Option<u64> {
    let all_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| all_digits)
}

fn small(reply: &Reply) -> Result<u32, Oddity> {
    u32::try_from(number(reply)?).map_err(|_| malformed(reply))
}

fn node_id(reply: &Reply) -> Result<NodeId, Oddity> {
    let id = match reply {
        Reply::Text(id) => Cow::Borrowed(id.as_str()),
        Reply::Bytes(id) => String::from_utf8_lossy(id),
        _ => return Err(malformed(reply)),
    };
    // One that is blank would become one of this very process.
    if id.trim().is_empty() {
        return Err(malformed(reply));
    }
    Ok(NodeId::new(id))
}

fn malformed(reply: &Reply) -> Oddity {
    Oddity::Malformed(format!("an answer that was not expected: {reply}"))
}

/// Short, whatever the answer was.
impl Reply {
    /// Whether a script that goes on with the next lease has met a server that is no primary: it answers with the
    /// refusals, and does not fail by them.
    pub(crate) fn is_from_a_replica(&self) -> bool {
        let Self::List(answers) = self else {
            return false;
        };
        answers
            .iter()
            .any(|answer| matches!(answer, Self::Text(words) if words.starts_with("!READONLY ")))
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => {
                let shown: String = text.chars().take(24).collect();
                write!(f, "{shown:?}")
            }
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::List(list) => {
                f.write_str("[")?;
                for (n, reply) in list.iter().take(4).enumerate() {
                    let comma = if n == 0 { "" } else { ", " };
                    match reply {
                        Self::List(inner) => write!(f, "{comma}[{} more]", inner.len())?,
                        reply => write!(f, "{comma}{reply}")?,
                    }
                }
                f.write_str(if list.len() > 4 { ", ..]" } else { "]" })
            }
            Self::Nil => f.write_str("nil"),
            Self::Strange(kind) => write!(f, "a {kind}"),
        }
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
