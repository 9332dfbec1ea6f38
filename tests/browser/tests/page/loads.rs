//! The page loads, says what it is, and asks nobody but its own server for anything.

use leader_browser_tests::on_the_page;

#[tokio::test]
async fn it_loads_and_shows_its_candidates() {
    on_the_page(&[], (1280, 1000), async |page| {
        page.says("lock-name", "invoice-close").await;
        page.shows("mode-live", "aria-selected", "true").await;
        for id in ["a", "b", "c"] {
            page.shows(&format!("row-{id}"), "data-phase", "down").await;
        }
        page.picture("live").await;
    })
    .await;
}

#[tokio::test]
async fn everything_comes_from_its_own_server() {
    on_the_page(&[], (1280, 1000), async |page| {
        page.has("#row-a").await;
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
