//! The conformance suite catches what it is for: a small store passes it, and with any one flaw does not.

mod flawed;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;

use flawed::{Flaw, FlawedStore};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use leader_core::testing::conformance;

mod without_a_flaw {
    use super::FlawedStore;

    leader_core::conformance_tests!(
        store = async { FlawedStore::new(None) },
        start_paused = true
    );
}

/// Each flaw, and the cases that are there to catch it. Others may catch it too.
const CAUGHT_BY: &[(Flaw, &[&str])] = &[
    (
        Flaw::BatchIsCutShort,
        &["b01_a_large_batch_is_answered_in_full"],
    ),
    (
        Flaw::BatchIsReversed,
        &["b01_a_batch_is_answered_in_its_order"],
    ),
    (
        Flaw::ClaimIsNotAtomic,
        &[
            "a09_of_many_claims_at_once_one_is_granted",
            "e01_many_claims_at_once_fill_the_slots",
            "a03_one_claim_many_times_at_once_is_one_grant",
        ],
    ),
    (
        Flaw::CountsItsOwnSlotsOnly,
        &["e03_who_asks_for_fewer_slots_counts_all_that_are_taken"],
    ),
    (
        Flaw::DenialNamesNobody,
        &["a01_a_held_name_is_denied_and_says_by_whom"],
    ),
    (
        Flaw::DenialTellsOfTheFirst,
        &["e03_a_denial_waits_for_as_many_as_must_leave"],
    ),
    (
        Flaw::DenialTellsOfTheLast,
        &["e02_a_denial_tells_of_the_lease_that_ends_first"],
    ),
    (
        Flaw::EmptyBatchIsAnswered,
        &["an_empty_batch_is_answered_with_nothing"],
    ),
    (
        Flaw::EvictedIsToldTaken,
        &["b04_the_evicted_is_told_that_its_lease_was_deleted"],
    ),
    (Flaw::ExactSlotIgnored, &["an_exact_slot_is_granted"]),
    (
        Flaw::ExactSlotIsAWish,
        &["an_exact_slot_is_denied_while_it_is_taken"],
    ),
    (
        Flaw::ExactSlotIsNotCounted,
        &["an_exact_slot_is_one_of_those_that_are_counted"],
    ),
    (
        Flaw::ExactSlotIsTaken,
        &["a_token_in_force_is_granted_the_slot_it_has"],
    ),
    (
        Flaw::ExactSlotTellsOfTheFirst,
        &["an_exact_slot_is_denied_while_it_is_taken"],
    ),
    (
        Flaw::EvictionCountsOne,
        &["an_eviction_of_a_free_name_frees_nothing"],
    ),
    (
        Flaw::EvictionFreesOneSlot,
        &["b04_an_eviction_frees_every_slot"],
    ),
    (
        Flaw::EvictionGoesByPrefix,
        &["a08_an_eviction_leaves_other_names_alone"],
    ),
    (
        Flaw::EvictionIsNotTold,
        &[
            "b04_an_eviction_is_told",
            "a11_an_eviction_before_the_watch_is_told",
        ],
    ),
    (
        Flaw::ExtensionDoesNothing,
        &["b01_an_extension_lengthens_a_lease"],
    ),
    (
        Flaw::ExtensionFindsAnySlot,
        &["b09_each_slot_is_extended_by_its_own_token"],
    ),
    (
        Flaw::ExtensionIgnoresToken,
        &[
            "b04_a_foreign_token_extends_nothing",
            "b04_a_late_extension_leaves_the_successor_alone",
            "b04_the_evicted_leaves_its_successor_alone",
        ],
    ),
    (
        Flaw::ExtensionRecreates,
        &["c08_an_extension_after_the_release_changes_nothing"],
    ),
    (
        Flaw::ExtensionRevives,
        &["b07_an_ended_lease_is_not_revived"],
    ),
    (
        Flaw::ExtensionShortens,
        &["b06_an_extension_never_shortens_a_lease"],
    ),
    (
        Flaw::ExtensionsAddUp,
        &["b06_an_extension_may_arrive_twice"],
    ),
    (
        Flaw::FenceIsACounter,
        &["g02_fencing_tokens_carry_the_time"],
    ),
    (
        Flaw::FenceIsConstant,
        &[
            "g01_fencing_tokens_grow_with_every_grant",
            "g01_fencing_tokens_grow_for_each_of_many_names",
        ],
    ),
    (Flaw::FenceIsOfTheSlot, &["g01_slots_share_one_sequence"]),
    (
        Flaw::FenceOutlivesExpiry,
        &["a_claim_after_the_end_is_a_new_grant"],
    ),
    (
        Flaw::FloorGivesNumbersTwice,
        &["a_floor_gives_no_number_twice"],
    ),
    (Flaw::FloorIgnored, &["a_floor_lifts_a_grant"]),
    (
        Flaw::FloorLiftsGrantsOnly,
        &["a_floor_lifts_a_tenure_in_force"],
    ),
    (Flaw::FloorTakesTheTime, &["a_floor_stands_in_for_the_time"]),
    (
        Flaw::InspectionExtends,
        &["b10_reading_a_thousand_times_changes_nothing"],
    ),
    (Flaw::InspectionShowsFormer, &["a_free_name_has_no_holders"]),
    (Flaw::InspectionShowsOne, &["e01_every_holder_is_read_back"]),
    (
        Flaw::KeepIgnored,
        &["c04_a_kept_slot_is_free_once_its_time_is_over"],
    ),
    (
        Flaw::KeepPassesTheLease,
        &["c04_a_slot_is_never_kept_beyond_its_lease"],
    ),
    (Flaw::KeptIsFree, &["e01_a_kept_slot_counts_as_taken"]),
    (
        Flaw::KeptIsNotShown,
        &[
            "c04_a_kept_slot_is_shown_as_retained",
            "c04_a_marked_release_keeps_the_slot_and_refuses_the_token",
        ],
    ),
    (
        Flaw::KeptIsToldAsFree,
        &["c04_a_kept_slot_is_told_with_its_time"],
    ),
    (
        Flaw::KeptIsToldUncut,
        &["c04_a_kept_slot_is_told_with_no_more_than_its_lease"],
    ),
    (Flaw::KeptKeepsItsToken, &["c04_a_kept_slot_is_nobodys"]),
    (
        Flaw::LeaseEndsEarly,
        &["a_lease_lives_for_its_time_and_then_ends"],
    ),
    (
        Flaw::LeaseIsADayAtMost,
        &["a07_the_longest_lease_is_granted_and_released"],
    ),
    (
        Flaw::LeaseNeverEnds,
        &[
            "a_lease_lives_for_its_time_and_then_ends",
            "a07_the_shortest_lease_is_granted_and_ends",
        ],
    ),
    (
        Flaw::LongNamesAreRefused,
        &["a08_every_legal_name_goes_through_every_step"],
    ),
    (
        Flaw::MarkEndsWithTheNextGrant,
        &[
            "a04_a_mark_stands_while_others_come_and_go",
            "a04_a_marked_release_frees_the_slot_and_refuses_the_token",
        ],
    ),
    (
        Flaw::MarkHitsTheNode,
        &["a04_a_mark_does_not_hit_another_token"],
    ),
    (
        Flaw::MarkIgnored,
        &[
            "a04_a_claim_that_arrives_after_its_end_is_refused",
            "a04_a_granted_claim_that_is_given_up_is_undone",
        ],
    ),
    (
        Flaw::MarkNeverEnds,
        &["c07_a_mark_is_forgotten_after_its_time"],
    ),
    (
        Flaw::NamesAreAllOne,
        &["a09_many_names_are_granted_at_once"],
    ),
    (
        Flaw::NamesIgnoreCase,
        &["a08_names_that_look_alike_are_different_names"],
    ),
    (
        Flaw::NodeIdIsLost,
        &["a_free_name_is_granted", "any_node_id_is_read_back"],
    ),
    (
        Flaw::ObservationIsNeverForgotten,
        &["a_dropped_observation_leaves_nothing_behind"],
    ),
    (Flaw::ObservationTakesASlot, &["who_observes_takes_nothing"]),
    (Flaw::ObserversAreCounted, &["who_observes_is_no_waiter"]),
    (
        Flaw::OneExpiryForAllSlots,
        &["e02_each_slot_has_its_own_lease"],
    ),
    (
        Flaw::ProposalFromAfar,
        &["a_proposed_number_stands_for_the_time"],
    ),
    (
        Flaw::ProposalGivesNumbersTwice,
        &["a_proposed_number_stands_for_the_time"],
    ),
    (
        Flaw::ProposalIgnored,
        &["a_proposed_number_stands_for_the_time"],
    ),
    (
        Flaw::ReclaimDenied,
        &["a03_a_claim_with_the_token_in_force_is_granted_again"],
    ),
    (
        Flaw::ReclaimDeniedWhenFull,
        &["a03_a_claim_again_is_granted_when_all_slots_are_taken"],
    ),
    (
        Flaw::ReclaimDoesNotLengthen,
        &["a03_a_claim_again_lengthens_a_lease"],
    ),
    (
        Flaw::ReclaimIsANewGrant,
        &[
            "a03_a_claim_with_the_token_in_force_is_granted_again",
            "a03_one_claim_many_times_at_once_is_one_grant",
        ],
    ),
    (
        Flaw::ReclaimShortens,
        &["a03_a_claim_again_never_shortens_a_lease"],
    ),
    (
        Flaw::ReclaimTakesFromSuccessor,
        &["a_claim_after_a_takeover_is_denied"],
    ),
    (
        Flaw::ReleaseAfterTheEnd,
        &["c02_a_release_after_the_end_is_refused"],
    ),
    (
        Flaw::ReleaseIgnoresToken,
        &[
            "c02_a_foreign_token_releases_nothing",
            "c02_a_late_release_leaves_the_successor_alone",
            "e05_a_slot_freed_twice_frees_nobody_elses",
        ],
    ),
    (
        Flaw::ReleaseIsAlwaysReleased,
        &["c02_a_second_release_changes_nothing"],
    ),
    (
        Flaw::ReleaseLingers,
        &[
            "c01_a_released_slot_is_free_at_once",
            "c05_a_release_ends_an_extended_lease",
        ],
    ),
    (
        Flaw::ReleaseNeedsItsSlot,
        &[
            "c01_a_release_without_a_slot_finds_it",
            "a04_an_undone_claim_is_told",
        ],
    ),
    (
        Flaw::ReleaseTakesNoRevision,
        &["revisions_grow_with_each_grant_and_each_release"],
    ),
    (
        Flaw::ShowsEveryName,
        &["who_observes_is_not_told_of_other_names"],
    ),
    (
        Flaw::ShowsExtensions,
        &["who_observes_is_not_told_of_extensions"],
    ),
    (
        Flaw::ShowsGrantsOnly,
        &["a_release_is_told_to_who_observes"],
    ),
    (
        Flaw::ShowsReleasesOnly,
        &["a_grant_is_told_to_who_observes"],
    ),
    (
        Flaw::SlotsFromTheTop,
        &["e01_the_lowest_free_slot_is_granted"],
    ),
    (Flaw::TellsEveryName, &["a12_other_names_are_not_told"]),
    (Flaw::TellsNobody, &["a02_a_release_is_told"]),
    (
        Flaw::TellsOfEachClaim,
        &["a13_a_watch_of_a_held_name_is_quiet"],
    ),
    (Flaw::TellsOnce, &["a13_each_release_is_told"]),
    (Flaw::TellsTheLastWatcher, &["a12_every_watcher_is_told"]),
    (
        Flaw::WatchForgetsOlderReleases,
        &["a11_a_release_before_the_watch_is_told_after_others_led"],
    ),
    (
        Flaw::WatchIgnoresSince,
        &[
            "a11_a_release_before_the_watch_is_told",
            "a11_a_watch_of_a_name_that_was_freed_is_told",
        ],
    ),
    (
        Flaw::WatchIsNeverForgotten,
        &["c07_a_dropped_watch_leaves_nothing_behind"],
    ),
];

type Case = for<'a> fn(&'a FlawedStore) -> LocalBoxFuture<'a, ()>;

macro_rules! cases {
    (() $($topic:ident { $($case:ident)* })*) => {
        [$($((stringify!($case), (|store| conformance::$case(store).boxed_local()) as Case)),*),*]
    };
}

thread_local! {
    /// Set while a broken promise is what the test is after, and not worth a line on the terminal.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

fn keep_quiet_about_expected_panics() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !EXPECTED.get() {
            tell(panic);
        }
    }));
}

/// Whether `case` fails on a store with `flaw`.
async fn catches(case: Case, flaw: Flaw) -> bool {
    let store = FlawedStore::new(Some(flaw));
    EXPECTED.set(true);
    let ended = AssertUnwindSafe(case(&store)).catch_unwind().await;
    EXPECTED.set(false);
    ended.is_err()
}

#[tokio::test(start_paused = true)]
async fn each_flaw_is_caught_and_each_case_catches_one() {
    keep_quiet_about_expected_panics();
    let cases = leader_core::__conformance_cases!([cases]);
    let mut idle: BTreeSet<&str> = cases.iter().map(|(name, _)| *name).collect();
    for (flaw, catchers) in CAUGHT_BY {
        for catcher in *catchers {
            let case = cases.iter().find(|(name, _)| name == catcher);
            let (name, case) = case.unwrap_or_else(|| panic!("there is no case `{catcher}`"));
            assert!(catches(*case, *flaw).await, "{name} let {flaw:?} pass");
            idle.remove(name);
        }
    }
    assert!(
        idle.is_empty(),
        "no flaw shows that these can fail: {idle:?}"
    );
}
