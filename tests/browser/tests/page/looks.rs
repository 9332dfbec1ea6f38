//! The page in narrow and wide windows, in the dark, and for who uses a keyboard or hears it.

use leader_browser_tests::{Page, Window, on_the_page};
use leader_tests::Server;
use serde_json::json;
use thirtyfour::Key;

/// Nothing sticks out to the right of the page or of a card, so nobody has to scroll sideways but in a region for it, which
/// a keyboard reaches.
async fn fits(page: &Page, when: &str) {
    let sticking_out = "
        const wide = (element) => element.scrollWidth > element.clientWidth;
        const cards = [document.documentElement, ...document.querySelectorAll('section')];
        const regions = [...document.querySelectorAll('main *')].filter((element) =>
          ['auto', 'scroll'].includes(getComputedStyle(element).overflowX));
        const unreached = regions.filter((region) => region.tabIndex !== 0 || region.getAttribute('role') !== 'region');
        return [...cards.filter(wide), ...unreached].map((element) =>
          `${element.localName} ${element.id} ${element.className}: ${element.scrollWidth} of ${element.clientWidth}`)";
    assert_eq!(page.ask(sticking_out).await, json!([]), "{when}");
}

/// With a leader and a write of it, in both languages and modes.
async fn fits_everywhere(arguments: &[&str]) {
    on_the_page(arguments, Window::NARROW, async |page| {
        page.click("start-all").await;
        page.has("#rows [data-phase=leading]").await;
        page.has("#writes [data-accepted=true]").await;
        page.fill("work_ms-number", "600").await;
        page.fill("candidates-number", "6").await;
        page.count("#rows > [data-candidate]", 6).await;
        for language in ["lang-en", "lang-ko"] {
            page.click(language).await;
            for mode in ["mode-ticks", "mode-live"] {
                page.click(mode).await;
                for width in [360, 768, 1280, 1920] {
                    page.resize(width, 900).await;
                    if mode == "mode-live" {
                        page.has("#record [data-owner]").await;
                    }
                    fits(page, &format!("{language} {mode} {width}")).await;
                }
            }
        }
        page.click("lang-en").await;
        page.resize(390, 900).await;
        page.picture("narrow", "candidates-section").await;
    })
    .await;
}

#[tokio::test]
async fn it_fits_a_phone_a_tablet_and_a_desk() {
    fits_everywhere(&[]).await;
}

#[tokio::test]
async fn it_fits_with_the_long_fencing_tokens_of_a_server_too() {
    let server = Server::start().await;
    fits_everywhere(&["--redis", &server.url()]).await;
}

#[tokio::test]
async fn the_scale_is_as_wide_as_what_it_measures() {
    let widths = "
        return [...document.querySelectorAll('.strip[id]')].filter((strip) => strip.checkVisibility())
          .map((strip) => strip.clientWidth).filter((width, at, all) => all.indexOf(width) === at).length";
    on_the_page(&[], Window::WIDE, async |page| {
        for mode in ["mode-live", "mode-ticks"] {
            page.click(mode).await;
            for width in [360, 768, 1280, 1920] {
                page.resize(width, 900).await;
                assert_eq!(page.ask(widths).await, 1, "{mode} {width}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn it_is_dark_where_people_want_it_dark() {
    let background = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)";
    let brightness = async |page: &Page| {
        let parts = page.ask(background).await;
        let parts: Vec<u64> = serde_json::from_value(parts).expect("three numbers");
        parts.iter().sum::<u64>() / 3
    };
    on_the_page(&[], Window::WIDE, async |page| {
        assert!(brightness(page).await > 200);
    })
    .await;
    on_the_page(&[], Window::DARK, async |page| {
        assert!(brightness(page).await < 60);
        page.click("start-all").await;
        page.has("#rows [data-phase=leading]").await;
        // By then there is something to be seen in the chart.
        page.has("#writes tr:nth-child(5)").await;
        page.picture("dark", "candidates-section").await;
    })
    .await;
}

#[tokio::test]
async fn whatever_can_be_used_has_a_name() {
    let nameless = "
        // What stands in a button names it; what stands in these does not.
        const holds = (element) => ['group', 'region', 'img'].includes(element.getAttribute('role'));
        const named = (element) =>
          element.getAttribute('aria-label') || (!holds(element) && element.textContent.trim()) || element.labels?.length
          || (element.getAttribute('aria-labelledby') ?? '').split(' ').some((id) => document.getElementById(id)?.textContent.trim());
        return [...document.querySelectorAll('button, input, select, [role=img], [role=group], [role=region], [role=tab]')]
          .filter((element) => element.checkVisibility() && !named(element)).map((element) => element.outerHTML)";
    let twice = "
        const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
        return ids.filter((id, at) => ids.indexOf(id) !== at)";
    on_the_page(&[], Window::WIDE, async |page| {
        page.find("c-kill").await;
        page.find("repeat").await;
        page.find("scenario-slots").await;
        for mode in ["mode-live", "mode-ticks"] {
            page.click(mode).await;
            assert_eq!(page.ask(nameless).await, json!([]), "{mode}");
            assert_eq!(page.ask(twice).await, json!([]));
        }
    })
    .await;
}

#[tokio::test]
async fn it_can_be_used_by_keyboard_alone() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.press("start-all", Key::Enter).await;
        page.has("#rows [data-phase=leading]").await;
        page.press("mode-live", Key::Right).await;
        page.shows("mode-ticks", "aria-selected", "true").await;
        assert_eq!(
            page.ask("return document.activeElement.id").await,
            "mode-ticks"
        );
        page.press("ticks-step", Key::Space).await;
        page.shows("ticks-now", "data-tick", "0").await;
        page.press("mode-ticks", Key::Left).await;
        page.shows("mode-live", "aria-selected", "true").await;
        // What is important is said as well.
        page.says_unseen("announce", "was elected with fencing token")
            .await;
    })
    .await;
}
