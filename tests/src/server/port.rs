//! Ports that stay ours while nobody listens on them.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// Below the ports that systems give to outgoing connections. A client that keeps on trying to reach a killed server
/// on one of those would at last be connected to itself, and the server could not come back.
const RANGE: std::ops::Range<u16> = 11_000..32_000;

/// A TCP port on the loopback interface that no other server of this harness gets, in this or another process, also
/// between the kill and the restart of its server.
#[derive(Debug)]
pub(super) struct ReservedPort {
    port: u16,
    /// The mark that it is taken: the UDP port of the same number, which nobody needs and which is freed even when
    /// this process is killed.
    _mark: UdpSocket,
}

impl ReservedPort {
    pub(super) fn any() -> Self {
        for attempt in 0..1000_u32 {
            let random = RandomState::new().hash_one(attempt) % u64::from(RANGE.end - RANGE.start);
            let port = RANGE.start + u16::try_from(random).unwrap_or_default();
            if let Some(reserved) = Self::try_port(port) {
                return reserved;
            }
        }
        panic!(
            "there is no free port on 127.0.0.1 between {} and {}",
            RANGE.start, RANGE.end
        );
    }

    pub(super) fn this(port: u16) -> Self {
        Self::try_port(port).unwrap_or_else(|| {
            panic!("port {port} on 127.0.0.1, which the test asks for, is taken")
        })
    }

    fn try_port(port: u16) -> Option<Self> {
        let mark = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
        Some(Self { port, _mark: mark })
    }

    pub(super) fn number(&self) -> u16 {
        self.port
    }

    pub(super) fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }
}
