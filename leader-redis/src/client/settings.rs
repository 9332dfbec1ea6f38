//! What fred is told, since what it does otherwise would hurt here, and what its errors mean.

use std::time::Duration;

use fred::error::{Error, ErrorKind};
use fred::socket2::TcpKeepalive;
use fred::types::Builder;
use fred::types::config::{Options, ReconnectPolicy, TcpConfig, UnresponsiveConfig};

use super::{Endpoint, Purpose, login};
use crate::fault::Failure;

pub(super) fn builder(endpoint: &Endpoint, purpose: Purpose, limit: Duration) -> Builder {
    let mut config = endpoint.config.clone();
    // Who cannot connect at first is told so; from then on the policy below holds.
    config.fail_fast = true;
    if purpose == Purpose::Messages {
        login::by_resp3(&mut config);
    }
    let mut policy = ReconnectPolicy::new_exponential(0, 20, 250, 2);
    policy.set_jitter(20);
    let mut builder = Builder::from_config(config);
    builder
        .set_policy(policy)
        .with_performance_config(|performance| {
            performance.default_command_timeout = limit;
            performance.broadcast_channel_capacity = 1024;
        })
        .with_connection_config(|connection| {
            connection.connection_timeout = limit;
            connection.internal_command_timeout = limit;
            connection.max_command_attempts = 1;
            // Long enough for the slow answer of a server that is not dead.
            connection.unresponsive = UnresponsiveConfig {
                max_timeout: Some(limit * 2),
                interval: (limit / 2).max(Duration::from_millis(5)),
            };
            // Nagle's algorithm on commands: alone a command is sent at once, and while others are on their way those that
            // follow are sent together, at the latest with the first answer. fred sends each by itself otherwise, which
            // costs a packet and two of the kernel's turns for each. What comes from the server is not delayed by it.
            connection.tcp = TcpConfig {
                nodelay: Some(purpose == Purpose::Messages),
                keepalive: Some(TcpKeepalive::new().with_time(Duration::from_secs(15))),
                ..TcpConfig::default()
            };
            // `max_command_buffer_len` stays 0, for unbounded: when a bounded buffer is full, fred loses its own order
            // to reconnect, and the client with it. The time limits bound the buffer.
        });
    builder
}

/// All three are needed: the time limit holds from queue to answer, `fail_fast` keeps commands out of the queue while
/// there is no connection, and one attempt keeps a command from being sent again after a reconnect.
pub(super) fn options(limit: Duration) -> Options {
    Options {
        // Zero would be no limit.
        timeout: Some(limit.max(Duration::from_millis(1))),
        max_attempts: Some(1),
        fail_fast: true,
        ..Options::default()
    }
}

/// What an error means; `limit` is what users know the time limit as.
pub(super) fn failure(error: &Error, limit: Duration) -> Failure {
    let words = error.details();
    match error.kind() {
        ErrorKind::Timeout => Failure::NoAnswer(limit),
        ErrorKind::Canceled | ErrorKind::Backpressure | ErrorKind::InvalidCommand => {
            Failure::NotSent(None)
        }
        ErrorKind::Parse | ErrorKind::NotFound => Failure::Malformed(words.to_owned()),
        // The bytes made no sense.
        ErrorKind::Protocol => {
            let words = words.trim_end_matches('.');
            Failure::Malformed(format!("{words}; is this a Redis server?"))
        }
        // What servers say; but fred's own words are of the unknown kind as well.
        ErrorKind::Unknown => match words {
            "Failed to route command."
            | "Client is not initialized."
            | "Failed to send command to router." => Failure::NotSent(None),
            "channel closed" | "Too many failed write attempts." => {
                Failure::Cut("the connection was given up".to_owned())
            }
            words => Failure::Refused(words.to_owned()),
        },
        ErrorKind::Auth | ErrorKind::Cluster | ErrorKind::InvalidArgument => {
            Failure::Refused(words.to_owned())
        }
        // A server that was asked for its cluster and has none.
        ErrorKind::Config if has_code(words) => Failure::Refused(words.to_owned()),
        ErrorKind::Config | ErrorKind::Url => Failure::Client(words.to_owned()),
        // Whatever went wrong on the way from a sentinel to the primary.
        ErrorKind::Sentinel => match words {
            "Failed to connect to all sentinel nodes." => {
                Failure::Cut("no sentinel is reached, or none takes the login".to_owned())
            }
            words if words.starts_with("Invalid role") => {
                Failure::Refused("READONLY whom the sentinels name is no primary".to_owned())
            }
            words if has_code(words) => Failure::Refused(words.to_owned()),
            words => Failure::Cut(words.to_owned()),
        },
        // Input and output, TLS, routing: the way to the server.
        _ => Failure::Cut(words.to_owned()),
    }
}

/// Whether these are a server's words, which begin with a code.
fn has_code(words: &str) -> bool {
    let first = words.split(' ').next().unwrap_or_default();
    first.len() > 2 && first.bytes().all(|byte| byte.is_ascii_uppercase())
}
