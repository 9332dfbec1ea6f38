//! What can be done to candidates and to their store, and what a person then sees. What is asserted is what comes and
//! stays; on a machine that is slow enough, who leads has ended its work by the time that the test comes to look.

use leader_browser_tests::{Page, Window, on_the_page};
use serde_json::json;

/// Starts everybody with long work and waits until one leads: who.
async fn with_a_leader(page: &Page) -> String {
    page.fill("work_ms-number", "600").await;
    page.fill("wait_ms-number", "60").await;
    // Each is a request of its own, which the start must not overtake.
    page.shows_setting("work_ms", "600").await;
    page.shows_setting("wait_ms", "60").await;
    page.click("start-all").await;
    the_leader(page, "").await
}

/// Waits until another than `but` leads: who.
async fn the_leader(page: &Page, but: &str) -> String {
    let selector = format!("#rows [data-phase=leading]:not([data-candidate='{but}'])");
    let leaders = page.has(&selector).await;
    let leader = leaders[0].attr("data-candidate").await;
    leader.ok().flatten().expect("a candidate")
}

#[tokio::test]
async fn one_leads_and_the_others_wait() {
    on_the_page(&[], Window::WIDE, async |page| {
        let leader = with_a_leader(page).await;
        page.shows(&format!("row-{leader}"), "data-phase", "leading")
            .await;
        page.shows("record-0", "data-owner", &leader).await;
        page.says("record-0", &leader).await;
        page.count("#rows [data-phase=waiting]", 2).await;
        page.count("#rows [data-phase=leading]", 1).await;
        page.has(&format!(
            "#writes [data-candidate={leader}][data-accepted=true]"
        ))
        .await;
        // By then there is something to be seen in the chart.
        page.has("#writes tr:nth-child(5)").await;
        page.picture("live", "candidates-section").await;
    })
    .await;
}

#[tokio::test]
async fn a_frozen_leader_is_succeeded_and_loses_its_lease_when_it_is_thawed() {
    on_the_page(&[], Window::WIDE, async |page| {
        let first = with_a_leader(page).await;
        page.click(&format!("{first}-freeze")).await;
        page.says(&format!("{first}-flags"), "frozen").await;
        the_leader(page, &first).await;
        page.says(&format!("{first}-freeze"), "Thaw").await;
        page.click(&format!("{first}-freeze")).await;
        page.has(&format!(
            "#events [data-candidate={first}][data-action=lost]"
        ))
        .await;
        page.shows(&format!("row-{first}"), "data-frozen", "false")
            .await;
    })
    .await;
}

#[tokio::test]
async fn a_killed_leader_is_succeeded_when_its_lease_has_ended() {
    on_the_page(&[], Window::WIDE, async |page| {
        let first = with_a_leader(page).await;
        page.click(&format!("{first}-kill")).await;
        page.says(&format!("{first}-state"), "not running").await;
        the_leader(page, &first).await;
        page.click(&format!("{first}-start")).await;
        page.has(&format!("#row-{first}:not([data-phase=down])"))
            .await;
    })
    .await;
}

#[tokio::test]
async fn a_leader_that_is_stopped_hands_over() {
    on_the_page(&[], Window::WIDE, async |page| {
        let first = with_a_leader(page).await;
        page.click(&format!("{first}-stop")).await;
        the_leader(page, &first).await;
        page.has(&format!(
            "#events [data-candidate={first}][data-action=released]"
        ))
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_leader_that_is_cut_off_loses_its_lease_and_another_is_elected() {
    on_the_page(&[], Window::WIDE, async |page| {
        let first = with_a_leader(page).await;
        page.click(&format!("{first}-cut")).await;
        page.says(&format!("{first}-flags"), "cut from the store")
            .await;
        page.has(&format!(
            "#events [data-candidate={first}][data-action=lost]"
        ))
        .await;
        the_leader(page, &first).await;
        page.says(&format!("{first}-cut"), "Reconnect").await;
        page.click(&format!("{first}-cut")).await;
        page.shows(&format!("row-{first}"), "data-cut", "false")
            .await;
    })
    .await;
}

#[tokio::test]
async fn a_store_that_stops_is_an_error_and_never_somebody_elses_lead() {
    on_the_page(&[], Window::WIDE, async |page| {
        let first = with_a_leader(page).await;
        page.click("store-stop").await;
        page.says("record", "The store does not answer").await;
        page.has(&format!(
            "#events [data-candidate={first}][data-action=lost]"
        ))
        .await;
        page.count("#events [data-action=skipped]", 0).await;
        page.count("#rows [data-phase=leading]", 0).await;
        page.says("store-stop", "Start the store").await;
        page.click("store-stop").await;
        page.has("#record [data-owner]").await;
    })
    .await;
}

#[tokio::test]
async fn a_store_that_has_lost_its_memory_elects_a_second_and_the_first_ones_writes_bounce() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("on_lost-notify").await;
        page.click("auto_extend").await;
        // Long enough that the first still believes in its own.
        page.fill("lease_ms-number", "60").await;
        page.shows_setting("lease_ms", "60").await;
        let first = with_a_leader(page).await;
        page.click("store-forget").await;
        the_leader(page, &first).await;
        page.shows(&format!("row-{first}"), "data-phase", "believes")
            .await;
        page.says(&format!("{first}-state"), "believes it leads")
            .await;
        page.has(&format!("#{first}-strip [data-kind=stale]")).await;
        page.count("#rows [data-phase=leading]", 1).await;
        page.has(&format!(
            "#writes [data-candidate={first}][data-accepted=false]"
        ))
        .await;
        page.says("events", "refused: token").await;
    })
    .await;
}

#[tokio::test]
async fn starting_over_leaves_nothing() {
    on_the_page(&[], Window::WIDE, async |page| {
        with_a_leader(page).await;
        page.click("reset").await;
        page.count("#rows [data-phase=down]", 3).await;
        page.says("record", "Nobody leads").await;
        page.value("work_ms-number", "3").await;
    })
    .await;
}

#[tokio::test]
async fn what_the_chart_keeps_does_not_grow_without_end() {
    on_the_page(&[], Window::WIDE, async |page| {
        let script = "
            const { Spans } = await import('/spans.js');
            const spans = new Spans();
            const add = (action, at_ms, more) => spans.add({ candidate: 'z', action, at_ms, ...more });
            add('cut', 0);
            for (let at = 0; at < 20_000_000; at += 1000) {
              add('elected', at, { fence: 1, remaining_ms: 100 });
              add('released', at + 500, { remaining_ms: 300 });
            }
            const { spans: kept, marks } = spans.row('z');
            return [kept.length, marks.length, kept.filter(({ kind }) => kind === 'cut').length]";
        assert_eq!(page.ask(script).await, json!([400, 400, 1]));
    })
    .await;
}

#[tokio::test]
async fn who_believes_is_drawn_so_for_the_tenure_that_is_meant_and_no_other() {
    on_the_page(&[], Window::WIDE, async |page| {
        let script = "
            const { Spans } = await import('/spans.js');
            const spans = new Spans();
            spans.add({ candidate: 'z', action: 'elected', at_ms: 0, fence: 2, remaining_ms: 9000 });
            const seen = (phase, fence) => {
              spans.believe([{ id: 'z', phase, fence, remaining_ms: 9000 }], 500);
              return spans.row('z').open.get('work').kind;
            };
            return [seen('believes', 1), seen('believes', 2), seen('leading', 3), seen('leading', 2)]";
        assert_eq!(
            page.ask(script).await,
            json!(["leading", "stale", "stale", "leading"])
        );
    })
    .await;
}

#[tokio::test]
async fn a_lease_of_no_known_length_is_drawn_as_one_that_is_over() {
    on_the_page(&[], Window::WIDE, async |page| {
        let script = "
            const { default: live, take } = await import('/live.js');
            const holder = { node_id: 'z', slot: 0, fence: 1, remaining_ms: 0, of_ms: 0, retained: false };
            take({ state: { ...live.state, record: { error: null, holders: [holder] } }, events: [], missed: 0 }, false);
            return document.querySelector('#record-0 path').getAttribute('d')";
        let path = page.ask(script).await;
        let path = path.as_str().expect("a path");
        assert!(path.ends_with(" 38.00 8.00"), "{path}");
    })
    .await;
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_said_once() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("store-stop").await;
        page.says("record", "The store does not answer").await;
        page.click("start-all").await;
        page.says("events", "store failed").await;
        let changes = "
            let told = 0;
            const within = (node) => node.closest?.('[role=status]') || node.querySelector?.('[role=status]');
            new MutationObserver((changes) => {
              told += changes.filter(({ target, addedNodes }) => [target, ...addedNodes].some(within)).length;
            }).observe(document.getElementById('record'), { childList: true, characterData: true, subtree: true });
            await new Promise((done) => setTimeout(done, 2000));
            return told";
        assert_eq!(page.ask(changes).await, 0);
    })
    .await;
}
