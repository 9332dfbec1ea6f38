//! Signals to processes that the harness started, with the effect awaited.

use crate::until::until;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::process::Child;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long a process may take to obey; only a machine in trouble needs more than a few milliseconds.
const LIMIT: Duration = Duration::from_secs(5);

pub(crate) fn send(child: &Mutex<Child>, signal: Signal) -> Pid {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    let pid = Pid::from_child(&child);
    // The number of one that has ended may be another's by now.
    if let Ok(Some(end)) = child.try_wait() {
        panic!("process {pid:?} cannot be sent {signal:?}: it has ended with {end}");
    }
    match kill_process(pid, signal) {
        Ok(()) => pid,
        Err(error) => panic!("process {pid:?} cannot be sent {signal:?}: {error}"),
    }
}

/// Sends SIGSTOP and waits until the process has stopped: until then it may still answer one more request.
pub(crate) async fn stop(child: &Mutex<Child>) {
    let pid = send(child, Signal::STOP);
    until(
        &format!("process {pid:?} stops after SIGSTOP"),
        LIMIT,
        async || match is_stopped(pid) {
            Ok(stopped) => stopped,
            Err(error) => panic!("process {pid:?} cannot be stopped ({error}): did it end?"),
        },
    )
    .await;
}

/// Sends SIGCONT and waits until the process goes on, if only to its end.
pub(crate) async fn resume(child: &Mutex<Child>) {
    let pid = send(child, Signal::CONT);
    until(
        &format!("process {pid:?} goes on after SIGCONT"),
        LIMIT,
        async || !is_stopped(pid).unwrap_or(false),
    )
    .await;
}

/// Sends SIGKILL, which a stopped process obeys as well, and waits until it is gone.
pub(crate) async fn kill(child: &Mutex<Child>) {
    // An error means that it has ended already, which is what is wanted.
    let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
    until("a killed process is gone", LIMIT, async || {
        child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .try_wait()
            .is_ok_and(|status| status.is_some())
    })
    .await;
}

/// As [`kill`], for `drop`.
pub(crate) fn kill_and_reap(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn is_stopped(pid: Pid) -> Result<bool, Errno> {
    // Only looked at, so that it can be asked again.
    let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    retry_on_intr(|| waitid(WaitId::Pid(pid), look)).map(|status| status.is_some())
}
