//! An election on a store in memory is had at once, unless others come first.
#![allow(missing_docs, reason = "a test")]

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use leader_core::{ElectorExt, LeaseOptions, LocalElector};

fn options(wait: Duration) -> LeaseOptions {
    LeaseOptions::builder().wait(wait).build().unwrap()
}

async fn waits(future: &mut Pin<&mut impl Future>) -> bool {
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

#[tokio::test(start_paused = true)]
async fn who_has_just_released_a_name_lets_another_candidate_go_first() {
    let (a, patient) = (LocalElector::new(), options(Duration::from_secs(5)));
    let b = a.node("b");
    let lease = a.try_acquire("x", &patient).await.unwrap().unwrap();
    let mut other = pin!(b.try_acquire("x", &patient));
    assert!(waits(&mut other).await);

    lease.release().await.unwrap();
    let once = options(Duration::ZERO);
    let mut again = pin!(a.try_acquire("x", &once));
    assert!(waits(&mut again).await, "the other has yet to be told");
    let _lease = other.await.unwrap().expect("the other goes first");
    assert!(again.await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn who_asks_again_stands_behind_those_of_its_own_process_who_wait() {
    let (elector, patient) = (LocalElector::new(), options(Duration::from_secs(5)));
    let lease = elector.try_acquire("x", &patient).await.unwrap().unwrap();
    let mut first = pin!(elector.try_acquire("x", &patient));
    assert!(waits(&mut first).await);

    lease.release().await.unwrap();
    let mut second = pin!(elector.try_acquire("x", &patient));
    assert!(waits(&mut second).await, "it passed the other by");
    let lease = first.await.unwrap().unwrap();
    assert!(waits(&mut second).await);
    lease.release().await.unwrap();
    assert!(second.await.unwrap().is_some());
}
