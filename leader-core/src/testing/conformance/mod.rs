//! The conformance suite: every promise of [`LeaseStore`] as a case that any store can be held to.
//!
//! A backend's test file is [`conformance_tests!`](crate::conformance_tests) and an expression that makes a store:
//!
//! ```
//! use leader_core::LocalStore;
//!
//! leader_core::conformance_tests!(store = async { LocalStore::new() }, start_paused = true);
//! # fn main() {}
//! ```
//!
//! Each case is also a function of its own, to be called by hand:
//!
//! ```
//! use leader_core::LocalStore;
//! use leader_core::testing::conformance;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! conformance::a03_a_claim_with_the_token_in_force_is_granted_again(&LocalStore::new()).await;
//! # }
//! ```
//!
//! A case panics with the promise that was broken, in words. Cases that retell an order of events known from other
//! libraries carry its number in their name.
//!
//! # Time
//!
//! Time passes by [`tokio::time::sleep`] only. A store whose time is Tokio's clock runs under `start_paused = true`
//! in no time; a store behind a connection runs in real time, each case in a few seconds at most. No case relies on a
//! short lease being in force, nor on anything happening quickly: what must be over is waited for, and what must not
//! be over yet is checked against the time that really passed. A slow machine makes a case slower, not red.
//!
//! # What is not in it
//!
//! What can only be seen by breaking something: a server that forgets, a reply that is lost, a connection that is cut.
//! A backend tests these on its own server; the requests that such events lead to (repeated, late, after the end) are
//! in the suite.

#![expect(
    clippy::missing_panics_doc,
    reason = "each case panics when its promise is broken, as the module says"
)]

mod support;

use std::time::Duration;

use crate::store::LeaseStore;

/// What a maker of [`conformance_tests!`](crate::conformance_tests) gives: a store, or a pair of a store and whatever
/// must live as long as the test, a server say.
pub trait Fixture {
    /// The store under test.
    type Store: LeaseStore;

    /// The store under test.
    fn store(&self) -> &Self::Store;
}

impl<S: LeaseStore> Fixture for S {
    type Store = S;

    fn store(&self) -> &S {
        self
    }
}

impl<S: LeaseStore, G> Fixture for (S, G) {
    type Store = S;

    fn store(&self) -> &S {
        &self.0
    }
}

/// How long a case may take in all before it is given up: far longer than any takes on a store that answers.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the case `name`, and closes the store after it.
#[doc(hidden)]
pub async fn run(name: &str, store: &impl LeaseStore, case: impl Future<Output = ()>) {
    let run = async {
        case.await;
        store.close().await;
    };
    let over = tokio::time::timeout(LIMIT, run).await;
    assert!(
        over.is_ok(),
        "{name}: not over within {LIMIT:?}; does the store answer every request, and close?"
    );
}

/// The list of all cases, the only one: hands it to the macro in brackets, after what is given to that.
///
/// A case that is missing here is not exported, and the compiler says that it is never used.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_cases {
    ([$($then:tt)*] $($given:tt)*) => {
        $($then)* ! {
            ($($given)*)

            claim {
                a_free_name_is_granted
                a01_a_held_name_is_denied_and_says_by_whom
                a03_a_claim_with_the_token_in_force_is_granted_again
                a03_a_claim_again_is_granted_when_all_slots_are_taken
                a03_a_claim_again_lengthens_a_lease
                a03_a_claim_again_never_shortens_a_lease
                a03_one_claim_many_times_at_once_is_one_grant
                a09_of_many_claims_at_once_one_is_granted
                a09_many_names_are_granted_at_once
                a_lease_lives_for_its_time_and_then_ends
                a_claim_after_the_end_is_a_new_grant
                a_claim_after_a_takeover_is_denied
            }

            slots {
                e01_the_lowest_free_slot_is_granted
                e01_many_claims_at_once_fill_the_slots
                e01_a_kept_slot_counts_as_taken
                e02_each_slot_has_its_own_lease
                e02_a_denial_tells_of_the_lease_that_ends_first
                e03_who_asks_for_fewer_slots_counts_all_that_are_taken
                e03_a_denial_waits_for_as_many_as_must_leave
                e05_a_slot_freed_twice_frees_nobody_elses
                an_exact_slot_is_granted
                an_exact_slot_is_denied_while_it_is_taken
                an_exact_slot_is_one_of_those_that_are_counted
                a_token_in_force_is_granted_the_slot_it_has
            }

            fencing {
                g01_fencing_tokens_grow_with_every_grant
                g01_fencing_tokens_grow_for_each_of_many_names
                g01_slots_share_one_sequence
                g02_fencing_tokens_carry_the_time
                revisions_grow_with_each_grant_and_each_release
                a_floor_lifts_a_grant
                a_floor_lifts_a_tenure_in_force
                a_floor_gives_no_number_twice
                a_floor_stands_in_for_the_time
                a_proposed_number_stands_for_the_time
            }

            extend {
                b01_an_extension_lengthens_a_lease
                b01_a_batch_is_answered_in_its_order
                b01_a_large_batch_is_answered_in_full
                an_empty_batch_is_answered_with_nothing
                b04_a_foreign_token_extends_nothing
                b04_a_late_extension_leaves_the_successor_alone
                b06_an_extension_never_shortens_a_lease
                b06_an_extension_may_arrive_twice
                b07_an_ended_lease_is_not_revived
                b09_each_slot_is_extended_by_its_own_token
                c08_an_extension_after_the_release_changes_nothing
            }

            release {
                c01_a_released_slot_is_free_at_once
                c01_a_release_without_a_slot_finds_it
                c02_a_second_release_changes_nothing
                c02_a_foreign_token_releases_nothing
                c02_a_release_after_the_end_is_refused
                c02_a_late_release_leaves_the_successor_alone
                c04_a_kept_slot_is_free_once_its_time_is_over
                c04_a_kept_slot_is_shown_as_retained
                c04_a_kept_slot_is_nobodys
                c04_a_slot_is_never_kept_beyond_its_lease
                c05_a_release_ends_an_extended_lease
            }

            marks {
                a04_a_claim_that_arrives_after_its_end_is_refused
                a04_a_granted_claim_that_is_given_up_is_undone
                a04_a_marked_release_frees_the_slot_and_refuses_the_token
                a04_a_mark_does_not_hit_another_token
                a04_a_mark_stands_while_others_come_and_go
                c04_a_marked_release_keeps_the_slot_and_refuses_the_token
                c07_a_mark_is_forgotten_after_its_time
            }

            watch {
                a02_a_release_is_told
                a04_an_undone_claim_is_told
                a11_a_release_before_the_watch_is_told
                a11_a_release_before_the_watch_is_told_after_others_led
                a11_an_eviction_before_the_watch_is_told
                a11_a_watch_of_a_name_that_was_freed_is_told
                a12_every_watcher_is_told
                a12_other_names_are_not_told
                a13_each_release_is_told
                a13_a_watch_of_a_held_name_is_quiet
                b04_an_eviction_is_told
                c04_a_kept_slot_is_told_with_its_time
                c04_a_kept_slot_is_told_with_no_more_than_its_lease
                c07_a_dropped_watch_leaves_nothing_behind
            }

            observe {
                a_grant_is_told_to_who_observes
                a_release_is_told_to_who_observes
                who_observes_is_not_told_of_extensions
                who_observes_is_not_told_of_other_names
                who_observes_is_no_waiter
                who_observes_takes_nothing
                a_dropped_observation_leaves_nothing_behind
            }

            inspect {
                a_free_name_has_no_holders
                any_node_id_is_read_back
                b10_reading_a_thousand_times_changes_nothing
                e01_every_holder_is_read_back
            }

            evict {
                an_eviction_of_a_free_name_frees_nothing
                a08_an_eviction_leaves_other_names_alone
                b04_an_eviction_frees_every_slot
                b04_the_evicted_is_told_that_its_lease_was_deleted
                b04_the_evicted_leaves_its_successor_alone
            }

            names {
                a07_the_longest_lease_is_granted_and_released
                a07_the_shortest_lease_is_granted_and_ends
                a08_every_legal_name_goes_through_every_step
                a08_names_that_look_alike_are_different_names
            }
        }
    };
}

macro_rules! export {
    (() $($topic:ident { $($case:ident)* })*) => {
        $(
            mod $topic;
            pub use $topic::{$($case),*};
        )*
    };
}

__conformance_cases!([export]);

/// Makes every case of the [conformance suite](mod@crate::testing::conformance) a `#[tokio::test]` of its own.
///
/// - `store = ...`: a future that makes a fresh store, or a pair of a store and whatever must live as long as the
///   test, a server say. It is evaluated in each test anew.
/// - What follows goes to `#[tokio::test]`: `start_paused = true` for a store whose time is Tokio's clock,
///   `flavor = "multi_thread"` for one that needs it.
///
/// The crate that calls it needs `tokio` among its dependencies, with the features `macros` and `rt`, and with
/// `test-util` for `start_paused`. Two calls in one file go in a module each.
///
/// ```
/// use leader_core::LocalStore;
/// # struct Server;
/// # impl Server { async fn start() -> Self { Self } fn store(&self) -> LocalStore { LocalStore::new() } }
///
/// mod on_a_server {
/// #   use super::*;
///     leader_core::conformance_tests!(store = async {
///         let server = Server::start().await;
///         (server.store(), server)
///     });
/// }
///
/// mod in_memory {
/// #   use super::*;
///     leader_core::conformance_tests!(store = async { LocalStore::new() }, start_paused = true);
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance_tests {
    (store = $store:expr $(, $($test:tt)*)?) => {
        $crate::__conformance_cases!([$crate::__conformance_test] ($store) ($($($test)*)?));
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_test {
    ((($store:expr) $test:tt) $($topic:ident { $($case:ident)* })*) => {
        $($(
            $crate::__conformance_test!(@ ($store) $test $case);
        )*)*
    };
    (@ ($store:expr) ($($test:tt)*) $case:ident) => {
        #[::tokio::test($($test)*)]
        async fn $case() {
            use $crate::testing::conformance;

            let fixture = $store.await;
            let store = conformance::Fixture::store(&fixture);
            conformance::run(stringify!($case), store, conformance::$case(store)).await;
        }
    };
}
