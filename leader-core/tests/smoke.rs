//! First steps.
#![allow(missing_docs)]
use leader_core::*;
use std::sync::Arc;
use std::time::Duration;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[tokio::test(start_paused = true)]
async fn smoke() {
    let a = LocalElector::new();
    let b = a.node("b");
    let o = LeaseOptions::builder()
        .wait(ms(500))
        .lease(ms(1000))
        .build()
        .unwrap();
    let lease = a.try_acquire("x", &o).await.unwrap().unwrap();
    let t = tokio::time::Instant::now();
    let r = b
        .run_if_leader_result("x", &o, |_l| async { Ok::<_, ()>(1) })
        .await
        .unwrap();
    assert_eq!(t.elapsed(), ms(500));
    match r {
        RunOutcome::Skipped(s) => assert_eq!(s.holder(), Some(a_id(&a))),
        _ => panic!(),
    }
    let o2 = LeaseOptions::builder()
        .wait(ms(5000))
        .lease(ms(1000))
        .auto_extend(true)
        .build()
        .unwrap();
    let bb = b.clone();
    let h = tokio::spawn(async move {
        bb.run_if_leader("x", &o2, |l| async move {
            tokio::time::sleep(ms(10_000)).await;
            l.fence()
        })
        .await
    });
    tokio::time::sleep(ms(100)).await;
    let f = lease.fence();
    lease.release().await.unwrap();
    tokio::time::sleep(ms(5000)).await;
    let st = a.state("x").await.unwrap();
    println!("{st:?}");
    assert_eq!(st.holders()[0].node_id(), &"b");
    assert!(h.await.unwrap().unwrap().unwrap() > f);
    assert_eq!(a.state("x").await.unwrap().holders().len(), 0);
    // lost
    let r = a
        .run_if_leader("x", &o, |_| async { tokio::time::sleep(ms(3000)).await })
        .await;
    println!("{r:?}");
    assert!(matches!(
        r,
        Err(LeaderError::LeaseLost {
            reason: LossReason::Expired,
            ..
        })
    ));
    let e: Arc<dyn Elector> = Arc::new(a.clone());
    let r = e
        .run_if_leader("x", &o, |_| async {
            e.run_if_leader("x", &o, |_| async {
                ensure_leader().unwrap();
                3
            })
            .await
        })
        .await;
    assert_eq!(r.unwrap().unwrap().unwrap(), Some(3));
    a.shutdown().await;
}
fn a_id(a: &LocalElector) -> &NodeId {
    a.node_id()
}

#[test]
fn send_bounds() {
    fn is_send<T: Send>(_: &T) {}
    let a: Arc<dyn Elector> = Arc::new(LocalElector::new());
    let o = LeaseOptions::default();
    let f = a.run_if_leader("x", &o, |_| async { 1 });
    is_send(&f);
    let rc = std::rc::Rc::new(1);
    let _f = a.run_if_leader("x", &o, |_| async move { *rc });
    fn generic<E: Elector + 'static>(e: E) {
        tokio::spawn(async move {
            let o = LeaseOptions::default();
            e.run_if_leader("x", &o, |_| async { 1 }).await.ok();
        });
    }
    let _ = generic::<LocalElector>;
}
