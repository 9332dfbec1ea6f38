//! A thread that ought to wake up often: when it does not, the machine, or this process, stood still.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::Clock;
use crate::record::{Log, Record};

const BEAT: Duration = Duration::from_millis(5);
/// A beat that is later than this is written down, in microseconds.
const LATE: u64 = 10_000;

/// Beats until it is dropped.
pub(crate) struct Heart {
    stop: Arc<AtomicBool>,
    stalled: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Heart {
    pub(crate) fn start(clock: Clock, log: Log) -> Self {
        let (stop, stalled) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stopped, total) = (stop.clone(), stalled.clone());
        let thread = std::thread::spawn(move || {
            let mut last = clock.now();
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(BEAT);
                let now = clock.now();
                if now - last > LATE {
                    total.fetch_add(now - last, Ordering::Relaxed);
                    log.write(&Record::Stall {
                        from: last,
                        to: now,
                    });
                }
                last = now;
            }
        });
        Self {
            stop,
            stalled,
            thread: Some(thread),
        }
    }

    /// For how long it has stood still since its start, in microseconds.
    pub(crate) fn stalled(&self) -> u64 {
        self.stalled.load(Ordering::Relaxed)
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of it has been printed where it happened.
            let _ = thread.join();
        }
    }
}
