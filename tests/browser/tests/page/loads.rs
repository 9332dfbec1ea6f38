//! The page loads, says what it is, and asks nobody but its own server for anything.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use leader_browser_tests::{Page, Window, on_the_page};
use leader_tests::until;

#[tokio::test]
async fn it_loads_and_shows_its_candidates() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.says("lock-name", "invoice-close").await;
        page.says("intro", "Several candidates stand for election")
            .await;
        page.says("record", "Nobody leads").await;
        page.shows("mode-live", "aria-selected", "true").await;
        for id in ["a", "b", "c"] {
            page.says(&format!("{id}-state"), "not running").await;
        }
    })
    .await;
}

#[tokio::test]
async fn another_name_and_a_quorum_are_said() {
    let arguments = ["--name", "order-feed", "--quorum"];
    on_the_page(&arguments, Window::WIDE, async |page| {
        page.says("lock-name", "order-feed").await;
        page.says("store-kind", "Five stores in memory").await;
        for node in 0..5 {
            page.says(&format!("node-{node}"), "answers").await;
        }
        // Two may be gone, three may not.
        page.click("start-all").await;
        page.has("#rows [data-phase=leading]").await;
        for node in 0..2 {
            page.click(&format!("node-{node}-stop")).await;
            page.says(&format!("node-{node}"), "stopped").await;
        }
        page.has("#record [data-owner]").await;
        page.click("node-2-stop").await;
        page.says("record", "The store does not answer").await;
        page.click("node-2-stop").await;
        page.has("#record [data-owner]").await;
    })
    .await;
}

#[tokio::test]
async fn everything_comes_from_its_own_server() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.find("row-a").await;
        let fetched = page
            .ask("return performance.getEntriesByType('resource').map((entry) => entry.name)")
            .await;
        let fetched = fetched.as_array().expect("a list");
        assert!(fetched.len() > 3, "{fetched:?}");
        for name in fetched {
            let name = name.as_str().unwrap_or_default();
            assert!(name.starts_with(page.address()), "{name}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_language_changes_in_place_and_stays_in_the_address() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("start-all").await;
        page.says("events", "elected").await;
        page.click("lang-ko").await;
        page.says("candidates-title", "후보").await;
        page.says("events", "선출").await;
        page.shows("lang-ko", "aria-pressed", "true").await;
        assert_eq!(page.ask("return document.documentElement.lang").await, "ko");
        page.go_to("?lang=ko").await;
        page.says("candidates-title", "후보").await;
        page.click("lang-en").await;
        page.says("candidates-title", "Candidates for").await;
    })
    .await;
}

#[tokio::test]
async fn a_workbench_that_is_gone_is_said() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.says("connection", "connected").await;
        page.end_the_workbench().await;
        page.shows("connection", "data-connected", "false").await;
        page.says("connection", "trying again").await;
        // Rightly, the browser says that it cannot connect.
        page.forgive().await;
    })
    .await;
}

#[tokio::test]
async fn it_is_connected_when_it_knows_what_it_shows() {
    on_the_page(&[], Window::WIDE, async |page| {
        let knows = "return (await import('/live.js')).default.state !== null";
        for _ in 0..5 {
            page.go_to("").await;
            assert_eq!(page.ask(knows).await, true);
        }
    })
    .await;
}

/// Asks for the workbench's events, as one more page: the stream, and whether it is one.
fn listen(page: &Page) -> (TcpStream, bool) {
    let host = page.address().trim_start_matches("http://");
    let host = host.trim_end_matches('/');
    let mut stream = TcpStream::connect(host).expect("the workbench listens");
    write!(stream, "GET /api/events HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("it is asked");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("it answers");
    let heard = status.ends_with(b"200");
    (stream, heard)
}

#[tokio::test]
async fn one_page_too_many_is_told_so() {
    on_the_page(&[], Window::WIDE, async |page| {
        // This page gives its place back, and others take all there are.
        page.ask("location.href = '/api/state'").await;
        let mut others = Vec::new();
        let mut refused = 0;
        while refused < 20 {
            let (stream, heard) = listen(page);
            if heard {
                others.push(stream);
                refused = 0;
            } else {
                refused += 1;
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        page.ask("location.href = '/'").await;
        page.says("connection", "too many pages are open").await;
        page.click("lang-ko").await;
        page.says("connection", "열린 페이지가 너무 많습니다").await;
        drop(others);
        page.shows("connection", "data-connected", "true").await;
        // The browser tells the console of each answer that is an error.
        page.forgive().await;
    })
    .await;
}

#[tokio::test]
async fn what_was_missed_is_said_for_a_while() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.ask(
            "const { default: live, take } = await import('/live.js');
             take({ state: live.state, events: [], missed: 7 }, true)",
        )
        .await;
        page.says("missed", "missed 7 events").await;
        let silent = "return document.getElementById('missed').textContent === ''";
        until(
            "nothing is said any more",
            Duration::from_secs(30),
            async || page.ask(silent).await == true,
        )
        .await;
    })
    .await;
}

#[tokio::test]
async fn without_scripts_it_says_in_both_languages_that_it_needs_them() {
    on_the_page(&[], Window::WIDE, async |page| {
        let said = "return document.querySelector('noscript')?.textContent ?? ''";
        let said = page.ask(said).await;
        let said = said.as_str().unwrap_or_default();
        for part in ["needs JavaScript", "JavaScript가 필요합니다"] {
            assert!(said.contains(part), "{said}");
        }
    })
    .await;
}
