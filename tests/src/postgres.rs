//! A PostgreSQL of the test's own.

mod binaries;

use crate::until::until_some;
use binaries::Binaries;
use rustix::process::{Pid, Signal, kill_process};
use std::fmt;
use std::fs::File;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// How long a server may take to be made and to answer. It is two seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A running PostgreSQL that no other test uses, on a Unix socket in a directory of its own.
///
/// It is gone, with its data, when this value is dropped or the test dies. It keeps nothing safe from a crash, and is fast
/// for it. Its programs are those of the distribution's package, which need not be on the PATH; they refuse to run as
/// root, so for root they run as `postgres` or `nobody`.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let database = leader_tests::Postgres::start().await;
/// println!("psql '{}'", database.url());
/// # }
/// ```
pub struct Postgres {
    server: Mutex<Child>,
    leash: Option<Child>,
    dir: TempDir,
}

impl Postgres {
    /// Makes a database and starts a server on it.
    ///
    /// # Panics
    ///
    /// When there is no PostgreSQL on this machine, or it does not start; the text says what to do.
    pub async fn start() -> Self {
        let binaries = Binaries::find().unwrap_or_else(|what_to_do| panic!("{what_to_do}"));
        let dir = tempfile::tempdir()
            .unwrap_or_else(|error| panic!("no directory for a database can be made: {error}"));
        let owner = Binaries::unprivileged();
        if let Some((user, group)) = owner {
            let given = chown(dir.path(), Some(user), Some(group));
            given.unwrap_or_else(|error| panic!("{}: {error}", dir.path().display()));
        }
        let program = |name: &str| {
            let mut command = Command::new(binaries.program(name));
            command.current_dir(dir.path()).stdin(Stdio::null());
            if let Some((user, group)) = owner {
                command.uid(user).gid(group);
            }
            command
        };

        let mut initdb = program("initdb");
        initdb.args(["--pgdata=data", "--username=postgres", "--auth=trust"]);
        initdb.args(["--encoding=UTF8", "--locale=C", "--no-sync"]);
        let made = run_to_its_end(initdb).await;
        made.unwrap_or_else(|why| panic!("initdb made no database: {why}"));

        let mut postgres = program("postgres");
        // A socket only: it has no port that somebody else could take, and the directory lets nobody else in.
        postgres
            .args(["-D", "data", "-c", "listen_addresses=", "-k"])
            .arg(dir.path());
        for setting in [
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
        ] {
            postgres.args(["-c", setting]);
        }
        postgres.args(["-c", "shared_buffers=16MB", "-c", "max_connections=50"]);
        let log = File::create(dir.path().join("log"));
        let log = log.unwrap_or_else(|error| panic!("no log for a database: {error}"));
        let server = postgres.stdout(Stdio::null()).stderr(log).spawn();
        let server = server.unwrap_or_else(|error| panic!("postgres cannot be started: {error}"));
        let postgres = Self {
            leash: leash(&server, dir.path()),
            server: Mutex::new(server),
            dir,
        };
        postgres.until_ready(&binaries).await;
        postgres
    }

    /// Where clients connect, as the database's owner.
    #[must_use]
    pub fn url(&self) -> String {
        let dir = self.dir.path().display();
        format!("postgres://postgres@localhost/postgres?host={dir}")
    }

    async fn until_ready(&self, binaries: &Binaries) {
        until_some("the database answers", LIMIT, async || {
            let ended = self
                .server
                .lock()
                .is_ok_and(|mut server| server.try_wait().is_ok_and(|status| status.is_some()));
            if ended {
                let log = std::fs::read_to_string(self.dir.path().join("log"));
                panic!("postgres ended at its start:\n{}", log.unwrap_or_default());
            }
            let mut ready = Command::new(binaries.program("pg_isready"));
            ready.arg("--host").arg(self.dir.path());
            run_to_its_end(ready).await.ok()
        })
        .await;
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The shell goes before the server is reaped: its number could be another's by then.
        if let Some(mut shell) = self.leash.take() {
            let _ = shell.kill();
            let _ = shell.wait();
        }
        let server = self
            .server
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if matches!(server.try_wait(), Ok(None)) {
            // At once, but in its own way: it takes its processes and its shared memory along.
            let _ = kill_process(Pid::from_child(server), Signal::QUIT);
            let _ = server.wait();
        }
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres")
            .field("url", &self.url())
            .finish_non_exhaustive()
    }
}

/// Runs a program in silence; on failure gives what it said.
async fn run_to_its_end(mut command: Command) -> Result<(), String> {
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    match output {
        Ok(Ok(output)) if output.status.success() => Ok(()),
        Ok(Ok(output)) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// A shell that waits for the end of a pipe, which comes when this process is gone, whatever became of it, and then stops
/// the server and deletes what it leaves. A system without a shell is served as well.
fn leash(server: &Child, dir: &Path) -> Option<Child> {
    const SCRIPT: &str = r#"
        read -r _
        kill -QUIT "$0" && while kill -0 "$0"; do sleep 0.05; done
        rm -rf "$1""#;
    let mut shell = Command::new("sh");
    shell.args(["-c", SCRIPT, &server.id().to_string()]);
    shell.arg(dir).stdin(Stdio::piped());
    shell
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}
