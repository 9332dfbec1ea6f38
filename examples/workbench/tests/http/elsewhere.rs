//! Pages elsewhere, and names that are made to point here: neither drives the workbench, nor reads it.

use std::path::Path;

use serde_json::json;

use crate::support::Bench;

const JSON: (&str, &str) = ("Content-Type", "application/json");

async fn start_a(bench: &Bench, headers: &[(&str, &str)]) -> u16 {
    let body = json!({ "action": "start" }).to_string();
    let answer = bench
        .request("POST", "/api/candidates/a", headers, body)
        .await;
    answer.status
}

#[tokio::test]
async fn only_the_page_itself_may_change_anything() {
    let bench = Bench::in_memory();
    let port = bench.addr.port();
    for origin in [
        "http://evil.example".to_owned(),
        format!("http://127.0.0.1:{}", port.wrapping_add(1)),
        format!("https://127.0.0.1:{port}"),
        format!("http://localhost:{port}"),
        "null".to_owned(),
        String::new(),
    ] {
        assert_eq!(
            start_a(&bench, &[JSON, ("Origin", &origin)]).await,
            403,
            "{origin}"
        );
    }
    for site in ["cross-site", "same-site", "none"] {
        assert_eq!(
            start_a(&bench, &[JSON, ("Sec-Fetch-Site", site)]).await,
            403,
            "{site}"
        );
    }
    // What a form elsewhere can send without asking.
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "",
    ] {
        assert_eq!(
            start_a(&bench, &[("Content-Type", kind)]).await,
            415,
            "{kind}"
        );
    }
    assert_eq!(bench.state().await["last"], 0, "something has happened");

    let own = format!("http://{}", bench.addr);
    let headers = [JSON, ("Origin", &own), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(start_a(&bench, &headers).await, 200);
}

#[tokio::test]
async fn a_name_that_was_made_to_point_here_reads_nothing() {
    let bench = Bench::in_memory();
    let port = bench.addr.port();
    for host in [
        format!("evil.example:{port}"),
        "evil.example".to_owned(),
        format!("127.0.0.1.evil.example:{port}"),
    ] {
        for path in ["/", "/api/state", "/api/events", "/app.js"] {
            let answer = bench.request("GET", path, &[("Host", &host)], "").await;
            assert_eq!(answer.status, 421, "{host} {path}");
        }
        let origin = format!("http://{host}");
        assert_eq!(
            start_a(&bench, &[JSON, ("Host", &host), ("Origin", &origin)]).await,
            421
        );
    }
    let host = format!("localhost:{port}");
    let origin = format!("http://{host}");
    assert_eq!(
        start_a(&bench, &[JSON, ("Host", &host), ("Origin", &origin)]).await,
        200
    );
}

#[tokio::test]
async fn the_page_comes_from_here_alone() {
    let bench = Bench::in_memory();
    let page = bench.get("/").await;
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'self';"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    // Each file that the page or one of its scripts names is there, and none names another place.
    let mut files = vec!["/".to_owned()];
    let mut read = 0;
    while let Some(file) = files.get(read).cloned() {
        read += 1;
        let answer = bench.get(&file).await;
        assert_eq!(answer.status, 200, "{file}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        for piece in answer.text.split(['"', '\'']) {
            let kind = Path::new(piece).extension().and_then(|kind| kind.to_str());
            let is_file = piece.starts_with('/') && matches!(kind, Some("js" | "css" | "svg"));
            if is_file && !files.iter().any(|known| known == piece) {
                files.push(piece.to_owned());
            }
            let elsewhere = piece.starts_with("http") && piece != "http://www.w3.org/2000/svg";
            assert!(!elsewhere, "{file} names {piece}");
        }
    }
    assert!(files.len() > 8, "{files:?}");
}
