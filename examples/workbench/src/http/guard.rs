//! Who may ask: a page elsewhere must not drive the workbench, nor read it by a name that it lets point here.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::refusal::Refusal;

/// Nothing from elsewhere is loaded or run, and nobody puts the page into a frame.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) async fn check(request: Request, next: Next) -> Response {
    let refused = refuse(request.method(), request.headers());
    let mut response = match refused {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refuse(method: &Method, headers: &HeaderMap) -> Option<Refusal> {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(header::HOST).unwrap_or_default();
    if !is_address(host) {
        let error = "ask by an IP address or as `localhost`: other names may be made to point here";
        return Some(Refusal::new(StatusCode::MISDIRECTED_REQUEST, error));
    }
    if method == Method::GET || method == Method::HEAD {
        return None;
    }
    let elsewhere = text(header::ORIGIN).is_some_and(|origin| origin != format!("http://{host}"));
    let site = text(HeaderName::from_static("sec-fetch-site"));
    if elsewhere || site.is_some_and(|site| site != "same-origin") {
        let error = "only the workbench's own page may change anything";
        return Some(Refusal::new(StatusCode::FORBIDDEN, error));
    }
    // What a page elsewhere could send without asking first is never this type.
    let kind = text(header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let error = "send JSON, with `Content-Type: application/json`";
        return Some(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error));
    }
    None
}

/// Whether a `Host` is an address, or `localhost`, with a port or without.
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match bare {
        Some(bare) => bare.parse::<std::net::Ipv6Addr>().is_ok(),
        None => name.eq_ignore_ascii_case("localhost") || matches!(name.parse(), Ok(IpAddr::V4(_))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_and_no_name() {
        for host in [
            "127.0.0.1:8080",
            "127.0.0.1",
            "localhost:80",
            "LOCALHOST",
            "[::1]:8080",
            "[::1]",
        ] {
            assert!(is_address(host), "{host}");
        }
        for host in [
            "",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "::1",
            "[::1",
            "a:b",
        ] {
            assert!(!is_address(host), "{host}");
        }
    }
}
