//! [`Endpoint`]: where a server is, and how to log in.

use std::fmt;

use fred::interfaces::ClientLike;
use fred::types::RespVersion;
use fred::types::config::Config;

#[cfg(feature = "__tls")]
use super::tls;
use super::{Shared, login};
use crate::protocol::Protocol;
#[cfg(feature = "__tls")]
use crate::trust::{Trust, Unusable};

/// Where a server is, and how to log in.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(super) config: Config,
}

impl Endpoint {
    /// Reads a URL without TLS; on failure says why, in words that have nothing of the URL in them.
    pub(crate) fn from_url(url: &str) -> Result<Self, String> {
        match Config::from_url_centralized(url) {
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

    /// Whether it is one server, reached directly.
    pub(crate) fn is_one_server(&self) -> bool {
        self.config.server.is_centralized() || self.config.server.is_unix_socket()
    }

    /// `host:port`, for people, and whether it is TLS that is spoken there.
    pub(crate) fn address(&self) -> String {
        let hosts = self.config.server.hosts();
        let hosts: Vec<String> = hosts
            .iter()
            .map(|server| format!("{}:{}", server.host, server.port))
            .collect();
        let address = hosts.join(",");
        if self.config.uses_tls() {
            return address + " (TLS)";
        }
        address
    }

    pub(crate) fn host_and_port(&self) -> Option<(String, u16)> {
        let server = self.config.server.hosts().into_iter().next()?;
        Some((server.host.to_string(), server.port))
    }

    pub(crate) fn has_user_without_password(&self) -> bool {
        self.config.username.is_some() && self.config.password.is_none()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}
