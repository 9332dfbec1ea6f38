//! Traps for one request, chosen by bytes that it contains.

use crate::resp::{Connection, Reply};
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a test waits for a trap before it says that no such request came.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Traps(Mutex<Vec<Trap>>);

struct Trap {
    bytes: Vec<u8>,
    passes: usize,
    spring: Spring,
}

/// What happens to the request.
pub(super) enum Spring {
    LoseReply(oneshot::Sender<()>),
    Capture(oneshot::Sender<oneshot::Sender<Told>>),
}

/// The order to deliver a captured request, with the way back for its reply.
pub(super) type Told = oneshot::Sender<io::Result<Reply>>;

impl Traps {
    pub(super) fn set(&self, bytes: &[u8], nth: usize, spring: Spring) {
        let trap = Trap {
            bytes: bytes.to_vec(),
            passes: nth.saturating_sub(1),
            spring,
        };
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(trap);
    }

    /// The trap that this request falls into.
    pub(super) fn sprung_by(&self, request: &[u8]) -> Option<Spring> {
        let mut traps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hit = traps.iter_mut().position(|trap| {
            let matches = contains(request, &trap.bytes);
            let passes = matches && trap.passes > 0;
            trap.passes -= usize::from(passes);
            matches && !passes
        })?;
        Some(traps.remove(hit).spring)
    }
}

fn contains(request: &[u8], bytes: &[u8]) -> bool {
    bytes.is_empty() || request.windows(bytes.len()).any(|window| window == bytes)
}

/// A reply that is going to be lost; the trap is set whether this value is kept or not.
pub struct LostReply {
    bytes: String,
    lost: oneshot::Receiver<()>,
}

pub(super) fn lost_reply(bytes: &[u8]) -> (oneshot::Sender<()>, LostReply) {
    let (sender, lost) = oneshot::channel();
    (
        sender,
        LostReply {
            bytes: String::from_utf8_lossy(bytes).into_owned(),
            lost,
        },
    )
}

impl LostReply {
    /// Waits until the server has executed the request and its reply is dropped.
    ///
    /// # Panics
    ///
    /// When that does not happen within 10 s.
    pub async fn happened(self) {
        let lost = timeout(LIMIT, self.lost).await;
        assert!(
            matches!(lost, Ok(Ok(()))),
            "no reply to a request with {:?} came by within {LIMIT:?}",
            self.bytes
        );
    }
}

/// A request that is going to be caught on its way to the server.
pub struct CapturedRequest {
    bytes: String,
    state: Capture,
}

enum Capture {
    Awaited(oneshot::Receiver<oneshot::Sender<Told>>),
    Caught(oneshot::Sender<Told>),
}

pub(super) fn captured_request(
    bytes: &[u8],
) -> (oneshot::Sender<oneshot::Sender<Told>>, CapturedRequest) {
    let (sender, caught) = oneshot::channel();
    let bytes = String::from_utf8_lossy(bytes).into_owned();
    (
        sender,
        CapturedRequest {
            bytes,
            state: Capture::Awaited(caught),
        },
    )
}

impl CapturedRequest {
    /// Waits until the request is caught and its client's connection is closed.
    ///
    /// # Panics
    ///
    /// When that does not happen within 10 s.
    #[must_use = "the request is delivered by `deliver`"]
    pub async fn caught(self) -> Self {
        let Self { bytes, state } = self;
        let state = match state {
            Capture::Awaited(caught) => match timeout(LIMIT, caught).await {
                Ok(Ok(order)) => Capture::Caught(order),
                _ => panic!("no request with {bytes:?} came by within {LIMIT:?}"),
            },
            caught @ Capture::Caught(_) => caught,
        };
        Self { bytes, state }
    }

    /// Delivers the request over the connection that it was sent on, and gives the server's reply.
    ///
    /// # Panics
    ///
    /// When no such request came within 10 s, or the server does not answer it.
    pub async fn deliver(self) -> Reply {
        let Self { bytes, state } = self.caught().await;
        let Capture::Caught(order) = state else {
            unreachable!("`caught` returns when it is caught");
        };
        let (reply, answered) = oneshot::channel();
        // A proxy that is gone drops the order, and the wait below ends.
        let _ = order.send(reply);
        match timeout(LIMIT, answered).await {
            Ok(Ok(Ok(reply))) => reply,
            Ok(Ok(Err(error))) => {
                panic!("the captured request with {bytes:?} cannot be delivered: {error}")
            }
            _ => panic!(
                "the captured request with {bytes:?} got no reply within {LIMIT:?}; does its proxy still run?"
            ),
        }
    }
}

/// The proxy's end of a captured request: the server's side of the connection, still logged in.
pub(super) struct Parked {
    pub(super) server: TcpStream,
    pub(super) request: Vec<u8>,
    pub(super) caught: oneshot::Sender<oneshot::Sender<Told>>,
}

impl Parked {
    pub(super) async fn deliver_when_told(self) {
        let Self {
            mut server,
            request,
            caught,
        } = self;
        let (order, told) = oneshot::channel();
        if caught.send(order).is_err() {
            return;
        }
        if let Ok(reply) = told.await {
            let answer = match server.write_all(&request).await {
                Ok(()) => Connection::over(server).read().await,
                Err(error) => Err(error),
            };
            let _ = reply.send(answer);
        }
    }
}

impl fmt::Debug for LostReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LostReply")
            .field("to", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for CapturedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapturedRequest")
            .field("with", &self.bytes)
            .finish_non_exhaustive()
    }
}
