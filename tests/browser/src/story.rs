//! A story: a workbench, a page that looks at it, and their end, however the story ends.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;

use crate::{Page, Window};

/// Runs a story on the page of a workbench that was started with `arguments`, and ends both.
///
/// # Panics
///
/// With the story; or when it went well, and the page has told the browser's console of an error.
pub async fn on_the_page(arguments: &[&str], window: Window, story: impl AsyncFnOnce(&Page)) {
    let page = Page::open(arguments, window).await;
    let told = AssertUnwindSafe(story(&page)).catch_unwind().await;
    let complaints = page.complaints().await;
    if told.is_err() {
        page.keep_what_was_seen().await;
    }
    page.quit().await;
    if let Err(panic) = told {
        eprintln!("the browser's console: {complaints:#?}");
        resume_unwind(panic);
    }
    assert!(
        complaints.is_empty(),
        "the browser's console: {complaints:#?}"
    );
}
