//! A server dies with its test, also when the test is killed and drops nothing.

use std::process::{Child, Command, Stdio};

/// A shell that waits for the end of a pipe, which comes when this process is gone, and then kills the server.
pub(super) struct Leash(Option<Child>);

impl Leash {
    pub(super) fn on(server: &Child) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", r#"read -r _; kill -9 "$0""#, &server.id().to_string()]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // Without it only the servers of killed tests stay behind, so a system without a shell is served as well.
        Self(command.spawn().ok())
    }
}

impl Drop for Leash {
    /// The shell goes before the server is reaped: its number could be another's by then.
    fn drop(&mut self) {
        if let Some(shell) = &mut self.0 {
            let _ = shell.kill();
            let _ = shell.wait();
        }
    }
}
