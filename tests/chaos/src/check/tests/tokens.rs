//! `fencing` and `stale write`: the order of tokens, and of what is written under them.

use super::*;

#[test]
fn fencing_tokens_grow_and_none_is_given_twice() {
    let second = |fence, asked: Option<u64>| {
        let mut forged = Forgery::single();
        forged
            .add(0, begin("x", 0, 10, LATER))
            .add(0, end("x", 10, LATER + 100));
        let later = begin("x", 0, fence, LATER + 200);
        forged.add(
            1,
            asked.map_or(later.clone(), |asked| asked_at(asked, later)),
        );
        forged.add(1, end("x", fence, LATER + 300));
        forged.broken()
    };
    assert_eq!(second(11, None), [""; 0]);
    assert_eq!(second(9, None), ["fencing"]);
    assert_eq!(second(10, None), ["fencing"]);
    assert_eq!(second(11, Some(LATER + 50)), [""; 0]);
    assert_eq!(second(9, Some(LATER + 50)), ["fencing"]);
}

#[test]
fn fencing_what_was_asked_for_later_has_the_higher_token_in_another_slot_too() {
    let second = |fence, asked| {
        let mut forged = Forgery::single();
        forged
            .add(0, begin("pool", 0, 10, LATER))
            .add(0, end("pool", 10, LATER + 500));
        forged.add(1, asked_at(asked, begin("pool", 1, fence, LATER + 200)));
        forged.add(1, end("pool", fence, LATER + 300));
        forged.broken()
    };
    assert_eq!(second(11, LATER + 50), [""; 0]);
    assert_eq!(second(9, LATER + 50), ["fencing"]);
    // Asked for before: either may have been first.
    assert_eq!(second(9, LATER - 50), [""; 0]);
}

#[test]
fn stale_write_a_lower_token_after_a_higher_one_was_seen() {
    let late = |sent_at, seen| {
        let mut forged = Forgery::single();
        forged
            .add(0, sent(7, "v", 20, LATER))
            .add(0, answered(7, LATER + 100, None));
        forged
            .add(1, sent(7, "v", 19, sent_at))
            .add(1, answered(7, LATER + 900, seen));
        forged.tell(Record::Value {
            key: "v".to_owned(),
            fence: 20,
        });
        forged.broken()
    };
    assert_eq!(late(LATER + 200, Some(20)), [""; 0]);
    assert_eq!(late(LATER + 200, None), ["stale write"]);
    // On its way at the same time: it may have come first.
    assert_eq!(late(LATER + 50, None), [""; 0]);
}

#[test]
fn stale_write_what_a_refusal_names_was_seen_as_well() {
    let mut forged = Forgery::single();
    // Nobody knows whether it was accepted, but for the refusal.
    forged.add(0, sent(7, "v", 20, LATER));
    forged
        .add(1, sent(7, "v", 19, LATER + 10))
        .add(1, answered(7, LATER + 20, Some(20)));
    forged.tell(Record::Value {
        key: "v".to_owned(),
        fence: 20,
    });
    assert_eq!(forged.broken(), [""; 0]);
    forged
        .add(1, sent(8, "v", 18, LATER + 30))
        .add(1, answered(8, LATER + 40, None));
    assert_eq!(forged.broken(), ["stale write"]);
}

#[test]
fn stale_write_no_write_is_refused_without_a_reason() {
    let refused = |fence, seen| {
        let mut forged = Forgery::single();
        forged
            .add(0, sent(7, "v", 20, LATER))
            .add(0, answered(7, LATER + 100, None));
        forged
            .add(1, sent(7, "v", fence, LATER + 200))
            .add(1, answered(7, LATER + 300, Some(seen)));
        forged.tell(Record::Value {
            key: "v".to_owned(),
            fence: 20,
        });
        forged.broken()
    };
    assert_eq!(refused(19, 20), [""; 0]);
    assert_eq!(refused(20, 20), ["stale write"]);
    assert_eq!(refused(21, 20), ["stale write"]);
    // A token that nobody has presented.
    assert_eq!(refused(19, 25), ["stale write"]);
}

#[test]
fn stale_write_the_value_ends_with_the_highest_token() {
    let ends = |value: Option<u64>| {
        let mut forged = Forgery::single();
        forged
            .add(0, sent(7, "v", 20, LATER))
            .add(0, answered(7, LATER + 100, None));
        forged.add(1, sent(7, "v", 22, LATER + 200));
        if let Some(fence) = value {
            forged.tell(Record::Value {
                key: "v".to_owned(),
                fence,
            });
        }
        forged.broken()
    };
    assert_eq!(ends(Some(20)), [""; 0]);
    // The write without an answer.
    assert_eq!(ends(Some(22)), [""; 0]);
    for wrong in [Some(19), Some(21), None] {
        assert_eq!(ends(wrong), ["stale write"], "{wrong:?}");
    }
}
