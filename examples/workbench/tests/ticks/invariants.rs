//! What holds for any plan: the library's promises, in ticks, and the ticks that the numbers of a plan promise.

use std::collections::{BTreeMap, BTreeSet};

use leader_workbench::ticks::{Action, Candidate, OnLost, Plan, Row, play};

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u32) -> u32 {
        // Knuth's MMIX generator; its upper bits are the good ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(limit)).expect("below the limit")
    }

    /// A plan in which each candidate stands once.
    fn plan(&mut self) -> Plan {
        let longest = [30, 8, 8, 8][self.below(4) as usize];
        let lease = 1 + self.below(longest);
        let candidates = 1 + self.below(6);
        Plan {
            lease,
            work: 1 + self.below(12),
            wait: self.below(8),
            min_lease: self.below(lease + 1),
            slots: 1 + self.below(3),
            auto_extend: self.below(3) == 0,
            on_lost: [OnLost::Stop, OnLost::Continue][self.below(2) as usize],
            writes: self.below(2) == 0,
            stands: Plan::one_each((0..candidates).map(|_| self.below(16))),
            pauses: Vec::new(),
        }
    }
}

#[test]
fn whatever_the_plan() {
    let mut dice = Dice(1);
    for _ in 0..500 {
        let plan = dice.plan();
        let rows = play(plan.clone()).expect("the plan is played");
        at_most_as_many_lead_as_there_are_slots_and_never_two_in_one(&plan, &rows);
        fencing_tokens_increase_and_stale_writes_are_refused(&plan, &rows);
        rows_are_in_the_order_of_ticks_and_each_stand_ends_once(&plan, &rows);
        what_a_plan_says_in_ticks_happens_in_that_tick(&plan, &rows);
        nobody_is_skipped_or_waits_while_a_slot_is_free(&plan, &rows);
    }
}

/// The row of that candidate with one of those actions.
fn row_of<'a>(rows: &'a [Row], candidate: Candidate, actions: &[Action]) -> Option<&'a Row> {
    rows.iter()
        .find(|row| row.candidate == candidate && actions.contains(&row.action))
}

fn at_most_as_many_lead_as_there_are_slots_and_never_two_in_one(plan: &Plan, rows: &[Row]) {
    let mut leading = BTreeMap::new();
    for row in rows {
        match row.action {
            Action::Elected => {
                let slot = row.slot.expect("a slot");
                assert!(slot < plan.slots, "{plan:?} {row:?}");
                let other = leading.insert(slot, row.candidate);
                assert_eq!(other, None, "{plan:?} {row:?}");
            }
            Action::Lost | Action::Released => {
                let led = leading.remove(&row.slot.expect("a slot"));
                assert_eq!(led, Some(row.candidate), "{plan:?} {row:?}");
            }
            Action::Failed => panic!("{plan:?} {row:?}"),
            _ => {}
        }
    }
    assert!(leading.is_empty(), "{plan:?}");
}

fn fencing_tokens_increase_and_stale_writes_are_refused(plan: &Plan, rows: &[Row]) {
    let tokens: Vec<_> = rows
        .iter()
        .filter(|row| row.action == Action::Elected)
        .map(|row| row.token.expect("a token"))
        .collect();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{plan:?}");
    let mut seen = 0;
    for row in rows {
        let token = row.token.unwrap_or_default();
        match row.action {
            Action::WroteFirst | Action::WroteLast => {
                assert!(token >= seen, "{plan:?} {row:?}");
                seen = token;
            }
            Action::FirstWriteRefused | Action::LastWriteRefused => {
                assert!(token < seen, "{plan:?} {row:?}");
                assert_eq!(row.seen, Some(seen), "{plan:?} {row:?}");
            }
            _ => {}
        }
    }
}

fn rows_are_in_the_order_of_ticks_and_each_stand_ends_once(plan: &Plan, rows: &[Row]) {
    assert!(rows.is_sorted_by_key(|row| row.tick), "{plan:?}");
    let ends = |row: &&Row| matches!(row.action, Action::Elected | Action::Skipped);
    let ended: Vec<_> = rows.iter().filter(ends).map(|row| row.candidate).collect();
    let once: BTreeSet<_> = ended.iter().copied().collect();
    assert_eq!(ended.len(), once.len(), "{plan:?}");
    assert_eq!(once, plan.candidates(), "{plan:?}");
}

fn what_a_plan_says_in_ticks_happens_in_that_tick(plan: &Plan, rows: &[Row]) {
    for stand in &plan.stands {
        let of = |actions: &[Action]| row_of(rows, stand.candidate, actions);
        if let Some(skipped) = of(&[Action::Skipped]) {
            assert_eq!(skipped.tick, stand.tick + plan.wait, "{plan:?} {skipped:?}");
            continue;
        }
        let elected = of(&[Action::Elected]).expect("elected or skipped");
        assert!(
            elected.tick <= stand.tick + plan.wait,
            "{plan:?} {elected:?}"
        );
        assert_eq!(elected.remaining, Some(plan.lease), "{plan:?} {elected:?}");
        let waited = of(&[Action::Waits]).is_some();
        assert_eq!(waited, elected.tick > stand.tick, "{plan:?} {elected:?}");
        // A work as long as its lease loses it, as in real time.
        let loses = !plan.auto_extend && plan.work >= plan.lease;
        let end = of(&[Action::Lost, Action::Released]).expect("an end");
        let (action, after) = if loses {
            (Action::Lost, plan.lease)
        } else {
            (Action::Released, plan.work)
        };
        assert_eq!(
            (end.action, end.tick),
            (action, elected.tick + after),
            "{plan:?} {end:?}"
        );
        let kept = plan.min_lease.saturating_sub(plan.work);
        if end.action == Action::Released {
            assert_eq!(end.remaining, Some(kept), "{plan:?} {end:?}");
        }
        let refused = of(&[Action::ReleaseRefused]).map(|row| row.tick);
        let goes_on = loses && plan.on_lost == OnLost::Continue;
        assert_eq!(
            refused,
            goes_on.then_some(elected.tick + plan.work),
            "{plan:?}"
        );
    }
}

fn nobody_is_skipped_or_waits_while_a_slot_is_free(plan: &Plan, rows: &[Row]) {
    // Free after all that happened in a tick, and kept by no minimum lease: then nobody waits.
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    let mut waiting: BTreeSet<Candidate> = BTreeSet::new();
    let last = rows.last().map_or(0, |row| row.tick);
    for tick in 0..=last {
        for row in rows.iter().filter(|row| row.tick == tick) {
            let slot = row.slot.unwrap_or_default();
            match row.action {
                Action::Elected => {
                    waiting.remove(&row.candidate);
                    taken.insert(slot, u32::MAX);
                }
                Action::Lost => {
                    taken.remove(&slot);
                }
                Action::Released => {
                    taken.insert(slot, tick + row.remaining.unwrap_or_default());
                }
                Action::Waits => {
                    waiting.insert(row.candidate);
                }
                Action::Skipped => {
                    waiting.remove(&row.candidate);
                    taken.retain(|_, until| *until > tick);
                    assert_eq!(taken.len(), plan.slots as usize, "{plan:?} {row:?}");
                }
                _ => {}
            }
        }
        taken.retain(|_, until| *until > tick);
        if taken.len() < plan.slots as usize {
            assert!(waiting.is_empty(), "{plan:?} at {tick}: {waiting:?}");
        }
    }
}
