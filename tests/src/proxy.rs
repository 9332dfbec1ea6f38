//! A network between client and server that misbehaves on command.

mod lane;
mod link;
mod trap;

use link::{Link, Mode, Rules};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use trap::{Spring, Traps};

pub use trap::{CapturedRequest, LostReply};

/// A TCP proxy on a free port of the loopback interface.
///
/// It runs on a thread of its own, so that a test whose runtime is blocked or paused still has a network. It knows
/// where requests and replies begin and end, which is how it loses exactly one of them.
///
/// ```no_run
/// # async fn example() {
/// use leader_tests::{Proxy, Server};
///
/// let server = Server::start().await;
/// let proxy = Proxy::start(server.addr());
/// // … a client connects to `proxy.url()` …
/// let lost = proxy.lose_reply_to("EVALSHA");
/// // … the client sends a script …
/// lost.happened().await;
/// proxy.cut().await;
/// proxy.heal().await;
/// # }
/// ```
pub struct Proxy {
    addr: SocketAddr,
    rules: watch::Sender<Rules>,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the proxy's links tell about themselves.
struct Shared {
    server: Mutex<SocketAddr>,
    /// The open links, and whether bytes of theirs were lost.
    links: watch::Sender<BTreeMap<u64, Loss>>,
    traps: Traps,
    held: AtomicUsize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Nothing,
    Bytes,
}

impl Proxy {
    /// Starts a proxy before the server at `addr`. The server need not run yet.
    ///
    /// # Panics
    ///
    /// When there is no free port.
    #[must_use]
    pub fn start(addr: SocketAddr) -> Self {
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), addr)
    }

    /// As [`Proxy::start`], where clients are to connect: on another address of the loopback interface with the server's
    /// own port, say, as for a cluster that tells its clients ports only.
    ///
    /// # Panics
    ///
    /// When that address is taken, or not this machine's.
    #[must_use]
    pub fn start_at(at: SocketAddr, addr: SocketAddr) -> Self {
        let listener = TcpListener::bind(at).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (own_addr, listener) =
            listener.unwrap_or_else(|error| panic!("the proxy gets no port at {at}: {error}"));
        let (rules, watched) = watch::channel(Rules::default());
        let shared = Arc::new(Shared {
            server: Mutex::new(addr),
            links: watch::Sender::new(BTreeMap::new()),
            traps: Traps::default(),
            held: AtomicUsize::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let served = serve(listener, watched, Arc::clone(&shared));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime =
                runtime.unwrap_or_else(|error| panic!("the proxy gets no runtime: {error}"));
            runtime.block_on(async {
                tokio::select! {
                    () = served => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            addr: own_addr,
            rules,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Where clients connect. For a server with a password see [`Server::url_at`](crate::Server::url_at).
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    /// The address clients connect to.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The port of [`Proxy::addr`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// How many connections of clients are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.links.borrow().len()
    }

    /// How many open connections have lost bytes.
    #[must_use]
    pub fn robbed(&self) -> usize {
        let links = self.shared.links.borrow();
        links.values().filter(|loss| **loss == Loss::Bytes).count()
    }

    /// Closes all connections, and every new one as soon as it is made. Returns when they are closed.
    pub async fn cut(&self) {
        self.rules.send_modify(|rules| rules.mode = Mode::Cut);
        self.kill_connections().await;
    }

    /// Closes all connections; new ones work. Returns when they are closed.
    pub async fn kill_connections(&self) {
        let next = self.next_link();
        self.rules.send_modify(|rules| rules.closed_before = next);
        self.until_links(|links| links.range(..next).next().is_none())
            .await;
    }

    /// Leads new connections to another server, as an address does that moves to the new primary in a failover.
    pub fn lead_to(&self, addr: SocketAddr) {
        *self
            .shared
            .server
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = addr;
    }

    /// Swallows every byte in both directions. Connections stay open and new ones are accepted: the far side is dead
    /// and nobody has told.
    pub fn blackhole(&self) {
        self.rules.send_modify(|rules| rules.mode = Mode::Blackhole);
    }

    /// Makes the present connections half-open for good, as a gateway does that lost its table; new ones work.
    pub fn strand_connections(&self) {
        let next = self.next_link();
        self.rules.send_modify(|rules| rules.stranded_before = next);
    }

    /// Keeps the server's replies back. Requests go on to the server.
    pub fn hold_replies(&self) {
        self.rules.send_modify(|rules| rules.hold_replies = true);
    }

    /// Lets the replies go that were kept back, in their order, and those to come.
    pub fn release_replies(&self) {
        self.rules.send_modify(|rules| rules.hold_replies = false);
    }

    /// How many replies are kept back or delayed at this moment: whether the server has answered already.
    #[must_use]
    pub fn held_replies(&self) -> usize {
        self.shared.held.load(Ordering::SeqCst)
    }

    /// Lets every request take this much longer to the server.
    pub fn delay_requests(&self, delay: Duration) {
        self.rules.send_modify(|rules| rules.request_delay = delay);
    }

    /// Lets every reply take this much longer to the client.
    pub fn delay_replies(&self, delay: Duration) {
        self.rules.send_modify(|rules| rules.reply_delay = delay);
    }

    /// Ends `cut`, `blackhole`, `hold_replies` and delays. Connections that lost bytes meanwhile cannot be mended and
    /// are closed; returns when they are.
    pub async fn heal(&self) {
        let (next, stranded) = (self.next_link(), self.rules.borrow().stranded_before);
        self.rules.send_modify(|rules| {
            *rules = Rules {
                closed_before: rules.closed_before,
                stranded_before: stranded,
                ..Rules::default()
            };
        });
        let broken =
            |(id, loss): (&u64, &Loss)| (stranded..next).contains(id) && *loss == Loss::Bytes;
        self.until_links(|links| !links.iter().any(broken)).await;
    }

    /// Loses the reply to the next request that contains `bytes`: the request is executed, its reply is dropped, and
    /// the connection is closed.
    pub fn lose_reply_to(&self, bytes: impl AsRef<[u8]>) -> LostReply {
        self.lose_reply_to_nth(1, bytes)
    }

    /// As [`Proxy::lose_reply_to`], for the `n`th such request from now; the first is 1.
    pub fn lose_reply_to_nth(&self, n: usize, bytes: impl AsRef<[u8]>) -> LostReply {
        let (sender, lost) = trap::lost_reply(bytes.as_ref());
        self.shared
            .traps
            .set(bytes.as_ref(), n, Spring::LoseReply(sender));
        lost
    }

    /// Catches the next request that contains `bytes` on its way: it does not reach the server, and the client sees
    /// its connection closed. The request can be delivered later, when the client has given it up.
    pub fn capture_request(&self, bytes: impl AsRef<[u8]>) -> CapturedRequest {
        let (sender, captured) = trap::captured_request(bytes.as_ref());
        self.shared
            .traps
            .set(bytes.as_ref(), 1, Spring::Capture(sender));
        captured
    }

    fn next_link(&self) -> u64 {
        self.shared
            .links
            .borrow()
            .last_key_value()
            .map_or(0, |(id, _)| id + 1)
    }

    async fn until_links(&self, holds: impl FnMut(&BTreeMap<u64, Loss>) -> bool) {
        // The sender is in this value, so the wait cannot fail.
        let _ = self.shared.links.subscribe().wait_for(holds).await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the proxy has been printed where it happened.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("addr", &self.addr)
            .field("rules", &*self.rules.borrow())
            .finish_non_exhaustive()
    }
}

async fn serve(listener: TcpListener, rules: watch::Receiver<Rules>, shared: Arc<Shared>) {
    let listener = tokio::net::TcpListener::from_std(listener);
    let listener = listener.unwrap_or_else(|error| panic!("the proxy cannot listen: {error}"));
    for id in 0.. {
        let Ok((client, _)) = listener.accept().await else {
            return;
        };
        if rules.borrow().mode == Mode::Cut {
            continue;
        }
        shared
            .links
            .send_modify(|links| _ = links.insert(id, Loss::Nothing));
        let (rules, shared) = (rules.clone(), Arc::clone(&shared));
        tokio::spawn(async move {
            let server = *shared.server.lock().unwrap_or_else(PoisonError::into_inner);
            let parked = if let Ok(server) = TcpStream::connect(server).await {
                Link::new(id, client, server, rules, Arc::clone(&shared))
                    .run()
                    .await
            } else {
                drop(client);
                None
            };
            shared.links.send_modify(|links| _ = links.remove(&id));
            if let Some(parked) = parked {
                parked.deliver_when_told().await;
            }
        });
    }
}
