//! `recovery` and `stopped`: when leadership comes back, and when it ends.

use super::*;
use crate::check::ALLOWANCE;

#[test]
fn stopped_a_guarded_body_finds_its_lease_gone_once_at_most() {
    let mut forged = Forgery::single();
    forged
        .add(0, begin("x", 0, 10, LATER))
        .add(0, act("x", 10, LATER + 2 * SECOND, None));
    assert_eq!(forged.broken(), [""; 0]);
    forged.add(0, act("x", 10, LATER + 2 * SECOND + 10, None));
    assert_eq!(forged.broken(), ["stopped"]);
}

#[test]
fn recovery_every_name_is_led_in_time_after_the_last_fault() {
    // Without a fault, nobody has to lead; `pool` goes on.
    let led_at = |after: u64, stalled: u64| {
        let mut forged = Forgery::single();
        forged
            .add(1, begin("pool", 1, 10, LATER))
            .add(1, end("pool", 10, LATER + 60 * SECOND));
        forged.tell(fault(Kind::ServerKilled, LATER + 10, LATER + SECOND, &[]));
        forged.tell(Record::Stall {
            from: LATER + SECOND,
            to: LATER + SECOND + stalled,
        });
        let at = LATER + SECOND + after;
        forged
            .add(0, begin("x", 0, 10, at))
            .add(0, end("x", 10, at + 100));
        forged.broken()
    };
    // The lease, and the allowance.
    let due = SECOND + ALLOWANCE * 1000;
    assert_eq!(led_at(due, 0), [""; 0]);
    assert_eq!(led_at(due + 1, 0), ["recovery"]);
    assert_eq!(led_at(due + 300, 150), [""; 0]);
    assert_eq!(led_at(7 * due, 7 * due / 2), [""; 0]);
    // A machine that stood still for half of it is no excuse for ten times as long.
    assert_eq!(led_at(10 * due, 5 * due), ["recovery"]);
}

#[test]
fn recovery_nobody_ever_leads_again() {
    let ends = |over| {
        let mut forged = Forgery::single();
        forged.tell(fault(Kind::ServerKilled, LATER + 10, LATER + SECOND, &[]));
        forged.over = LATER + SECOND + over;
        let verdict = forged.judged();
        (verdict.recovery.cut_short, forged.broken())
    };
    assert_eq!(ends(20 * SECOND), (0, vec!["recovery"]));
    // Too short to tell, for both names.
    assert_eq!(ends(SECOND), (2, vec![]));
}
