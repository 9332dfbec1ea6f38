//! Requests that are wrong: the right status, a JSON error, and nothing changed.

use leader_tests::Server;

use crate::support::{Instance, TOKEN, holders, leader};

const STATE: &str = "/management/leader-election";

/// Asks for what is refused: with this status, and in JSON.
async fn refused(
    instance: &Instance,
    method: &str,
    path: &str,
    token: Option<&str>,
    status: u16,
    error: &str,
) {
    let what = format!("{method} {path} with {token:?}");
    let answer = instance.request(method, path, token).await;
    assert_eq!(answer.status, status, "{what}: {}", answer.text);
    assert_eq!(answer.json()["error"], error, "{what}");
    assert!(answer.json()["message"].is_string(), "{what}");
    assert!(!answer.text.contains(TOKEN), "{what}: {}", answer.text);
    assert_eq!(
        answer.header("www-authenticate").is_some(),
        status == 401,
        "{what}"
    );
    let allow = answer.header("allow").is_some();
    assert!(allow || status != 405, "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_for_everybody_refuse_in_json_as_well() {
    let server = Server::start().await;
    let instance = Instance::start(&server, "a").await;
    leader(&[&instance]).await;
    for (method, path, status, error) in [
        ("GET", "/".to_owned(), 404, "not_found"),
        ("GET", "/nothing/here".to_owned(), 404, "not_found"),
        ("POST", "/metrics".to_owned(), 405, "method_not_allowed"),
        ("PUT", "/health/live".to_owned(), 405, "method_not_allowed"),
        (
            "DELETE",
            "/health/ready".to_owned(),
            405,
            "method_not_allowed",
        ),
        ("GET", "/reports/acme".to_owned(), 405, "method_not_allowed"),
        ("POST", "/leader-only".to_owned(), 405, "method_not_allowed"),
        ("POST", "/reports/%FF%FE".to_owned(), 400, "bad_path"),
        ("POST", "/reports/a%00b".to_owned(), 400, "no_election"),
        (
            "POST",
            "/reports/%F0%9F%98%80".to_owned(),
            400,
            "no_election",
        ),
        (
            "POST",
            format!("/reports/{}", "x".repeat(256)),
            400,
            "no_election",
        ),
        ("POST", "/reports/a/b".to_owned(), 404, "not_found"),
    ] {
        refused(&instance, method, &path, None, status, error).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_are_refused_and_change_nothing() {
    let server = Server::start().await;
    let instance = Instance::start(&server, "a").await;
    leader(&[&instance]).await;
    let before = holders(&instance.state().await, "scheduler");

    let resign = |name: &str| format!("{STATE}/{name}/resign");
    let token = Some(TOKEN);
    let wrong = Some("0123456789abcdeF");
    for (method, path, token, status, error) in [
        ("GET", STATE.to_owned(), None, 401, "unauthorized"),
        ("GET", STATE.to_owned(), Some(""), 401, "unauthorized"),
        ("GET", STATE.to_owned(), wrong, 403, "forbidden"),
        (
            "GET",
            STATE.to_owned(),
            Some("0123456789abcdef0"),
            403,
            "forbidden",
        ),
        ("POST", resign("scheduler"), None, 401, "unauthorized"),
        ("POST", resign("scheduler"), wrong, 403, "forbidden"),
        // Whoever has no token does not learn what there is.
        ("POST", resign("nobody"), None, 401, "unauthorized"),
        ("DELETE", STATE.to_owned(), None, 401, "unauthorized"),
        ("POST", resign("nobody"), token, 404, "unknown_name"),
        ("GET", format!("{STATE}/nobody"), token, 404, "unknown_name"),
        ("GET", format!("{STATE}/%FF%FE"), token, 404, "unknown_name"),
        (
            "GET",
            format!("{STATE}/{}", "x".repeat(4000)),
            token,
            404,
            "unknown_name",
        ),
        (
            "GET",
            format!("{STATE}/a%2Fb%0D%0A"),
            token,
            404,
            "unknown_name",
        ),
        (
            "POST",
            format!("{STATE}/scheduler/seize"),
            token,
            404,
            "not_found",
        ),
        ("GET", resign("scheduler"), token, 405, "method_not_allowed"),
        ("PUT", resign("scheduler"), token, 405, "method_not_allowed"),
        ("DELETE", STATE.to_owned(), token, 405, "method_not_allowed"),
        ("POST", resign("partner"), token, 409, "no_campaign"),
    ] {
        refused(&instance, method, &path, token, status, error).await;
    }

    // A name is found however it is spelled in the path, and a look without a body is a look.
    for (method, path) in [
        ("GET", "/%73cheduler"),
        ("HEAD", "/scheduler"),
        ("HEAD", ""),
    ] {
        let answer = instance
            .request(method, &format!("{STATE}{path}"), token)
            .await;
        assert_eq!(answer.status, 200, "{method} {path}");
        assert_eq!(answer.text.is_empty(), method == "HEAD", "{method} {path}");
    }

    let after = holders(&instance.state().await, "scheduler");
    assert_eq!(after.len(), 1);
    assert_eq!(after[0]["fence"], before[0]["fence"]);
    assert!(instance.leads().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_there_are_no_management_routes() {
    let server = Server::start().await;
    let instance = Instance::with(&server, "a", &[]).await;
    for (method, path) in [
        ("GET", STATE.to_owned()),
        ("POST", format!("{STATE}/scheduler/resign")),
    ] {
        for token in [None, Some(TOKEN), Some("")] {
            let answer = instance.request(method, &path, token).await;
            assert_eq!(answer.status, 404);
            assert_eq!(answer.json()["error"], "not_found");
        }
    }
}

#[tokio::test]
async fn a_weak_token_is_a_mistake_that_is_told_at_once() {
    let server = Server::start().await;
    let program = env!("CARGO_BIN_EXE_leader-axum-service");
    let url = server.url();
    for weak in ["MANAGEMENT_TOKEN=", "MANAGEMENT_TOKEN=short"] {
        let args = [weak, program, "127.0.0.1:0", &url];
        let process = leader_tests::Worker::spawn("env", &args);
        assert!(
            !process.exit(crate::support::LIMIT).await.success(),
            "{weak}"
        );
    }
}
