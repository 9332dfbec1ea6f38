//! Each setting can be moved, by keyboard and by typing, and what is out of range is refused with the range.

use leader_browser_tests::{Window, on_the_page};
use serde_json::json;
use thirtyfour::Key;

#[tokio::test]
async fn each_number_can_be_typed_and_is_kept_by_the_workbench() {
    on_the_page(&[], Window::WIDE, async |page| {
        let typed = [
            ("work_ms", "12"),
            ("lease_ms", "8.5"),
            ("wait_ms", "0"),
            ("min_lease_ms", "4"),
            ("pause_ms", "2"),
            ("slots", "3"),
            ("candidates", "6"),
        ];
        for (name, value) in typed {
            page.fill(&format!("{name}-number"), value).await;
            page.shows_setting(name, value).await;
        }
        page.count("#rows > [data-candidate]", 6).await;
        page.go_to("").await;
        for (name, value) in typed {
            page.value(&format!("{name}-number"), value).await;
        }
    })
    .await;
}

#[tokio::test]
async fn each_slider_moves_by_keyboard() {
    on_the_page(&[], Window::WIDE, async |page| {
        for (name, key, value) in [
            ("work_ms", Key::End, "20"),
            ("lease_ms", Key::End, "20"),
            ("wait_ms", Key::Home, "0"),
            ("min_lease_ms", Key::Home, "0"),
            ("pause_ms", Key::End, "20"),
            ("slots", Key::End, "4"),
            ("candidates", Key::End, "6"),
        ] {
            page.press(name, key).await;
            page.shows_setting(name, value).await;
            page.value(&format!("{name}-number"), value).await;
        }
    })
    .await;
}

#[tokio::test]
async fn each_switch_is_kept_by_the_workbench() {
    on_the_page(&[], Window::WIDE, async |page| {
        for name in ["auto_extend", "repeat"] {
            page.press(name, Key::Space).await;
            page.shows_setting(name, "false").await;
        }
        page.click("on_lost-notify").await;
        page.shows_setting("on_lost", "notify").await;
        page.go_to("").await;
        page.count(
            "#auto_extend:checked, #repeat:checked, #on_lost-cancel:checked",
            0,
        )
        .await;
        page.count("#on_lost-notify:checked", 1).await;
    })
    .await;
}

#[tokio::test]
async fn what_is_out_of_range_is_refused_with_the_range_and_changes_nothing() {
    on_the_page(&[], Window::WIDE, async |page| {
        for (name, value, told) in [
            ("lease_ms", "61", "Takes 0.01 s to 60.0 s"),
            ("work_ms", "-1", "Takes 0.00 s to 600.0 s"),
            ("slots", "5", "Takes 1 to 4"),
            ("candidates", "1", "Takes 2 to 6"),
            ("min_lease_ms", "7", "Takes 0.00 s to 6.00 s"),
        ] {
            page.fill(&format!("{name}-number"), value).await;
            page.says(&format!("{name}-refusal"), told).await;
            page.shows(&format!("{name}-number"), "aria-invalid", "true")
                .await;
        }
        // That is its place, and it is not said in another one as well.
        assert_eq!(page.find("problem").await.text().await.unwrap(), "");
        // What is wrong has another edge, too.
        let edges = "return ['slots', 'pause_ms'].map((name) => getComputedStyle(document.getElementById(`${name}-number`)).borderTopWidth)";
        assert_eq!(page.ask(edges).await, json!(["2px", "1px"]));
        page.shows_setting("lease_ms", "6").await;
        page.shows_setting("slots", "1").await;
        page.count("#rows > [data-candidate]", 3).await;
        page.fill("slots-number", "2").await;
        page.shows("slots-number", "aria-invalid", "false").await;
        page.shows_setting("slots", "2").await;
        // The browser tells the console of each answer that is an error.
        page.forgive().await;
    })
    .await;
}

#[tokio::test]
async fn what_another_setting_forbids_is_refused_where_it_was_asked_for() {
    on_the_page(&[], Window::WIDE, async |page| {
        // The minimum lease is a second: a lease cannot be shorter.
        page.fill("lease_ms-number", "0.5").await;
        page.says("lease_ms-refusal", "0.50 s was not taken").await;
        page.says("lease_ms-refusal", "“Min lease” takes 0.00 s to 0.50 s")
            .await;
        page.value("lease_ms-number", "6").await;
        page.shows("lease_ms-number", "aria-invalid", "false").await;
        page.press("lease_ms", Key::Home).await;
        page.says("lease_ms-refusal", "0.01 s was not taken").await;
        page.value("lease_ms", "6").await;
        page.shows_setting("lease_ms", "6").await;
        page.fill("min_lease_ms-number", "0").await;
        page.shows_setting("min_lease_ms", "0").await;
        page.fill("lease_ms-number", "0.5").await;
        page.shows_setting("lease_ms", "0.5").await;
        assert_eq!(
            page.find("lease_ms-refusal").await.text().await.unwrap(),
            ""
        );
        // The browser tells the console of each answer that is an error.
        page.forgive().await;
    })
    .await;
}

#[tokio::test]
async fn an_empty_box_is_no_number() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.fill("wait_ms-number", &Key::Backspace.value().to_string())
            .await;
        page.says("wait_ms-refusal", "Takes 0.00 s to 60.0 s").await;
        page.shows("wait_ms-number", "aria-invalid", "true").await;
        page.shows_setting("wait_ms", "2").await;
    })
    .await;
}

#[tokio::test]
async fn a_refusal_goes_when_another_page_has_changed_the_settings() {
    on_the_page(&[], Window::WIDE, async |page| {
        page.fill("slots-number", "5").await;
        page.says("slots-refusal", "Takes 1 to 4").await;
        page.ask(
            "const { post } = await import('/dom.js'); return await post('/api/settings', { slots: 2 })",
        )
        .await;
        page.value("slots-number", "2").await;
        page.shows("slots-number", "aria-invalid", "false").await;
        assert_eq!(page.find("slots-refusal").await.text().await.unwrap(), "");
        // The browser tells the console of each answer that is an error.
        page.forgive().await;
    })
    .await;
}
