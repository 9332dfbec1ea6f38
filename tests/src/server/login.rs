//! URLs and logging in.

use crate::resp::{Connection, Reply};
use std::io;
use std::net::SocketAddr;

#[derive(Clone)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: String,
}

pub(super) async fn open(addr: SocketAddr, login: Option<&Login>) -> io::Result<Connection> {
    let mut connection = Connection::open(addr).await?;
    if let Some(Login { user, password }) = login {
        let reply = match user {
            Some(user) => connection.call(&["AUTH", user, password]).await?,
            None => connection.call(&["AUTH", password]).await?,
        };
        if let Reply::Error(text) = reply {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    Ok(connection)
}

pub(super) fn write_url(addr: SocketAddr, login: Option<&Login>) -> String {
    match login {
        Some(Login { user, password }) => {
            format!(
                "redis://{}:{}@{addr}",
                escape(user.as_deref().unwrap_or("")),
                escape(password)
            )
        }
        None => format!("redis://{addr}"),
    }
}

/// Reads what `LEADER_TEST_REDIS_URL` may be: `redis://[[user]:password@]host[:port]`.
pub(super) async fn read_url(url: &str) -> (SocketAddr, Option<Login>) {
    let Some(rest) = url.strip_prefix("redis://") else {
        panic!(
            "LEADER_TEST_REDIS_URL must start with redis:// (the harness speaks no TLS and knows no clusters)"
        );
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (login, host) = match authority.rsplit_once('@') {
        Some((login, host)) => (Some(login), host),
        None => (None, authority),
    };
    let login = login.map(|login| {
        let (user, password) = login.split_once(':').unwrap_or(("", login));
        Login {
            user: (!user.is_empty()).then(|| unescape(user)),
            password: unescape(password),
        }
    });
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let host = if has_port {
        host.to_owned()
    } else {
        format!("{host}:6379")
    };
    let addr = match tokio::net::lookup_host(&host).await {
        Ok(mut addrs) => addrs.next(),
        Err(error) => panic!("the host of LEADER_TEST_REDIS_URL is not found: {host}: {error}"),
    };
    (
        addr.unwrap_or_else(|| panic!("the host of LEADER_TEST_REDIS_URL has no address: {host}")),
        login,
    )
}

fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| {
            if plain(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

fn unescape(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_written_is_read() {
        let addr = SocketAddr::from(([127, 0, 0, 1], 7000));
        let login = Login {
            user: Some("a b".into()),
            password: "p@:/%ä".into(),
        };
        let url = write_url(addr, Some(&login));
        assert_eq!(url, "redis://a%20b:p%40%3A%2F%25%C3%A4@127.0.0.1:7000");

        let (read, again) = read_url(&url).await;
        let again = again.expect("the URL has a login");
        assert_eq!(
            (read, again.user, again.password),
            (addr, login.user, login.password)
        );
    }

    #[tokio::test]
    async fn the_port_may_be_left_out() {
        let (addr, login) = read_url("redis://127.0.0.1/0").await;
        assert_eq!(addr, SocketAddr::from(([127, 0, 0, 1], 6379)));
        assert!(login.is_none());
    }
}
