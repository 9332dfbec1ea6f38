//! `cargo xtask docker`: the tests' other way to a server.

use crate::command::{self, Done, on_path, output, say, succeeds};
use crate::test::{self, DOCKER_FEATURE};
use crate::{packages, servers};
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The tests that are run: those whose names have one of these. The harness's on servers first; then the plainest
/// stories on a store.
const TESTS: [&str; 3] = ["server_", "a01_", "c01_"];
/// Where they are looked for: programs whose tests need one server. Replicas, clusters and the like find each other by
/// addresses that containers do not have.
const PROGRAMS: [&str; 4] = [
    "harness",
    "part_a_being_elected",
    "part_c_letting_go",
    "conformance_redis",
];

const IMAGE: &str = "LEADER_TEST_REDIS_IMAGE";
const NETWORK: &str = "LEADER_TEST_REDIS_NETWORK";
const HOST: &str = "DOCKER_HOST";
const OWN_IMAGE: &str = "leader-test-redis:local";

const START_LIMIT: Duration = Duration::from_secs(60);

/// How an engine is started, best first, and the network that its containers are then to be given.
const WAYS: [(&[&str], Option<&str>); 2] = [
    (&[], None),
    // Where the kernel or a sandbox allows no bridge, no packet filter and no overlay.
    (
        &[
            "--bridge=none",
            "--iptables=false",
            "--ip-masq=false",
            "--storage-driver=vfs",
        ],
        Some("host"),
    ),
];

pub(crate) fn run() -> Done {
    let scratch = Scratch::new()?;
    let engine = match Engine::find_or_start(&scratch) {
        Ok(engine) => engine,
        Err(why) => {
            let why = why.replace('\n', " | ");
            println!(
                "xtask: DOCKER NOT RUN: no test was run in a container, since no engine runs here: {why}"
            );
            return Ok(());
        }
    };
    // From here on a failure is a failure: the engine is there.
    let image = match env::var(IMAGE) {
        Ok(image) => image,
        Err(_) => engine.import_server(&scratch)?,
    };
    say(&format!("the tests' containers are of the image {image}"));
    let mut tests = test::runner().command();
    tests
        .args([
            "--package",
            "leader-tests",
            "--features",
            DOCKER_FEATURE,
            "--no-fail-fast",
        ])
        .args(PROGRAMS.iter().flat_map(|program| ["--test", program]))
        .arg("--")
        .args(TESTS);
    tests
        .env(IMAGE, image)
        .env("LEADER_TEST_BACKEND", "docker")
        .envs(engine.variables());
    command::run(&mut tests)
}

/// An engine that answers.
struct Engine {
    client: PathBuf,
    /// Only where we started it.
    daemon: Option<Daemon>,
}

impl Engine {
    fn find_or_start(scratch: &Scratch) -> Done<Self> {
        if let Some(client) = client(None) {
            say("a Docker engine runs here");
            return Ok(Self {
                client,
                daemon: None,
            });
        }
        if !cfg!(target_os = "linux") || !packages::is_root() {
            return Err("none runs, and only root on Linux can start one".to_owned());
        }
        if on_path("dockerd").is_empty() {
            packages::install(&["docker.io", "moby-engine"])?;
        }
        let mut complaints = Vec::new();
        for (number, (flags, network)) in WAYS.iter().enumerate() {
            let place = scratch.dir(&format!("engine-{number}"))?;
            let mut daemon = Daemon::start(place, flags, *network)?;
            if let Some(client) = daemon.until_it_answers() {
                return Ok(Self {
                    client,
                    daemon: Some(daemon),
                });
            }
            complaints.push(format!("{}: {}", show(flags), daemon.last_words()));
        }
        Err(complaints.join("; "))
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let Some(daemon) = &self.daemon else {
            return Vec::new();
        };
        let network = daemon.network.map(|network| (NETWORK, network.to_owned()));
        std::iter::once((HOST, daemon.host()))
            .chain(network)
            .collect()
    }

    fn docker(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.client);
        command.args(args).envs(self.variables());
        command
    }

    /// Makes an image of the server binary that is installed here and of the libraries that it needs.
    fn import_server(&self, scratch: &Scratch) -> Done<String> {
        let server = servers::binary();
        let server = server.ok_or(
            "there is no server binary to make an image of; `cargo xtask test` installs one",
        )?;
        let tree = scratch.dir("image")?;
        let copy = |from: &Path, to: &Path| {
            let to = tree.join(to.strip_prefix("/").unwrap_or(to));
            let made =
                fs::create_dir_all(to.parent().unwrap_or(&tree)).and_then(|()| fs::copy(from, &to));
            made.map_err(|error| format!("{} cannot be copied: {error}", from.display()))
        };
        copy(&server, Path::new("/usr/bin/redis-server"))?;
        // Lines are `name => /path (address)`, and `/path (address)` for the loader.
        for line in output(Command::new("ldd").arg(&server))?.lines() {
            if let Some(library) = line.split_whitespace().find(|word| word.starts_with('/')) {
                copy(Path::new(library), Path::new(library))?;
            }
        }
        let archive = scratch.path.join("image.tar");
        command::run(
            Command::new("tar")
                .arg("-C")
                .arg(&tree)
                .arg("-cf")
                .arg(&archive)
                .arg("."),
        )?;
        let changes = [
            "--change",
            "ENV PATH=/usr/bin",
            "--change",
            r#"CMD ["redis-server"]"#,
        ];
        command::run(
            self.docker(&["import"])
                .args(changes)
                .arg(&archive)
                .arg(OWN_IMAGE),
        )?;
        Ok(OWN_IMAGE.to_owned())
    }
}

/// An engine that we started, stopped when this value is dropped. Its socket and its data are in a directory of ours,
/// so that nothing of it stays.
struct Daemon {
    process: Child,
    place: PathBuf,
    network: Option<&'static str>,
}

impl Daemon {
    fn start(place: PathBuf, flags: &[&str], network: Option<&'static str>) -> Done<Self> {
        let log = place.join("log");
        let files = File::create(&log).and_then(|log| Ok((log.try_clone()?, log)));
        let (out, err) = files.map_err(|error| format!("{}: {error}", log.display()))?;
        say(&format!("starting a Docker engine: {}", show(flags)));
        let mut command = Command::new("dockerd");
        command.arg("--host").arg(host(&place)).args(flags);
        for (flag, name) in [
            ("--data-root", "data"),
            ("--exec-root", "exec"),
            ("--pidfile", "pid"),
        ] {
            command.arg(flag).arg(place.join(name));
        }
        let process = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let process = process.map_err(|error| format!("dockerd cannot be started: {error}"))?;
        Ok(Self {
            process,
            place,
            network,
        })
    }

    /// Gives the client that it answers, `None` when it ended instead or takes too long.
    fn until_it_answers(&mut self) -> Option<PathBuf> {
        let deadline = Instant::now() + START_LIMIT;
        while Instant::now() < deadline && self.process.try_wait().is_ok_and(|end| end.is_none()) {
            if let Some(client) = client(Some(&self.host())) {
                return Some(client);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        None
    }

    fn host(&self) -> String {
        host(&self.place)
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(self.place.join("log")).unwrap_or_default();
        log.lines().last().unwrap_or("it said nothing").to_owned()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        say("stopping the Docker engine that was started");
        // One that has ended is reaped by this, and its number may be another's.
        if self.process.try_wait().is_ok_and(|end| end.is_some()) {
            return;
        }
        // SIGTERM, on which it takes its containers and its containerd with it; SIGKILL would leave them behind.
        let _ = output(Command::new("kill").arg(self.process.id().to_string()));
        let _ = self.process.wait();
        // Containers on the host's network leave this mount, under which nothing can be removed.
        let _ = output(Command::new("umount").arg(self.place.join("exec/netns/default")));
    }
}

fn host(place: &Path) -> String {
    format!("unix://{}", place.join("socket").display())
}

fn show(flags: &[&str]) -> String {
    std::iter::once("dockerd")
        .chain(flags.iter().copied())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The first client on the PATH that this engine answers: a newer client may refuse an older engine.
fn client(host: Option<&str>) -> Option<PathBuf> {
    on_path("docker").into_iter().find(|client| {
        let mut command = Command::new(client);
        command.arg("info").envs(host.map(|host| (HOST, host)));
        succeeds(&mut command)
    })
}

/// A directory for this run.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new() -> Done<Self> {
        let path = env::temp_dir().join(format!("leader-xtask-{}", std::process::id()));
        let scratch = Self { path };
        scratch.dir("")?;
        Ok(scratch)
    }

    fn dir(&self, name: &str) -> Done<PathBuf> {
        let dir = self.path.join(name);
        fs::create_dir_all(&dir)
            .map_err(|error| format!("{} cannot be made: {error}", dir.display()))?;
        Ok(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            say(&format!("{} stays behind: {error}", self.path.display()));
        }
    }
}
