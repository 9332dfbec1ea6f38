//! `stale write`: the fenced value never accepts a token lower than one it has seen, and refuses no other.

use std::collections::BTreeMap;

use super::{Story, Violation};
use crate::check::story::Write;

pub(super) fn check(story: &Story) -> Vec<Violation> {
    let mut keys: BTreeMap<&str, Vec<&Write>> = BTreeMap::new();
    for write in &story.writes {
        keys.entry(&write.key).or_default().push(write);
    }
    let mut violations = Vec::new();
    for (key, writes) in &keys {
        accepted_in_order(writes, &mut violations);
        refused_with_reason(writes, &mut violations);
        let value = story.values.iter().find(|(of, _)| of == key);
        ends_highest(key, writes, value.map(|(_, fence)| *fence), &mut violations);
    }
    violations
}

/// A write that was sent after a higher token was seen, by an answer that was there already, must be refused.
fn accepted_in_order(writes: &[&Write], violations: &mut Vec<Violation>) {
    let mut answered: Vec<(u64, u64, &Write)> = writes
        .iter()
        .filter_map(|write| {
            let answer = write.answer.as_ref()?;
            Some((answer.at, answer.seen.unwrap_or(write.fence), *write))
        })
        .collect();
    answered.sort_by_key(|(at, ..)| *at);
    let mut known = answered.into_iter().peekable();
    let mut highest: Option<(u64, &Write)> = None;
    // In the order in which they were sent.
    for write in writes {
        while let Some((_, fence, by)) = known.next_if(|(at, ..)| *at < write.sent) {
            if highest.is_none_or(|(highest, _)| highest < fence) {
                highest = Some((fence, by));
            }
        }
        let accepted = write
            .answer
            .as_ref()
            .is_some_and(|answer| answer.seen.is_none());
        if let Some((seen, by)) = highest.filter(|(seen, _)| accepted && write.fence < *seen) {
            let what = format!(
                "{} accepted {} after it had seen {seen}",
                write.key, write.fence
            );
            violations.push(broken(what, &[by, write]));
        }
    }
}

/// What a write was refused for is higher than its own token, and was sent by somebody before.
fn refused_with_reason(writes: &[&Write], violations: &mut Vec<Violation>) {
    let mut first_sent: BTreeMap<u64, u64> = BTreeMap::new();
    for write in writes {
        first_sent.entry(write.fence).or_insert(write.sent);
    }
    for write in writes {
        let Some(answer) = &write.answer else {
            continue;
        };
        let Some(seen) = answer.seen else { continue };
        let presented = first_sent.get(&seen).is_some_and(|sent| *sent <= answer.at);
        if seen <= write.fence || !presented {
            let what = format!(
                "{} refused {} for {seen}, which is no reason",
                write.key, write.fence
            );
            violations.push(broken(what, &[write]));
        }
    }
}

/// In the end the value has the highest token that was accepted, or that may have been.
fn ends_highest(key: &str, writes: &[&Write], value: Option<u64>, violations: &mut Vec<Violation>) {
    let accepted = writes.iter().filter(|write| {
        write
            .answer
            .as_ref()
            .is_some_and(|answer| answer.seen.is_none())
    });
    let Some(highest) = accepted.max_by_key(|write| write.fence) else {
        return;
    };
    let unknown = |fence| {
        writes
            .iter()
            .any(|write| write.fence == fence && write.answer.is_none())
    };
    let right = value == Some(highest.fence)
        || value.is_some_and(|value| value > highest.fence && unknown(value));
    if !right {
        let what = format!(
            "{key} accepted {}, and in the end has {value:?}",
            highest.fence
        );
        violations.push(broken(what, &[highest]));
    }
}

fn broken(what: String, writes: &[&Write]) -> Violation {
    let line = |write: &&Write| {
        let [sent, answered] = &write.places;
        let answer = match &write.answer {
            None => "no answer".to_owned(),
            Some(answer) => match answer.seen {
                None => format!("accepted at {}", answer.at),
                Some(seen) => format!("refused for {seen} at {}", answer.at),
            },
        };
        format!(
            "{sent} {} of {} sent at {}; {answer} {answered}",
            write.fence, write.key, write.sent
        )
    };
    Violation {
        rule: "stale write",
        what,
        lines: writes.iter().map(line).collect(),
    }
}
