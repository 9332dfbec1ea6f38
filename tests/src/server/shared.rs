//! A server that somebody else started: one test at a time, and no violence.

use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::until::until;

/// How long a test waits for the tests before it.
const QUEUE_LIMIT: Duration = Duration::from_secs(600);

/// The thread whose test has the server, to tell a test that asks for a second one from a test that waits its turn.
static HOLDER: Mutex<Option<ThreadId>> = Mutex::new(None);

/// The right to use the server; the lock is the file's, so it holds between processes and ends with them.
#[derive(Debug)]
pub(super) struct Turn {
    _lock: File,
}

impl Turn {
    pub(super) async fn take(addr: SocketAddr) -> Self {
        let me = thread::current().id();
        let name = addr
            .to_string()
            .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let path = std::env::temp_dir().join(format!("leader-tests-{name}.lock"));
        let file = File::create(&path)
            .unwrap_or_else(|error| panic!("{} cannot be made: {error}", path.display()));
        until(
            "the tests before this one are done with the shared server",
            QUEUE_LIMIT,
            async || match file.try_lock() {
                Ok(()) => true,
                // Its own end it would await in vain.
                Err(TryLockError::WouldBlock) if holder() == Some(me) => {
                    refuse("starts two servers")
                }
                Err(TryLockError::WouldBlock) => false,
                Err(TryLockError::Error(error)) => {
                    panic!("{} cannot be locked: {error}", path.display())
                }
            },
        )
        .await;
        *HOLDER.lock().unwrap_or_else(PoisonError::into_inner) = Some(me);
        Self { _lock: file }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *HOLDER.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn holder() -> Option<ThreadId> {
    *HOLDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Such a test fails instead of being skipped: a green run has run everything.
pub(super) fn refuse(what: &str) -> ! {
    panic!(
        "this test needs a server of its own, since it {what}. LEADER_TEST_REDIS_URL names a shared one: unset it, so \
         that the harness starts one from a `redis-server` binary or in Docker, or leave this test out"
    );
}
