//! Ports that stay ours while nobody listens on them.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;

/// Below the ports that systems give to outgoing connections. A client that keeps on trying to reach a killed server
/// on one of those would at last be connected to itself, and the server could not come back.
const RANGE: Range<u16> = 11_000..32_000;

/// A TCP port on the loopback interface that no other server of this harness gets, in this or another process, also
/// between the kill and the restart of its server.
#[derive(Debug)]
pub(super) struct ReservedPort {
    port: u16,
    /// The mark that it is taken: the UDP port of the same number, which nobody needs and which is freed even when
    /// this process is killed.
    _mark: UdpSocket,
    /// The port on which the nodes of a cluster talk among themselves.
    _bus: Option<Box<ReservedPort>>,
}

/// From a node's port to the one on which it talks to other nodes.
const TO_BUS: u16 = 10_000;

impl ReservedPort {
    pub(super) fn any() -> Self {
        Self::among(&RANGE, Self::try_port)
    }

    /// A port for a node of a cluster, and the port for its talk with others.
    pub(super) fn any_with_bus() -> Self {
        Self::among(&(RANGE.start..RANGE.end - TO_BUS), |port| {
            let bus = Self::try_port(port + TO_BUS)?;
            let node = Self::try_port(port)?;
            Some(Self {
                _bus: Some(Box::new(bus)),
                ..node
            })
        })
    }

    fn among(range: &Range<u16>, attempt: impl Fn(u16) -> Option<Self>) -> Self {
        let ports = u64::from(range.end - range.start);
        for number in 0..1000_u32 {
            let random = RandomState::new().hash_one(number) % ports;
            let port = range.start + u16::try_from(random).unwrap_or_default();
            if let Some(reserved) = attempt(port) {
                return reserved;
            }
        }
        panic!(
            "there is no free port on 127.0.0.1 between {} and {}",
            range.start, range.end
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
        Some(Self {
            port,
            _mark: mark,
            _bus: None,
        })
    }

    pub(super) fn number(&self) -> u16 {
        self.port
    }

    pub(super) fn addr(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }
}
