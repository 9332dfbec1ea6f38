//! Each story is played with its button, in real time, and its table tells what it is about. What is asserted is what
//! stays: who leads in the end may have ended its work by the time that a busy machine comes to look.

use std::time::Duration;

use leader_browser_tests::{Event, Page, Window, on_the_page};

/// The longest of them takes a third of it.
const LONGEST: Duration = Duration::from_secs(90);

/// Plays a story to its end: its events, the oldest first.
async fn played(page: &Page, name: &str) -> Vec<Event> {
    page.click(&format!("scenario-{name}")).await;
    page.shows("scenario-status", "data-scenario", name).await;
    page.shows(&format!("scenario-{name}"), "aria-pressed", "true")
        .await;
    page.shows_within(LONGEST, "scenario-status", "data-over", "true")
        .await;
    page.says("scenario-progress", "over").await;
    page.events().await
}

/// The events have these in this order, whatever comes between.
fn in_order(events: &[Event], expected: &[(&str, &str)]) {
    let mut rest = events.iter();
    for (candidate, action) in expected {
        let found = rest.any(|event| event.candidate == *candidate && event.action == *action);
        assert!(found, "{candidate} {action}, of {expected:?}: {events:#?}");
    }
}

fn never(events: &[Event], candidate: &str, action: &str) {
    let found = |event: &&Event| event.candidate == candidate && event.action == action;
    assert_eq!(events.iter().find(found), None, "{events:#?}");
}

/// The fencing token with which `candidate` was elected.
fn token(events: &[Event], candidate: &str) -> u64 {
    let elected = |event: &&Event| event.candidate == candidate && event.action == "elected";
    let elected = events.iter().find(elected).expect("it was elected");
    elected.fence.expect("a fencing token")
}

#[tokio::test]
async fn contention() {
    on_the_page(&[], Window::WIDE, async |page| {
        let events = played(page, "contention").await;
        in_order(
            &events,
            &[
                ("a", "elected"),
                ("b", "stands"),
                ("b", "skipped"),
                ("a", "released"),
                ("c", "elected"),
            ],
        );
        never(&events, "b", "elected");
        never(&events, "a", "lost");
        assert!(token(&events, "c") > token(&events, "a"));
        page.says("scenario-caption", "c was elected").await;
        page.says("events", "a leads").await;
    })
    .await;
}

#[tokio::test]
async fn expiry_and_re_election_with_a_stale_owner() {
    on_the_page(&[], Window::WIDE, async |page| {
        let events = played(page, "stale-owner").await;
        in_order(
            &events,
            &[("a", "elected"), ("b", "elected"), ("c", "elected")],
        );
        // Who loses sees it a moment before the next is elected, and either may be late to tell.
        in_order(&events, &[("a", "elected"), ("a", "lost")]);
        in_order(&events, &[("b", "elected"), ("b", "lost")]);
        in_order(&events, &[("b", "elected"), ("a", "release")]);
        assert!(
            token(&events, "a") < token(&events, "b") && token(&events, "b") < token(&events, "c")
        );
        let release = |event: &&Event| event.candidate == "a" && event.action == "release";
        let release = events.iter().find(release).expect("a's late release");
        assert!(release.result.contains("refused as stale"), "{release:?}");
        let bounced =
            |event: &&Event| event.candidate == "a" && event.result.contains("refused: token");
        assert!(events.iter().any(|event| bounced(&event)), "{events:#?}");
    })
    .await;
}

#[tokio::test]
async fn automatic_extension() {
    on_the_page(&[], Window::WIDE, async |page| {
        let events = played(page, "extension").await;
        in_order(
            &events,
            &[
                ("a", "elected"),
                ("a", "extended"),
                ("b", "skipped"),
                ("a", "extended"),
                ("c", "skipped"),
                ("a", "released"),
            ],
        );
        never(&events, "a", "lost");
        never(&events, "b", "elected");
        never(&events, "c", "elected");
    })
    .await;
}

#[tokio::test]
async fn capacity_and_saturation_with_slots() {
    on_the_page(&[], Window::WIDE, async |page| {
        let events = played(page, "slots").await;
        in_order(
            &events,
            &[
                ("a", "elected"),
                ("b", "elected"),
                ("d", "skipped"),
                ("c", "elected"),
            ],
        );
        // The release wakes c before a has told of it.
        in_order(&events, &[("d", "skipped"), ("a", "released")]);
        assert!(token(&events, "c") > token(&events, "a"));
        never(&events, "d", "elected");
        let slots: Vec<_> = events
            .iter()
            .filter(|event| event.action == "elected")
            .map(|event| (event.candidate.as_str(), event.result.as_str()))
            .collect();
        let expected = [
            ("a", "leads in slot 0"),
            ("b", "leads in slot 1"),
            ("c", "leads in slot 0"),
        ];
        assert_eq!(slots, expected);
    })
    .await;
}

#[tokio::test]
async fn the_paused_leader_and_the_fencing_token() {
    on_the_page(&[], Window::WIDE, async |page| {
        let events = played(page, "paused-leader").await;
        in_order(
            &events,
            &[
                ("a", "elected"),
                ("a", "frozen"),
                ("b", "elected"),
                ("a", "thawed"),
                ("a", "write"),
            ],
        );
        in_order(&events, &[("a", "thawed"), ("a", "lost")]);
        let bounced = |event: &&Event| event.candidate == "a" && event.result.contains("refused");
        let bounced = events.iter().find(bounced).expect("a write that bounced");
        let (stale, seen) = (token(&events, "a"), token(&events, "b"));
        assert_eq!(bounced.fence, Some(stale));
        assert!(bounced.result.contains(&seen.to_string()), "{bounced:?}");
        page.shows("seen-0", "data-seen", &seen.to_string()).await;
        page.picture("paused-leader", "scenario-status").await;
    })
    .await;
}

#[tokio::test]
async fn failover() {
    on_the_page(&[], Window::WIDE, async |page| {
        let events = played(page, "failover").await;
        in_order(
            &events,
            &[("a", "elected"), ("b", "elected"), ("a", "lost")],
        );
        assert!(token(&events, "a") < token(&events, "b"));
        let bounced =
            |event: &&Event| event.candidate == "a" && event.result.contains("refused: token");
        assert!(events.iter().any(|event| bounced(&event)), "{events:#?}");
    })
    .await;
}

#[tokio::test]
async fn failover_with_replica_ack() {
    on_the_page(&[], Window::WIDE, async |page| {
        let events = played(page, "failover-replica-ack").await;
        in_order(&events, &[("a", "stands"), ("b", "elected")]);
        never(&events, "a", "elected");
        page.says("events", "too few replicas have it").await;
    })
    .await;
}

#[tokio::test]
async fn a_story_can_be_ended_and_another_begun() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("scenario-extension").await;
        page.shows("row-a", "data-phase", "leading").await;
        page.click("scenario-end").await;
        page.count("#scenario-status:not([hidden])", 0).await;
        assert_eq!(
            page.ask("return document.activeElement.id").await,
            "scenario-extension"
        );
        page.says("a-state", "not running").await;
        page.click("scenario-contention").await;
        page.shows("scenario-status", "data-scenario", "contention")
            .await;
        page.shows("row-a", "data-phase", "leading").await;
    })
    .await;
}
