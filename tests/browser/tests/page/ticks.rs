//! Deterministic mode on the page: play, pause, step, reset, and the same table as the text has.

use leader_browser_tests::{Page, Window, on_the_page, timeline};

const PLANS: [&str; 6] = [
    "contention",
    "expiry",
    "extension",
    "slots",
    "pause",
    "min-lease",
];

async fn in_ticks(page: &Page) {
    page.click("mode-ticks").await;
    page.shows("ticks-now", "data-tick", "-1").await;
}

#[tokio::test]
async fn each_plan_gives_the_table_that_the_text_gives() {
    on_the_page(&[], Window::WIDE, async |page| {
        in_ticks(page).await;
        for plan in PLANS {
            page.choose("plan", plan).await;
            page.shows("ticks-now", "data-tick", "-1").await;
            while page.attribute("ticks-now", "data-over").await.as_deref() != Some("true") {
                page.click("ticks-step").await;
            }
            let (shown, text) = (page.table("ticks-table").await, timeline(plan));
            assert_eq!(shown[1..], text[1..], "{plan}");
            let heads = shown[0].iter().map(|head| head.to_lowercase());
            assert_eq!(heads.collect::<Vec<_>>(), text[0], "{plan}");
            page.says("ticks-text", &format!("timeline -- {plan}"))
                .await;
            if plan == "expiry" {
                page.picture("ticks", "mode-live").await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_step_shows_one_tick_more_and_reset_none() {
    on_the_page(&[], Window::WIDE, async |page| {
        in_ticks(page).await;
        page.says("ticks-now", "before the first tick").await;
        page.count("#ticks-events tr", 0).await;
        for (tick, rows) in [(0, 1), (1, 2), (2, 2), (3, 3)] {
            page.click("ticks-step").await;
            page.shows("ticks-now", "data-tick", &tick.to_string())
                .await;
            page.count("#ticks-events tr", rows).await;
        }
        page.says("ticks-events", "skipped").await;
        page.click("ticks-reset").await;
        page.says("ticks-now", "before the first tick").await;
        page.count("#ticks-events tr", 0).await;
    })
    .await;
}

#[tokio::test]
async fn it_plays_by_itself_stands_still_when_paused_and_goes_on() {
    on_the_page(&[], Window::WIDE, async |page| {
        in_ticks(page).await;
        page.click("ticks-play").await;
        page.has("#ticks-events [data-tick='1']").await;
        page.click("ticks-play").await;
        page.says("ticks-play", "Play").await;
        let stood = page.attribute("ticks-now", "data-tick").await;
        page.click("ticks-step").await;
        let next = stood
            .and_then(|tick| tick.parse::<u32>().ok())
            .map(|tick| tick + 1);
        page.shows("ticks-now", "data-tick", &next.expect("a tick").to_string())
            .await;
        page.click("ticks-play").await;
        page.shows("ticks-now", "data-over", "true").await;
        page.says("ticks-now", "nothing more happens").await;
        page.says("ticks-play", "Play").await;
    })
    .await;
}

#[tokio::test]
async fn its_tables_are_korean_in_korean() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.click("lang-ko").await;
        in_ticks(page).await;
        for _ in 0..4 {
            page.click("ticks-step").await;
        }
        page.says("ticks-events", "건너뜀").await;
        page.says("plan-sentence", "후보").await;
    })
    .await;
}

#[tokio::test]
async fn the_line_stands_at_the_tick_that_is_said() {
    on_the_page(&[], Window::WIDE, async |page| {
        in_ticks(page).await;
        page.click("ticks-step").await;
        page.shows("ticks-now", "data-tick", "0").await;
        let places = "
            const label = [...document.querySelectorAll('#ticks-axis text')].findIndex((text) => text.textContent === '0');
            return [document.querySelector('#ticks-a-strip .now'), document.querySelectorAll('#ticks-axis line')[label]]
              .map((line) => line.getAttribute('x1'))";
        let places = page.ask(places).await;
        assert_eq!(places[0], places[1]);
    })
    .await;
}
