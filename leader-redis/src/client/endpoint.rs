//! [`Endpoint`]: where a server, a cluster or a primary behind sentinels is, and how to log in.

use std::fmt;

use fred::interfaces::ClientLike;
use fred::types::RespVersion;
use fred::types::config::{Config, Server, ServerConfig};

#[cfg(feature = "__tls")]
use super::tls;
use super::{Shared, login};
use crate::protocol::Protocol;
#[cfg(feature = "__tls")]
use crate::trust::{Trust, Unusable};

/// Where a server, a cluster or a primary behind sentinels is, and how to log in.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(super) config: Config,
}

/// What stands behind a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    OneServer,
    Cluster,
    Sentinel,
}

/// A server, as others name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Endpoint {
    /// Reads a URL without TLS; on failure says why, in words that have nothing of the URL in them.
    pub(crate) fn from_url(url: &str, layout: Layout) -> Result<Self, String> {
        let config = match layout {
            Layout::OneServer => Config::from_url_centralized(url),
            Layout::Cluster => Config::from_url_clustered(url),
            Layout::Sentinel => Config::from_url_sentinel(url),
        };
        match config {
            Ok(config) => Ok(Self { config }),
            Err(error) => Err(error.details().to_owned()),
        }
    }

    /// The same, by TLS.
    #[cfg(feature = "__tls")]
    pub(crate) fn by_tls(mut self, trust: &Trust) -> Result<Self, Unusable> {
        self.config.tls = Some(tls::config(trust)?);
        Ok(self)
    }

    /// The same, in this version of the protocol.
    pub(crate) fn speaking(mut self, protocol: Protocol) -> Self {
        match protocol {
            Protocol::Resp2 => self.config.version = RespVersion::RESP2,
            Protocol::Resp3 => login::by_resp3(&mut self.config),
        }
        self
    }

    /// Where `client` is connected to.
    pub(crate) fn of(client: &Shared) -> Self {
        Self {
            config: client.client_config(),
        }
    }

    /// A single server, with the same login.
    pub(super) fn at(&self, node: &Node) -> Self {
        let mut config = self.config.clone();
        config.server = ServerConfig::Centralized {
            server: Server::new(node.host.clone(), node.port),
        };
        Self { config }
    }

    pub(crate) fn layout(&self) -> Layout {
        if self.config.server.is_clustered() {
            Layout::Cluster
        } else if self.config.server.is_sentinel() {
            Layout::Sentinel
        } else {
            Layout::OneServer
        }
    }

    /// What sentinels call the primary.
    pub(super) fn service(&self) -> Option<&str> {
        match &self.config.server {
            ServerConfig::Sentinel { service_name, .. } => Some(service_name),
            _ => None,
        }
    }

    /// The same, where each of the other sentinels is the first to be asked.
    pub(super) fn with_another_sentinel_first(&self) -> Vec<Self> {
        let ServerConfig::Sentinel { hosts, .. } = &self.config.server else {
            return Vec::new();
        };
        let others = (1..hosts.len()).map(|first| {
            let mut endpoint = self.clone();
            if let ServerConfig::Sentinel { hosts, .. } = &mut endpoint.config.server {
                hosts.rotate_left(first);
            }
            endpoint
        });
        others.collect()
    }

    /// The servers that were named: the server itself, some nodes of the cluster, or sentinels.
    pub(crate) fn hosts(&self) -> Vec<Node> {
        let hosts = self.config.server.hosts().into_iter();
        hosts
            .map(|server| Node {
                host: server.host.to_string(),
                port: server.port,
            })
            .collect()
    }

    /// Within how many time limits of a command there is a connection, or it is known why not. Sentinels are asked one
    /// after the other.
    pub(crate) fn patience(&self) -> u32 {
        match self.layout() {
            Layout::OneServer => 2,
            Layout::Cluster => 4,
            Layout::Sentinel => u32::try_from(self.hosts().len())
                .map_or(u32::MAX, |sentinels| sentinels.saturating_mul(2) + 1),
        }
    }

    /// `host:port`, for people, and whether it is TLS that is spoken there.
    pub(crate) fn address(&self) -> String {
        let hosts: Vec<String> = self.hosts().iter().map(ToString::to_string).collect();
        let address = hosts.join(",");
        if self.config.uses_tls() {
            return address + " (TLS)";
        }
        address
    }

    /// What the server will be told.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn login(&self) -> (Option<String>, Option<String>) {
        let Config {
            username, password, ..
        } = self.config.clone();
        (username, password)
    }

    pub(crate) fn has_user_without_password(&self) -> bool {
        self.config.username.is_some() && self.config.password.is_none()
    }
}

impl Node {
    /// A server that this one names; an empty host is its own.
    pub(super) fn beside(&self, host: String, port: u16) -> Self {
        let host = if host.is_empty() {
            self.host.clone()
        } else {
            host
        };
        Self { host, port }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}
