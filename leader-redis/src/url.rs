//! Reading a server's URL: what is wrong with one is said before anything is sent, and without its password.

use leader_core::LeaderError;

use crate::client::{Endpoint, Layout};

const TLS: bool = cfg!(feature = "__tls");

/// Reads `redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS; and what a cluster and sentinels
/// have instead.
pub(crate) fn endpoint(url: &str) -> Result<Endpoint, LeaderError> {
    read(url).map_err(|reason| LeaderError::invalid_options("url", reason))
}

/// Whether a URL that was read asks for TLS.
#[cfg(feature = "__tls")]
pub(crate) fn asks_for_tls(url: &str) -> bool {
    let scheme = url.split("://").next().unwrap_or_default();
    let server = scheme.trim().split('-').next().unwrap_or_default();
    matches!(server.to_ascii_lowercase().as_str(), "rediss" | "valkeys")
}

fn read(url: &str) -> Result<Endpoint, String> {
    let Some((scheme, rest)) = url.trim().split_once("://") else {
        return Err("it has no scheme; write `redis://host:port`".to_owned());
    };
    let layout = layout(&scheme.to_ascii_lowercase())?;
    // fred would make a TLS configuration of its own.
    let without_tls = scheme
        .to_ascii_lowercase()
        .replace("rediss", "redis")
        .replace("valkeys", "valkey");
    let url = format!("{without_tls}://{rest}");
    let endpoint =
        Endpoint::from_url(&url, layout).map_err(|details| explained(&details, layout))?;
    check_rest(rest, layout)?;
    for node in endpoint.hosts() {
        if node.host.is_empty() {
            return Err(explained("EmptyHost", layout));
        } else if node.port == 0 {
            return Err(explained("InvalidPort", layout));
        } else if node.host.contains(is_no_host) {
            return Err(explained(NO_NODE, layout));
        }
    }
    if endpoint.has_user_without_password() {
        return Err("it has a user but no password; write `redis://user:password@host`".to_owned());
    }
    Ok(endpoint)
}

/// What the parser takes for a part of a host: a login in front of one, say, which would be shown with it.
fn is_no_host(c: char) -> bool {
    c == '@' || c.is_whitespace() || c.is_control()
}

/// How the parser's words for a `node` begin that is none.
const NO_NODE: &str = "Invalid host:port for cluster node";

const ESCAPES: &str =
    " (in a password, write `/`, `?`, `#`, `@` and `%` as %2F, %3F, %23, %40 and %25)";

fn layout(scheme: &str) -> Result<Layout, String> {
    let (server, layout) = match scheme.split_once('-') {
        None => (scheme, Layout::OneServer),
        Some((server, "cluster")) => (server, Layout::Cluster),
        Some((server, "sentinel")) => (server, Layout::Sentinel),
        Some(_) => ("", Layout::OneServer),
    };
    match server {
        "redis" | "valkey" => Ok(layout),
        "rediss" | "valkeys" if TLS => Ok(layout),
        // fred would connect without TLS.
        "rediss" | "valkeys" => Err(
            "TLS is not compiled in; enable `enable-rustls`, `enable-rustls-ring` or \
             `enable-native-tls` of leader-redis"
                .to_owned(),
        ),
        "redis+unix" | "valkey+unix" => {
            Err("Unix sockets are not supported; give a host and a port".to_owned())
        }
        _ => Err(
            "its scheme is unknown; write `redis://`, `redis-cluster://` or `redis-sentinel://`, \
             or `rediss` instead of `redis` for TLS"
                .to_owned(),
        ),
    }
}

/// What stands behind the hosts. fred ignores what it does not know.
fn check_rest(rest: &str, layout: Layout) -> Result<(), String> {
    let (before, options) = rest.split_once('?').unwrap_or((rest, ""));
    let known: &[&str] = match layout {
        Layout::OneServer => &[],
        Layout::Cluster => &["node"],
        Layout::Sentinel => &[
            "node",
            "sentinelServiceName",
            "sentinelUsername",
            "sentinelPassword",
        ],
    };
    let mut keys = options.split('&').filter(|option| !option.is_empty());
    let all_known =
        keys.all(|option| known.contains(&option.split('=').next().unwrap_or_default()));
    let asked = rest.contains('?');
    match layout {
        _ if rest.contains('#') || (asked && layout == Layout::OneServer) => Err(format!(
            "options behind `?` or `#` mean nothing here; set them on the builder{ESCAPES}"
        )),
        _ if !all_known => {
            let known = known.join("`, `");
            Err(format!(
                "behind `?` it may have `{known}`, and nothing else{ESCAPES}"
            ))
        }
        Layout::Cluster => match before.split_once('/') {
            None | Some((_, "" | "0")) => Ok(()),
            Some(_) => Err(format!("a cluster has no database but 0{ESCAPES}")),
        },
        _ => Ok(()),
    }
}

/// The parser's terse words in plain ones.
fn explained(details: &str, layout: Layout) -> String {
    match details {
        "EmptyHost" | "Invalid or missing host." => format!("it has no host{ESCAPES}"),
        "InvalidPort" => format!("its port is not a number from 1 to 65535{ESCAPES}"),
        "Invalid integer string." if layout != Layout::OneServer => {
            format!("its path is no database, or the port of a `node` no port{ESCAPES}")
        }
        "Invalid integer string." | "Invalid database path." => {
            format!("its path is not the number of a database, 0 to 255{ESCAPES}")
        }
        "Invalid or missing sentinel service name query parameter." => {
            "it does not say what the sentinels call the primary; add `?sentinelServiceName=..`"
                .to_owned()
        }
        details if details.starts_with(NO_NODE) => {
            format!("one `node` is not `host:port`{ESCAPES}")
        }
        "Invalid UTF-8 string." => "its user or password is not UTF-8".to_owned(),
        details => format!("it cannot be read ({details}){ESCAPES}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_url_is_read() {
        for (url, address) in [
            ("redis://127.0.0.1", "127.0.0.1:6379"),
            ("redis://127.0.0.1/", "127.0.0.1:6379"),
            ("redis://cache.internal:6380/3", "cache.internal:6380"),
            ("valkey://cache:1", "cache:1"),
            ("REDIS://cache", "cache:6379"),
            (" redis://cache ", "cache:6379"),
            ("redis://:pa55@cache:6379", "cache:6379"),
            ("redis://billing:pa%3F%2355@cache:6379/0", "cache:6379"),
            ("redis://[::1]:6379", "[::1]:6379"),
            ("redis-cluster://:pa55@cache", "cache:6379"),
            (
                "valkey-cluster://cache:7000/?node=b:7001&node=c:7002",
                "b:7001,c:7002,cache:7000",
            ),
            (
                "redis-sentinel://cache?sentinelServiceName=x",
                "cache:26379",
            ),
            (
                "valkey-sentinel://:pa55@cache:1/3?node=b:2&sentinelServiceName=x&sentinelPassword=pa55",
                "b:2,cache:1",
            ),
        ] {
            assert_eq!(
                read(url).map(|e| e.address()),
                Ok(address.to_owned()),
                "{url}"
            );
        }
    }

    #[test]
    fn what_is_no_servers_url_is_refused_without_its_password() {
        for (url, word) in [
            ("", "scheme"),
            ("cache:6379", "scheme"),
            ("://cache", "scheme"),
            ("http://billing:pa55@cache", "scheme"),
            ("redi://billing:pa55@cache", "scheme"),
            ("redis:/billing:pa55@cache", "scheme"),
            ("redis://", "host"),
            ("redis://:pa55@", "host"),
            ("redis://:pa55@:6379", "host"),
            ("redis:///0", "host"),
            ("redis://:pa55@cache:99999", "port"),
            ("redis://:pa55@cache:0", "port"),
            ("redis://:pa55@cache:port", "port"),
            ("redis://:pa55@cache:-1", "port"),
            ("redis://:pa55@cache/zero", "database"),
            ("redis://:pa55@cache/-1", "database"),
            ("redis://:pa55@cache/256", "database"),
            ("redis://:pa55@cache/0/1", "database"),
            ("redis://:pa55@cache/0?protocol=3", "builder"),
            ("redis://:pa55@cache/0#a", "builder"),
            ("redis://:pa55?x@cache", "password"),
            ("redis://:pa55/x@cache", "password"),
            ("redis://billing@cache", "password"),
            ("redis://:%FF%FEpa55@cache", "UTF-8"),
            ("redis://:pa55@ca che", "read"),
            ("redis-cluster://:pa55@cache/3", "database"),
            ("redis-cluster://:pa55@cache?node=", "node"),
            ("redis-cluster://:pa55@cache?node=:pa55@b:1", "node"),
            ("redis-cluster://:pa55@cache?node=pa55@b:1", "node"),
            ("redis-cluster://:pa55@cache?node=b%0d%0a:1", "node"),
            ("redis-cluster://:pa55@cache?node=b:70000", "port"),
            ("redis-cluster://:pa55@cache?node=b:0", "port"),
            ("redis-cluster://:pa55@cache?sentinelServiceName=x", "node"),
            ("redis-cluster://:pa55?x@cache", "host"),
            ("redis-cluster://billing@cache", "password"),
            ("redis-sentinel://:pa55@cache", "sentinelServiceName"),
            (
                "redis-sentinel://:pa55@cache/x?sentinelServiceName=x",
                "database",
            ),
            (
                "redis-sentinel://:pa55@cache?sentinelServiceName=x&timeout=3",
                "nothing else",
            ),
            ("redis-ring://:pa55@cache", "scheme"),
            ("redis-cluster-x://:pa55@cache", "scheme"),
            ("redis+unix:///tmp/redis.sock", "Unix"),
        ] {
            let error = endpoint(url).expect_err(url);
            assert!(
                matches!(&error, LeaderError::InvalidOptions { option, .. } if *option == "url"),
                "{url} gave {error:?}"
            );
            let told = format!("{error} {error:?}");
            assert!(told.contains(word), "{url} gave {told}");
            assert!(
                !told.contains("pa55") && !told.contains("billing"),
                "{told}"
            );
        }
    }

    #[test]
    fn tls_that_is_not_compiled_in_is_refused() {
        for url in [
            "rediss://cache",
            "valkeys://cache",
            "REDISS://cache",
            "rediss-cluster://cache",
            "valkeys-sentinel://cache?sentinelServiceName=x",
        ] {
            let endpoint = endpoint(url);
            if TLS {
                assert!(endpoint.is_ok(), "{url}");
                #[cfg(feature = "__tls")]
                assert!(asks_for_tls(url), "{url} would go without");
            } else {
                let told = endpoint.expect_err(url).to_string();
                assert!(told.contains("enable-rustls"), "{url} gave {told}");
            }
        }
    }

    #[test]
    fn an_endpoint_does_not_show_its_password() {
        let endpoint = endpoint("redis://billing:pa55@cache").unwrap();
        let shown = format!("{endpoint:?}");
        assert!(shown.contains("cache:6379"), "{shown}");
        assert!(
            !shown.contains("pa55") && !shown.contains("billing"),
            "{shown}"
        );
    }
}
