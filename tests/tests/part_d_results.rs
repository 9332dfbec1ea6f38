//! Part D of the scenarios, as far as it is about calls: nesting, scopes, and failing open.

use std::time::Duration;

use leader_core::{
    ElectorExt, LeaderError, current_elector, current_lease, ensure_leader, install, with_elector,
};
use leader_tests::{World, at_once, is_skipped, lead, ms, on_every_store, options, waiting};

on_every_store!(
    d08_a_nested_run_of_the_same_name_runs_inside_the_outer_lease,
    d08_another_slot_count_or_another_elector_is_another_lock,
    d08_a_spawned_task_does_not_inherit_the_lease_unless_scoped,
    a_nested_run_is_lost_with_the_outer_lease,
    a_body_that_could_be_elected_fails_closed_and_open_alike,
);

async fn d08_a_nested_run_of_the_same_name_runs_inside_the_outer_lease<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let once = at_once();
    let fences = a
        .run_if_leader("x", &once, async |outer| {
            // Through another name, and through a clone of the elector.
            let clone = a.clone();
            let inner = clone
                .run_if_leader("y", &once, async |y| {
                    assert_eq!(current_lease().unwrap().name().as_str(), "y");
                    assert_ne!(y.fence(), outer.fence());
                    clone
                        .run_if_leader("x", &once, async |inner| inner.fence())
                        .await
                })
                .await;
            assert_eq!(current_lease().unwrap().name().as_str(), "x");
            ensure_leader().unwrap();
            // The inner run has not released what is the outer's.
            assert!(is_skipped(&b, "x", &once).await);
            (outer.fence(), inner.unwrap().unwrap().unwrap().unwrap())
        })
        .await
        .unwrap()
        .unwrap();
    assert_eq!(fences.0, fences.1);
    assert!(current_lease().is_none());
    assert!(matches!(ensure_leader(), Err(LeaderError::NotLeading)));
    assert!(!is_skipped(&b, "x", &once).await);
}

async fn d08_another_slot_count_or_another_elector_is_another_lock<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let (one, two) = (
        at_once(),
        options(waiting(Duration::ZERO, ms(60_000)).slots(2)),
    );
    let ran = a
        .run_if_leader("x", &one, async |outer| {
            // Another candidate is kept out, even in the same task.
            assert_eq!(
                b.run_if_leader("x", &one, async |_| ()).await.unwrap(),
                None
            );
            // Two slots are another lock: this is a second lease, in the other slot.
            let inner = a
                .run_if_leader("x", &two, async |inner| (inner.fence(), inner.slot()))
                .await;
            let (fence, slot) = inner.unwrap().unwrap();
            assert!(fence > outer.fence());
            assert_eq!(slot, 1);
        })
        .await;
    assert_eq!(ran.unwrap(), Some(()));
}

async fn d08_a_spawned_task_does_not_inherit_the_lease_unless_scoped<W: World>(world: W) {
    let a = world.candidate("a").await;
    let ran = a
        .run_if_leader("x", &at_once(), async |lease| {
            let bare =
                tokio::spawn(async { current_lease().is_none() && ensure_leader().is_err() });
            assert!(bare.await.unwrap(), "a spawned task inherited the lease");
            let scoped = tokio::spawn(lease.scope(async {
                ensure_leader().unwrap();
                current_lease().unwrap().fence()
            }));
            assert_eq!(scoped.await.unwrap(), lease.fence());
        })
        .await;
    assert_eq!(ran.unwrap(), Some(()));
}

async fn a_nested_run_is_lost_with_the_outer_lease<W: World>(world: W) {
    let a = world.candidate("a").await;
    let brief = waiting(Duration::from_secs(20), ms(100)).on_lost(leader_core::OnLost::Notify);
    let brief = options(brief);
    let outer = a
        .run_if_leader("x", &brief, async |lease| {
            let inner = a
                .run_if_leader("x", &brief, async |_| lease.lost().await)
                .await;
            assert!(
                matches!(inner, Err(LeaderError::LeaseLost { .. })),
                "{inner:?}"
            );
            // And none can begin under a lease that is lost.
            let after = a.run_if_leader("x", &brief, async |_| ()).await;
            assert!(
                matches!(after, Err(LeaderError::LeaseLost { .. })),
                "{after:?}"
            );
        })
        .await;
    assert!(
        matches!(outer, Err(LeaderError::LeaseLost { .. })),
        "{outer:?}"
    );
}

async fn a_body_that_could_be_elected_fails_closed_and_open_alike<W: World>(world: W) {
    let (a, b) = (world.candidate("a").await, world.candidate("b").await);
    let once = at_once();
    let elected = a
        .run_fail_open("x", &once, async |lease| {
            ensure_leader().unwrap();
            assert_eq!(
                b.run_fail_open("x", &once, async |_| ()).await.unwrap(),
                None
            );
            lease.unwrap().fence()
        })
        .await;
    assert!(elected.unwrap().is_some());
    assert!(!is_skipped(&b, "x", &once).await);
}

#[tokio::test]
async fn the_elector_in_scope_comes_before_the_one_that_is_installed() {
    let missing = current_elector().map(|_| ());
    assert!(
        matches!(missing, Err(LeaderError::NoElector)),
        "{missing:?}"
    );

    let default = leader_core::LocalElector::new().node("default");
    install(default).unwrap();
    let twice = install(leader_core::LocalElector::new()).unwrap_err();
    assert!(twice.to_string().contains("start-up"), "{twice}");
    assert_eq!(current_elector().unwrap().node_id(), &"default");

    let scoped = leader_core::LocalElector::new().node("scoped");
    with_elector(scoped, async {
        let elector = current_elector().unwrap();
        assert_eq!(elector.node_id(), &"scoped");
        // What is resolved is an elector like any other.
        lead(&elector, "x", &at_once())
            .await
            .release()
            .await
            .unwrap();
        tokio::task::yield_now().await;
        assert_eq!(current_elector().unwrap().node_id(), &"scoped");
    })
    .await;
    assert_eq!(current_elector().unwrap().node_id(), &"default");
}
