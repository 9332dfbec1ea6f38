//! The local store keeps every promise of the trait, on Tokio's paused clock and in real time.

use leader_core::LocalStore;

mod paused {
    use super::LocalStore;

    leader_core::conformance_tests!(store = async { LocalStore::new() }, start_paused = true);
}

mod real_time {
    use super::LocalStore;

    leader_core::conformance_tests!(store = async { LocalStore::new() });
}
