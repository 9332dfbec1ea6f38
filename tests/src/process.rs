//! A second process, to be frozen and killed.

use crate::signal;
use crate::until::until_some;
use rustix::process::Signal;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, timeout_at};

/// A running program that tells what it does in lines on its standard output.
///
/// Its standard input is a pipe that is closed when this value is dropped or the test dies: a program that ends then
/// cannot outlive its test. Its standard error is the test's. It is killed and reaped on drop.
///
/// ```no_run
/// # async fn example() {
/// use leader_tests::Worker;
/// use std::time::Duration;
///
/// # let path = "";
/// // In an integration test the path is `env!("CARGO_BIN_EXE_worker")`.
/// let mut worker = Worker::spawn(path, &["--name", "order-feed"]);
/// worker.wait_for_line("ready", Duration::from_secs(5)).await;
/// worker.freeze().await;
/// worker.thaw().await;
/// worker.kill().await;
/// # }
/// ```
pub struct Worker {
    child: Mutex<Child>,
    lines: UnboundedReceiver<String>,
    seen: Vec<String>,
}

impl Worker {
    /// Starts `program`.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{program} cannot be started: {error}"));
        let (sender, lines) = unbounded_channel();
        if let Some(stdout) = child.stdout.take() {
            // A thread, since a pipe that a runtime reads is read by no other runtime.
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Self {
            child: Mutex::new(child),
            lines,
            seen: Vec::new(),
        }
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child().id()
    }

    /// The next line, without its end. `None` when the program has ended, or said nothing within `limit`.
    pub async fn next_line(&mut self, limit: Duration) -> Option<String> {
        self.line_before(Instant::now() + limit).await
    }

    /// The next line that starts with `prefix`; the lines before it are passed over.
    ///
    /// # Panics
    ///
    /// When there is none within `limit`; the panic's text has all lines so far.
    pub async fn wait_for_line(&mut self, prefix: &str, limit: Duration) -> String {
        let deadline = Instant::now() + limit;
        while let Some(line) = self.line_before(deadline).await {
            if line.starts_with(prefix) {
                return line;
            }
        }
        panic!(
            "process {} said no line {prefix:?} within {limit:?}; it said {:#?}",
            self.pid(),
            self.seen
        );
    }

    /// Writes a line to the program's standard input.
    ///
    /// # Panics
    ///
    /// When the program has closed it.
    pub fn say(&self, line: &str) {
        let mut child = self.child();
        let written = child.stdin.as_mut().map(|stdin| writeln!(stdin, "{line}"));
        assert!(
            matches!(written, Some(Ok(()))),
            "process {} does not listen to {line:?}: {written:?}",
            child.id()
        );
    }

    /// SIGSTOP; returns when the process has stopped.
    pub async fn freeze(&self) {
        signal::stop(&self.child).await;
    }

    /// SIGCONT; returns when the process goes on.
    pub async fn thaw(&self) {
        signal::resume(&self.child).await;
    }

    /// SIGKILL; returns when the process is gone.
    pub async fn kill(&self) {
        signal::kill(&self.child).await;
    }

    /// SIGTERM, which a program may answer in its own time: see [`Worker::exit`].
    pub fn terminate(&self) {
        signal::send(&self.child, Signal::TERM);
    }

    /// SIGINT, as Ctrl-C sends it.
    pub fn interrupt(&self) {
        signal::send(&self.child, Signal::INT);
    }

    /// How the process ended.
    ///
    /// # Panics
    ///
    /// When it has not within `limit`.
    pub async fn exit(&self, limit: Duration) -> ExitStatus {
        let what = format!("process {} ends", self.pid());
        until_some(&what, limit, async || {
            self.child().try_wait().ok().flatten()
        })
        .await
    }

    async fn line_before(&mut self, deadline: Instant) -> Option<String> {
        let line = timeout_at(deadline, self.lines.recv())
            .await
            .ok()
            .flatten()?;
        self.seen.push(line.clone());
        Some(line)
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        signal::kill_and_reap(&mut self.child());
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("pid", &self.pid())
            .field("said", &self.seen)
            .finish_non_exhaustive()
    }
}
