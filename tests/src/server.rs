//! A server of the test's own.

mod binary;
#[cfg(feature = "testcontainers")]
mod docker;
mod leash;
mod login;
mod port;
mod replication;
mod settings;
mod shared;
mod source;

use crate::resp::{Connection, Reply};
use crate::until::until;
use login::Login;
use settings::{Role, Settings};
use source::Source;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::timeout;

/// How long one command of the harness may take; a frozen server never answers.
const COMMAND_LIMIT: Duration = Duration::from_secs(5);
/// How long a server may take until it answers. It is 30 ms on an idle machine.
const START_LIMIT: Duration = Duration::from_secs(20);

/// A running Redis or Valkey that no other test uses.
///
/// It listens on the loopback interface, keeps nothing on disk, and is gone when this value is dropped. Where it comes
/// from is said in `CONTRIBUTING.md`: `LEADER_TEST_REDIS_URL`, a `redis-server` or `valkey-server` binary, or Docker.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use leader_tests::Server;
///
/// let server = Server::start().await;
/// server.command(&["SET", "greeting", "hello"]).await;
/// assert_eq!(server.command(&["GET", "greeting"]).await.text(), "hello");
/// assert_eq!(server.command_calls("set").await, 1);
/// # }
/// ```
pub struct Server {
    addr: SocketAddr,
    /// What clients need, so what [`Server::url`] has in it.
    client: Option<Login>,
    /// What the harness itself needs, when the default user is restricted.
    admin: Option<Login>,
    backend: Backend,
    _turn: Option<shared::Turn>,
    #[cfg(feature = "tls")]
    tls: Option<port::ReservedPort>,
}

enum Backend {
    Binary(Box<binary::Binary>),
    Shared,
    #[cfg(feature = "testcontainers")]
    Docker(docker::Docker),
}

/// What a server is started with.
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until `start`"]
pub struct ServerBuilder {
    settings: Settings,
    #[cfg(feature = "tls")]
    tls: Option<port::ReservedPort>,
}

impl ServerBuilder {
    /// The password of the default user. [`Server::url`] has it.
    pub fn password(mut self, password: &str) -> Self {
        self.settings.password = Some(password.to_owned());
        self
    }

    /// One more user, in the words of a `user` line of the configuration: `"app on >secret ~* &* +@all -eval"`.
    pub fn user(mut self, rules: &str) -> Self {
        self.settings.users.push(rules.to_owned());
        self
    }

    /// Speaks TLS as well, at [`Server::tls_url`], and shows this certificate there. `demand` is what it asks of its
    /// clients: `yes` for a certificate of the same authority, or `no`. The harness itself goes on without TLS.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, certificate: &crate::Certificate, demand: &str) -> Self {
        let port = port::ReservedPort::any();
        let arguments = certificate.arguments(port.number(), demand);
        self.settings.args.extend(arguments);
        self.tls = Some(port);
        self
    }

    /// One argument of the server's command line, such as `--maxmemory` or `1mb`.
    pub fn arg(mut self, arg: &str) -> Self {
        self.settings.args.push(arg.to_owned());
        self
    }

    /// A node of a cluster, which has no slots and knows no other node yet.
    pub(crate) fn cluster_node(mut self) -> Self {
        self.settings.role = Role::ClusterNode;
        self
    }

    /// A sentinel, which watches over nothing yet.
    pub fn sentinel(mut self) -> Self {
        self.settings.role = Role::Sentinel;
        self
    }

    /// The port, instead of a free one.
    pub fn port(mut self, port: u16) -> Self {
        self.settings.port = Some(port);
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Panics
    ///
    /// When there is no server to be had on this machine, or it does not start; the text says what to do.
    pub async fn start(self) -> Server {
        let settings = self.settings;
        let admin = settings.admin();
        let client = settings.password.clone().map(|password| Login {
            user: None,
            password,
        });
        match source::of_this_process() {
            Source::Shared(url) => {
                settings.refuse_for_a_shared_server();
                let (addr, login) = login::read_url(&url).await;
                let turn = Some(shared::Turn::take(addr).await);
                let admin = login.clone();
                let server = Server {
                    addr,
                    client: login,
                    admin,
                    backend: Backend::Shared,
                    _turn: turn,
                    #[cfg(feature = "tls")]
                    tls: self.tls,
                };
                server.until_ready().await;
                server.make_empty().await;
                server
            }
            Source::Binary(program) => {
                let binary = binary::Binary::start(&program, &settings).await;
                let addr = binary.addr();
                Server {
                    addr,
                    client,
                    admin,
                    backend: Backend::Binary(Box::new(binary)),
                    _turn: None,
                    #[cfg(feature = "tls")]
                    tls: self.tls,
                }
            }
            #[cfg(feature = "testcontainers")]
            Source::Docker => {
                let docker = docker::Docker::start(&settings).await;
                let addr = docker.addr();
                let backend = Backend::Docker(docker);
                let server = Server {
                    addr,
                    client,
                    admin,
                    backend,
                    _turn: None,
                    #[cfg(feature = "tls")]
                    tls: self.tls,
                };
                server.until_ready().await;
                server
            }
        }
    }
}

impl Server {
    /// Starts a server with nothing special about it.
    ///
    /// # Panics
    ///
    /// As [`ServerBuilder::start`].
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Whether servers can be started, killed and replaced on this machine. Starts none.
    ///
    /// # Errors
    ///
    /// Why not, and what to do.
    pub fn can_be_started() -> Result<(), String> {
        source::starts_servers()
    }

    /// A server with a password, users, or options.
    pub fn builder() -> ServerBuilder {
        ServerBuilder::default()
    }

    /// Where clients connect, with the password when there is one.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_at(self.addr)
    }

    /// [`Server::url`] with another address in it: that of a proxy before this server.
    #[must_use]
    pub fn url_at(&self, addr: SocketAddr) -> String {
        login::write_url(addr, self.client.as_ref())
    }

    /// The URL for another user than the default one.
    #[must_use]
    pub fn url_for(&self, user: &str, password: &str) -> String {
        let login = Login {
            user: Some(user.to_owned()),
            password: password.to_owned(),
        };
        login::write_url(self.addr, Some(&login))
    }

    /// Where clients connect by TLS, by this name or address of the loopback interface.
    ///
    /// # Panics
    ///
    /// When the server was started without [`ServerBuilder::tls`].
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls_url(&self, host: &str) -> String {
        let Some(port) = &self.tls else {
            panic!("the server was started without TLS");
        };
        let authority = format!("{host}:{}", port.number());
        let url = self.url();
        let login = url
            .strip_prefix("redis://")
            .and_then(|url| url.split_once('@'));
        match login {
            Some((login, _)) => format!("rediss://{login}@{authority}"),
            None => format!("rediss://{authority}"),
        }
    }

    /// The address clients connect to.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The port of [`Server::addr`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// SIGKILL; returns when the process is gone, so that connections are refused.
    ///
    /// # Panics
    ///
    /// When the server is not the test's own, as for [`Server::restart`], [`Server::freeze`] and [`Server::thaw`].
    pub async fn kill(&self) {
        match &self.backend {
            Backend::Binary(binary) => binary.kill().await,
            Backend::Shared => shared::refuse("kills the server"),
            #[cfg(feature = "testcontainers")]
            Backend::Docker(docker) => docker.kill().await,
        }
    }

    /// Kills the server if it runs and starts it again on the same port, with nothing in its memory.
    ///
    /// # Panics
    ///
    /// When it does not come back, or is not the test's own.
    pub async fn restart(&self) {
        match &self.backend {
            Backend::Binary(binary) => binary.restart().await,
            Backend::Shared => shared::refuse("restarts the server"),
            #[cfg(feature = "testcontainers")]
            Backend::Docker(docker) => {
                docker.restart().await;
                self.until_ready().await;
            }
        }
    }

    /// SIGSTOP: connections stay open, and are even accepted, but nothing is answered.
    pub async fn freeze(&self) {
        match &self.backend {
            Backend::Binary(binary) => binary.freeze().await,
            Backend::Shared => shared::refuse("freezes the server"),
            #[cfg(feature = "testcontainers")]
            Backend::Docker(docker) => docker.freeze().await,
        }
    }

    /// SIGCONT: the server goes on, with what has queued up meanwhile.
    pub async fn thaw(&self) {
        match &self.backend {
            Backend::Binary(binary) => binary.thaw().await,
            Backend::Shared => shared::refuse("thaws the server"),
            #[cfg(feature = "testcontainers")]
            Backend::Docker(docker) => docker.thaw().await,
        }
    }

    /// A connection of its own, logged in, for a test that speaks the protocol by hand.
    pub async fn connect(&self) -> io::Result<Connection> {
        self.connect_at(self.addr).await
    }

    /// [`Server::connect`] by another way: through a proxy before this server.
    pub async fn connect_at(&self, addr: SocketAddr) -> io::Result<Connection> {
        login::open(addr, self.admin.as_ref()).await
    }

    /// Runs one command on a connection of its own. The server's errors are a [`Reply::Error`].
    ///
    /// # Panics
    ///
    /// When the server cannot be reached or does not answer within 5 s. [`Server::try_command`] does not panic.
    pub async fn command(&self, args: &[&str]) -> Reply {
        match self.try_command(args).await {
            Ok(reply) => reply,
            Err(error) => panic!(
                "the server at {} cannot be asked for {}: {error}",
                self.addr,
                args.join(" ")
            ),
        }
    }

    /// Runs one command on a connection of its own.
    pub async fn try_command(&self, args: &[&str]) -> io::Result<Reply> {
        let asked = async { self.connect().await?.call(args).await };
        timeout(COMMAND_LIMIT, asked)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// How often each command was executed since the start or [`Server::reset_stats`], by the names of
    /// `INFO commandstats`: lower case, sub-commands as in `client|pause`. The harness's own `info` is among them.
    pub async fn commands(&self) -> BTreeMap<String, u64> {
        let info = self.command(&["INFO", "commandstats"]).await.text();
        info.lines().filter_map(command_stat).collect()
    }

    /// How often one command was executed: `"evalsha"`, `"client|pause"`, `"CLIENT PAUSE"`. Servers before 7.0 count all
    /// sub-commands of a command together.
    pub async fn command_calls(&self, command: &str) -> u64 {
        let name = command.to_lowercase().replace(' ', "|");
        let mut commands = self.commands().await;
        let calls = commands.remove(&name).or_else(|| {
            let (command, _) = name.split_once('|')?;
            commands.remove(command)
        });
        calls.unwrap_or(0)
    }

    /// Starts counting anew.
    pub async fn reset_stats(&self) {
        self.command(&["CONFIG", "RESETSTAT"]).await;
    }

    async fn until_ready(&self) {
        let what = format!("the server at {} answers", self.addr);
        until(&what, START_LIMIT, async || {
            is_ready(self.addr, self.admin.as_ref(), None).await
        })
        .await;
    }

    /// A shared server looks like a private one that has just started.
    async fn make_empty(&self) {
        for command in [
            &["FLUSHALL"][..],
            &["SCRIPT", "FLUSH"],
            &["CONFIG", "RESETSTAT"],
        ] {
            if let Some(error) = self.command(command).await.error() {
                panic!(
                    "the server of LEADER_TEST_REDIS_URL must allow {} to tests: {error}",
                    command.join(" ")
                );
            }
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

async fn is_ready(addr: SocketAddr, admin: Option<&Login>, pid: Option<u32>) -> bool {
    let Ok(mut connection) = login::open(addr, admin).await else {
        return false;
    };
    if !matches!(connection.call(&["PING"]).await, Ok(Reply::Simple(pong)) if pong == "PONG") {
        return false;
    }
    let Some(pid) = pid else {
        return true;
    };
    // Another server may have taken the port first, and would answer just as well.
    let line = format!("process_id:{pid}");
    matches!(connection.call(&["INFO", "server"]).await, Ok(info @ Reply::Bulk(_)) if info.text().lines().any(|l| l == line))
}

/// Reads `cmdstat_client|pause:calls=1,usec=…`.
fn command_stat(line: &str) -> Option<(String, u64)> {
    let (name, stats) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    let calls = stats
        .split(',')
        .find_map(|stat| stat.strip_prefix("calls="))?;
    Some((name.to_lowercase(), calls.parse().ok()?))
}
