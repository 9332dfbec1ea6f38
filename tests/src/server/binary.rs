//! A server process started from a binary on this machine.

use super::leash::Leash;
use super::login::Login;
use super::port::ReservedPort;
use super::settings::{Role, SENTINEL_FILE, Settings};
use super::{START_LIMIT, is_ready};
use crate::signal;
use crate::until::until_some;
use std::env;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Somebody may bind a free port between our look at it and the server's.
const ATTEMPTS: usize = 5;

pub(super) struct Binary {
    program: PathBuf,
    args: Vec<String>,
    admin: Option<Login>,
    port: ReservedPort,
    dir: TempDir,
    child: Mutex<Child>,
    leash: Mutex<Option<Leash>>,
}

impl Binary {
    pub(super) async fn start(program: &Path, settings: &Settings) -> Self {
        let mut complaint = String::new();
        for _ in 0..ATTEMPTS {
            let port = match (settings.port, settings.role) {
                (Some(port), _) => ReservedPort::this(port),
                (None, Role::ClusterNode) => ReservedPort::any_with_bus(),
                (None, _) => ReservedPort::any(),
            };
            let args = settings.command_line("127.0.0.1", port.number());
            let dir = place_in_memory()
                .unwrap_or_else(|e| panic!("no directory for a server can be made: {e}"));
            if settings.role == Role::Sentinel {
                fs::write(dir.path().join(SENTINEL_FILE), "")
                    .unwrap_or_else(|e| panic!("no file for a sentinel can be made: {e}"));
            }
            let child = spawn(program, &args, dir.path());
            let leash = Mutex::new(Some(Leash::on(&child)));
            let binary = Self {
                program: program.to_owned(),
                args,
                admin: settings.admin(),
                port,
                dir,
                child: Mutex::new(child),
                leash,
            };
            match binary.until_ready().await {
                Ok(()) => return binary,
                Err(log) if log.contains("Address already in use") => complaint = log,
                Err(log) => panic!("{} ended at its start:\n{log}", program.display()),
            }
        }
        panic!(
            "{} found its port taken {ATTEMPTS} times:\n{complaint}",
            program.display()
        );
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    pub(super) async fn kill(&self) {
        self.unleash();
        signal::kill(&self.child).await;
    }

    pub(super) async fn restart(&self) {
        self.kill().await;
        let child = spawn(&self.program, &self.args, self.dir.path());
        *self.leash() = Some(Leash::on(&child));
        *self.child() = child;
        if let Err(log) = self.until_ready().await {
            panic!(
                "{} did not come back at {}:\n{log}",
                self.program.display(),
                self.addr()
            );
        }
    }

    pub(super) async fn freeze(&self) {
        signal::stop(&self.child).await;
    }

    pub(super) async fn thaw(&self) {
        signal::resume(&self.child).await;
    }

    /// `Err` has the server's log when it ended instead.
    async fn until_ready(&self) -> Result<(), String> {
        let what = format!("the server at {} answers", self.addr());
        until_some(&what, START_LIMIT, async || {
            let (pid, ended) = {
                let mut child = self.child();
                (
                    child.id(),
                    child.try_wait().is_ok_and(|status| status.is_some()),
                )
            };
            if ended {
                return Some(Err(self.log()));
            }
            is_ready(self.addr(), self.admin.as_ref(), Some(pid))
                .await
                .then_some(Ok(()))
        })
        .await
    }

    fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log"))
            .unwrap_or_else(|error| format!("(it left no log: {error})"))
    }

    fn unleash(&self) {
        drop(self.leash().take());
    }

    fn leash(&self) -> MutexGuard<'_, Option<Leash>> {
        self.leash.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A directory in memory, on systems that have `/dev/shm`, unless `TMPDIR` names another place. Replicas, sentinels and
/// append-only files wait for `fsync`, which takes seconds while others write to the disk, and the server answers nobody
/// meanwhile.
fn place_in_memory() -> io::Result<TempDir> {
    if env::var_os("TMPDIR").is_some() {
        return tempfile::tempdir();
    }
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())
}

impl Drop for Binary {
    fn drop(&mut self) {
        self.unleash();
        signal::kill_and_reap(&mut self.child());
    }
}

fn spawn(program: &Path, args: &[String], dir: &Path) -> Child {
    let log = fs::File::create(dir.join("log"));
    let log = log.unwrap_or_else(|error| panic!("no log for a server can be made: {error}"));
    let errors = log.try_clone().map_or_else(|_| Stdio::null(), Stdio::from);
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors);
    command
        .spawn()
        .unwrap_or_else(|error| panic!("{} cannot be started: {error}", program.display()))
}
