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

/// On one store a grant exceeds the release before it as well, also in the same microsecond.
#[tokio::test(start_paused = true)]
async fn a_grant_is_after_the_release_before_it() {
    use leader_core::store::{Claim, ClaimReply, LeaseStore, Release, ReleaseReply};
    use leader_core::{LockName, NodeId, Token};
    use std::time::Duration;

    let store = LocalStore::new();
    let name = LockName::new("invoice-close").expect("valid");
    let mut last = 0;
    for _ in 0..5 {
        let token = Token::random();
        let lease = Duration::from_secs(60);
        let claim = Claim::new(name.clone(), NodeId::from("a"), token, lease);
        let Ok(ClaimReply::Granted { slot, fence }) = store.claim(&claim).await else {
            panic!("a free name is granted");
        };
        assert!(fence.get() > last, "{fence} is not after {last}");
        let release = Release::new(name.clone(), token, slot);
        let Ok(ReleaseReply::Released { revision, .. }) = store.release(&release).await else {
            panic!("a held name is released");
        };
        assert!(revision.get() > fence.get());
        last = revision.get();
    }
}
