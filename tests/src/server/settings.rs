//! What a test may ask of its server, and the command line that gives it.

use super::login::Login;
use super::shared;

const ADMIN: &str = "harness";
const ADMIN_PASSWORD: &str = "harness-looks-on";

/// What a server is among others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    #[default]
    Server,
    ClusterNode,
    Sentinel,
}

/// The file that a sentinel keeps what it learns in.
pub(super) const SENTINEL_FILE: &str = "sentinel.conf";

#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) role: Role,
    pub(super) port: Option<u16>,
    pub(super) password: Option<String>,
    pub(super) users: Vec<String>,
    pub(super) args: Vec<String>,
}

impl Settings {
    /// The harness logs in as a user of its own where the test restricts the others.
    pub(super) fn admin(&self) -> Option<Login> {
        let restricted = self.password.is_some() || !self.users.is_empty();
        restricted.then(|| Login {
            user: Some(ADMIN.to_owned()),
            password: ADMIN_PASSWORD.to_owned(),
        })
    }

    /// The arguments of `redis-server` and `valkey-server`.
    pub(super) fn command_line(&self, bind: &str, port: u16) -> Vec<String> {
        let port = port.to_string();
        let first: &[&str] = match self.role {
            Role::Server => &[],
            Role::ClusterNode => &["--cluster-enabled", "yes"],
            Role::Sentinel => &[SENTINEL_FILE, "--sentinel"],
        };
        let mut line: Vec<String> = first.iter().map(ToString::to_string).collect();
        let usual = [
            "--bind",
            bind,
            "--port",
            &port,
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        .into_iter()
        .chain(["--protected-mode", "no", "--daemonize", "no"]);
        line.extend(usual.map(str::to_owned));
        if let Some(password) = &self.password {
            line.extend(["--requirepass".to_owned(), password.clone()]);
        }
        let admin = self
            .admin()
            .map(|_| format!("{ADMIN} on >{ADMIN_PASSWORD} ~* &* +@all"));
        for user in self.users.iter().chain(&admin) {
            line.push("--user".to_owned());
            line.extend(user.split_whitespace().map(str::to_owned));
        }
        line.extend(self.args.iter().cloned());
        line
    }

    pub(super) fn refuse_for_a_shared_server(&self) {
        if self.role != Role::Server
            || self.port.is_some()
            || self.admin().is_some()
            || !self.args.is_empty()
        {
            shared::refuse("chooses its server's port, password, users, options or neighbours");
        }
    }
}
