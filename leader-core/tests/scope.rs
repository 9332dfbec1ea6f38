//! The lease in force: whose it is while bodies are nested, driven, polled, dropped and panic within each other.
#![allow(missing_docs, reason = "a test")]

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures::stream;
use futures::{FutureExt, StreamExt};
use leader_core::{ElectorExt, LeaseOptions, LocalElector, current_lease, ensure_leader};
use tokio::task::{self, LocalSet};

fn options() -> LeaseOptions {
    LeaseOptions::builder().auto_extend(true).build().unwrap()
}

/// The name of the lease in force.
fn in_force() -> Option<String> {
    current_lease().map(|lease| lease.name().to_string())
}

#[allow(clippy::unnecessary_wraps, reason = "to compare with what is in force")]
fn is(name: &str) -> Option<String> {
    Some(name.to_owned())
}

/// Notes the lease in force when it is dropped.
struct Noting(Arc<Mutex<Vec<Option<String>>>>);

impl Drop for Noting {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(in_force());
    }
}

#[tokio::test]
async fn d08_a_task_of_a_local_set_that_the_body_drives_does_not_inherit() {
    let (elector, set, options) = (LocalElector::new(), LocalSet::new(), options());
    let before = set.spawn_local(async { in_force() });
    let ran = elector.run_if_leader("x", &options, async |lease| {
        let inside = async {
            let bare = task::spawn_local(async { (in_force(), ensure_leader().is_err()) });
            assert_eq!(bare.await.unwrap(), (None, true));
            assert_eq!(before.await.unwrap(), None);
            let scoped = task::spawn_local(lease.scope(async { in_force() }));
            assert_eq!(scoped.await.unwrap(), is("x"));
            in_force()
        };
        assert_eq!(set.run_until(inside).await, is("x"));
        in_force()
    });
    assert_eq!(ran.await.unwrap(), Some(is("x")));
}

#[tokio::test]
async fn d08_a_run_in_a_task_of_a_local_set_stands_for_itself() {
    let (elector, set) = (LocalElector::new(), LocalSet::new());
    let once = LeaseOptions::builder()
        .wait(std::time::Duration::ZERO)
        .build()
        .unwrap();
    let ran = elector.run_if_leader("x", &once, async |_| {
        let (elector, once) = (elector.clone(), once.clone());
        let task = set.spawn_local(async move {
            let ran = elector.run_if_leader("x", &once, async |_| ()).await;
            ran.unwrap()
        });
        set.run_until(task).await.unwrap()
    });
    assert_eq!(ran.await.unwrap(), Some(None), "it led with the body");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn code_that_the_body_blocks_on_is_the_bodys() {
    let (elector, options) = (LocalElector::new(), options());
    let task = tokio::spawn(async move {
        let ran = elector.run_if_leader("x", &options, async |_| {
            task::block_in_place(|| {
                let handle = tokio::runtime::Handle::current();
                assert_eq!(handle.block_on(async { in_force() }), is("x"));
                let spawned = tokio::spawn(async { in_force() });
                assert_eq!(handle.block_on(spawned).unwrap(), None);
            });
            let blocking = task::spawn_blocking(in_force);
            assert_eq!(blocking.await.unwrap(), None);
            in_force()
        });
        ran.await.unwrap()
    });
    assert_eq!(task.await.unwrap(), Some(is("x")));
}

#[tokio::test]
async fn a_panic_puts_back_what_was_in_force() {
    let (elector, options) = (LocalElector::new(), options());
    let ran = elector.run_if_leader("x", &options, async |_| {
        let inner = elector.run_if_leader("y", &options, async |_| {
            task::yield_now().await;
            assert_eq!(in_force(), is("z"));
        });
        assert!(AssertUnwindSafe(inner).catch_unwind().await.is_err());
        in_force()
    });
    assert_eq!(ran.await.unwrap(), Some(is("x")));
    assert_eq!(in_force(), None);
}

#[tokio::test]
async fn what_a_body_holds_is_dropped_under_its_own_lease() {
    let (elector, options) = (LocalElector::new(), options());
    let noted = Arc::default();
    let noting = || Noting(Arc::clone(&noted));
    let (in_future, in_stream) = (noting(), noting());
    let mut future = Box::pin(elector.run_if_leader("future", &options, async move |_| {
        let _in_future = in_future;
        std::future::pending::<()>().await;
    }));
    let mut items = Box::pin(elector.guard_stream("stream", &options, move |_| {
        stream::repeat_with(move || {
            let _ = &in_stream;
            in_force()
        })
    }));
    assert!(future.as_mut().now_or_never().is_none());
    let ran = elector.run_if_leader("x", &options, async |_| {
        // Made outside, polled and dropped inside.
        assert_eq!(items.next().await, Some(is("stream")));
        assert_eq!(in_force(), is("x"));
        drop(future);
        drop(items);
        in_force()
    });
    assert_eq!(ran.await.unwrap(), Some(is("x")));
    assert_eq!(*noted.lock().unwrap(), [is("future"), is("stream")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_body_that_is_aborted_is_dropped_under_its_own_lease() {
    let (elector, options) = (LocalElector::new(), options());
    let noted = Arc::default();
    let noting = Noting(Arc::clone(&noted));
    let (started, is_started) = tokio::sync::oneshot::channel();
    let task = tokio::spawn(async move {
        let run = elector.run_if_leader("x", &options, async move |_| {
            let _noting = noting;
            let _ = started.send(());
            std::future::pending::<()>().await;
        });
        run.await.unwrap()
    });
    is_started.await.unwrap();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(*noted.lock().unwrap(), [is("x")]);
}

#[tokio::test]
async fn bodies_that_are_polled_by_turns_do_not_see_each_others_lease() {
    let (elector, options) = (LocalElector::new(), options());
    let body = async |_| {
        let mut seen = Vec::new();
        for _ in 0..3 {
            seen.push(in_force());
            task::yield_now().await;
        }
        seen
    };
    let x = pin!(elector.run_if_leader("x", &options, body));
    let y = pin!(elector.run_if_leader("y", &options, body));
    let (x, y) = tokio::join!(x, y);
    assert_eq!(x.unwrap().unwrap(), vec![is("x"); 3]);
    assert_eq!(y.unwrap().unwrap(), vec![is("y"); 3]);
}
