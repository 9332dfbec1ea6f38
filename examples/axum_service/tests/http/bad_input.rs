//! Requests that are wrong: the right status, a JSON error, and nothing changed.

use leader_tests::Server;

use crate::support::{Instance, TOKEN, holders, leader};

const STATE: &str = "/management/leader-election";

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
        let what = format!("{method} {path} with {token:?}");
        let answer = instance.request(method, &path, token).await;
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
        assert_eq!(instance.request(method, &path, None).await.status, 404);
        assert_eq!(
            instance.request(method, &path, Some(TOKEN)).await.status,
            404
        );
        assert_eq!(instance.request(method, &path, Some("")).await.status, 404);
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
