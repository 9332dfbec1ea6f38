//! Reading a server's URL: what is wrong with one is said before anything is sent, and without its password.

use leader_core::LeaderError;

use crate::client::Endpoint;

const TLS: bool = cfg!(feature = "__tls");

/// Reads `redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS.
pub(crate) fn endpoint(url: &str) -> Result<Endpoint, LeaderError> {
    read(url).map_err(|reason| LeaderError::invalid_options("url", reason))
}

/// Whether a URL that was read asks for TLS.
#[cfg(feature = "__tls")]
pub(crate) fn asks_for_tls(url: &str) -> bool {
    let scheme = url.trim().split_once("://").map(|(scheme, _)| scheme);
    scheme
        .is_some_and(|scheme| matches!(scheme.to_ascii_lowercase().as_str(), "rediss" | "valkeys"))
}

fn read(url: &str) -> Result<Endpoint, String> {
    let Some((scheme, rest)) = url.trim().split_once("://") else {
        return Err("it has no scheme; write `redis://host:port`".to_owned());
    };
    check_scheme(&scheme.to_ascii_lowercase())?;
    // fred would make a TLS configuration of its own.
    let url = match scheme.to_ascii_lowercase().as_str() {
        "rediss" => format!("redis://{rest}"),
        "valkeys" => format!("valkey://{rest}"),
        _ => url.to_owned(),
    };
    let endpoint = Endpoint::from_url(&url).map_err(|details| explained(&details))?;
    if rest.contains(['?', '#']) {
        return Err(format!(
            "options behind `?` or `#` mean nothing here; set them on the builder{ESCAPES}"
        ));
    }
    match endpoint.host_and_port() {
        Some((host, port)) if !host.is_empty() && port > 0 => {}
        Some((host, _)) if host.is_empty() => return Err(explained("EmptyHost")),
        _ => return Err(explained("InvalidPort")),
    }
    if endpoint.has_user_without_password() {
        return Err("it has a user but no password; write `redis://user:password@host`".to_owned());
    }
    Ok(endpoint)
}

const ESCAPES: &str =
    " (in a password, write `/`, `?`, `#`, `@` and `%` as %2F, %3F, %23, %40 and %25)";

fn check_scheme(scheme: &str) -> Result<(), String> {
    match scheme {
        "redis" | "valkey" => Ok(()),
        "rediss" | "valkeys" if TLS => Ok(()),
        // fred would connect without TLS.
        "rediss" | "valkeys" => Err(
            "TLS is not compiled in; enable `enable-rustls`, `enable-rustls-ring` or \
             `enable-native-tls` of leader-redis"
                .to_owned(),
        ),
        "redis-cluster" | "rediss-cluster" | "valkey-cluster" | "valkeys-cluster" => {
            Err("Redis Cluster comes in a later version; give one server".to_owned())
        }
        "redis-sentinel" | "rediss-sentinel" | "valkey-sentinel" | "valkeys-sentinel" => {
            Err("Sentinel comes in a later version; give the primary itself".to_owned())
        }
        "redis+unix" | "valkey+unix" => {
            Err("Unix sockets are not supported; give a host and a port".to_owned())
        }
        _ => Err("its scheme is unknown; write `redis://`, or `rediss://` for TLS".to_owned()),
    }
}

/// The parser's terse words in plain ones.
fn explained(details: &str) -> String {
    match details {
        "EmptyHost" | "Invalid or missing host." => format!("it has no host{ESCAPES}"),
        "InvalidPort" => format!("its port is not a number from 1 to 65535{ESCAPES}"),
        "Invalid integer string." | "Invalid database path." => {
            format!("its path is not the number of a database, 0 to 255{ESCAPES}")
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
            ("redis-cluster://:pa55@cache", "Cluster"),
            ("rediss-cluster://:pa55@cache", "Cluster"),
            (
                "redis-sentinel://:pa55@cache?sentinelServiceName=x",
                "Sentinel",
            ),
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
        for url in ["rediss://cache", "valkeys://cache", "REDISS://cache"] {
            let endpoint = endpoint(url);
            if TLS {
                assert!(endpoint.is_ok(), "{url}");
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
