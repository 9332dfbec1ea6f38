//! The public surface, as the documentation writes it: each line compiles, and means what it says.
#![allow(missing_docs, reason = "a test")]

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use leader_core::{
    Elector, ElectorExt, LeaderError, LeaderEvent, LeaseOptions, LocalElector, LockName,
    LossReason, OnLost, RunOutcome,
};

fn options() -> LeaseOptions {
    LeaseOptions::builder()
        .wait(Duration::from_millis(500))
        .lease(Duration::from_secs(10))
        .min_lease(Duration::ZERO)
        .auto_extend(true)
        .on_lost(OnLost::Cancel)
        .slots(1)
        .max_tenure(Duration::from_secs(3600))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_lines_of_the_design_compile_as_written() -> Result<(), LeaderError> {
    let local = LocalElector::new();
    let elector: Arc<dyn leader_core::Elector> = Arc::new(local.node("node-b"));
    let options = options();
    let mut events = elector.events();

    let value: Option<u64> = elector
        .run_if_leader("invoice-close", &options, |lease| async move {
            lease.fence().get()
        })
        .await?;
    assert!(value.is_some());

    match elector
        .run_if_leader_result("invoice-close", &options, |_lease| async {
            "x".parse::<u8>()
        })
        .await?
    {
        RunOutcome::Elected(summary) => panic!("parsed {summary}"),
        RunOutcome::Skipped(skip) => panic!("led by {:?}", skip.holder()),
        RunOutcome::ActionFailed(error) => assert!(!error.to_string().is_empty()),
    }

    if let Some(lease) = elector.try_acquire("invoice-close", &options).await? {
        let _ = (lease.fence(), lease.slot(), lease.name(), lease.node_id());
        let _ = (lease.remaining(), lease.is_valid());
        lease.ensure_valid()?;
        lease.extend(Duration::from_secs(30)).await?;
        assert!(!lease.cancellation_token().is_cancelled());
        assert_eq!(elector.force_release("invoice-close").await?, 1);
        lease.lost().await;
        assert!(lease.release().await.is_err());
    }

    let state = elector.state("invoice-close").await?;
    assert!(state.holders().is_empty());
    elector.shutdown().await;

    let mut told = Vec::new();
    while let Some(event) = events.next().await {
        told.push(match event {
            LeaderEvent::Elected { .. } => "elected",
            LeaderEvent::Released { .. } => "released",
            LeaderEvent::Extended { .. } => "extended",
            LeaderEvent::Lost { tenure, reason, .. } => {
                assert_eq!(tenure.node_id, "node-b");
                assert_eq!(reason, LossReason::Deleted);
                "lost"
            }
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(
        told,
        [
            "elected", "released", "elected", "released", "elected", "extended", "lost"
        ]
    );
    Ok(())
}

#[test]
fn electors_go_where_services_keep_them() {
    fn elector<E: Elector + 'static>() {}
    elector::<LocalElector>();
    elector::<Arc<LocalElector>>();
    elector::<Arc<dyn Elector>>();
    elector::<Box<dyn Elector>>();
    elector::<&'static LocalElector>();
    elector::<leader_core::StoreElector<leader_core::LocalStore>>();
}

#[test]
fn a_run_is_send_exactly_when_its_body_is() {
    fn is_send<T: Send>(_: &T) {}
    fn spawned<E: Elector + 'static>(elector: E) -> impl Future + Send {
        async move {
            let options = LeaseOptions::default();
            elector
                .run_if_leader("x", &options, |_| async { 1 })
                .await
                .ok()
        }
    }
    let elector: Arc<dyn Elector> = Arc::new(LocalElector::new());
    let options = LeaseOptions::default();
    is_send(&elector.run_if_leader("x", &options, |_| async { 1 }));
    is_send(&elector.try_acquire("x", &options));
    is_send(&elector.state("x"));
    is_send(&elector.shutdown());
    drop(spawned(elector.clone()));
    // And a body that is not can still run, on the thread where it is.
    let here = Rc::new(1);
    drop(elector.run_if_leader("x", &options, |_| async move { *here }));
}

#[tokio::test]
async fn names_come_in_every_form() -> Result<(), LeaderError> {
    let elector = LocalElector::new();
    let options = LeaseOptions::default();
    let name = LockName::new("x")?;
    elector.try_acquire("x", &options).await?;
    elector.try_acquire(String::from("x"), &options).await?;
    elector.try_acquire(&String::from("x"), &options).await?;
    elector.try_acquire(&name, &options).await?;
    elector.try_acquire(name, &options).await?;
    let refused = elector.try_acquire("-x", &options).await;
    assert!(matches!(refused, Err(LeaderError::InvalidName { .. })));
    Ok(())
}

#[test]
fn outside_a_runtime_it_is_an_error_and_no_panic() {
    let elector = LocalElector::new();
    let options = LeaseOptions::default();
    let outside = futures::executor::block_on(elector.try_acquire("x", &options));
    assert!(
        matches!(outside, Err(LeaderError::NoRuntime)),
        "{outside:?}"
    );
}
