//! [`Page`]: the workbench in a browser, with verbs for what a person does and sees.

use std::env;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::FutureExt;
use leader_tests::{Worker, until};
use thirtyfour::{By, Key, WebElement};

use crate::Browser;

/// Far more than anything on the page takes, also on a machine with much else to do.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs a story on the page of a workbench that was started with `arguments`, in a window of `size`, and ends both.
///
/// # Panics
///
/// With the story, or when the page told the browser's console of an error.
pub async fn on_the_page(arguments: &[&str], size: (u32, u32), story: impl AsyncFnOnce(&Page)) {
    let page = Page::open(arguments, size).await;
    let mut told = AssertUnwindSafe(story(&page)).catch_unwind().await;
    if told.is_err() {
        page.keep_what_was_seen().await;
    } else {
        // A story that went well on a page that complained has not gone well.
        told = AssertUnwindSafe(page.has_no_complaint())
            .catch_unwind()
            .await;
    }
    page.browser.quit().await;
    if let Err(panic) = told {
        resume_unwind(panic);
    }
}

/// A workbench's page. What it shows is found by id.
#[derive(Debug)]
pub struct Page {
    browser: Browser,
    _workbench: Worker,
    address: String,
}

impl Page {
    async fn open(arguments: &[&str], size: (u32, u32)) -> Self {
        let program = example("workbench");
        let mut workbench = Worker::spawn(
            &program.display().to_string(),
            &[&["--listen", "127.0.0.1:0"], arguments].concat(),
        );
        let line = workbench.wait_for_line("workbench: open ", LIMIT).await;
        let address = line.split(' ').nth(2).expect("an address").to_owned();
        let page = Self {
            browser: Browser::start(size).await,
            _workbench: workbench,
            address,
        };
        page.go_to("").await;
        page
    }

    /// Goes to the page with this query, `?lang=ko` say, and waits until it is connected to the workbench.
    pub async fn go_to(&self, query: &str) {
        let address = format!("{}{query}", self.address);
        let gone = self.browser.driver().goto(address).await;
        gone.expect("the browser goes to the page");
        self.shows("connection", "data-connected", "true").await;
    }

    /// Where the page is.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The element of that id, as soon as there is one.
    pub async fn find(&self, id: &str) -> WebElement {
        let what = format!("the page has `{id}`");
        leader_tests::until_some(&what, LIMIT, async || {
            self.browser.driver().find(By::Id(id)).await.ok()
        })
        .await
    }

    /// The text of that element, as it is shown.
    pub async fn text(&self, id: &str) -> String {
        self.find(id).await.text().await.unwrap_or_default()
    }

    /// The value of an attribute of that element.
    pub async fn attribute(&self, id: &str, attribute: &str) -> Option<String> {
        let element = self.find(id).await;
        element.attr(attribute).await.ok().flatten()
    }

    /// Waits until that element has this value of an attribute.
    pub async fn shows(&self, id: &str, attribute: &str, value: &str) {
        let what = format!("`{id}` has {attribute}={value:?}");
        until(&what, LIMIT, async || {
            self.attribute(id, attribute).await.as_deref() == Some(value)
        })
        .await;
    }

    /// Waits until the text of that element has `part` in it.
    pub async fn says(&self, id: &str, part: &str) {
        let what = format!("`{id}` says {part:?}");
        until(&what, LIMIT, async || self.text(id).await.contains(part)).await;
    }

    /// Clicks on it, as soon as it can be.
    pub async fn click(&self, id: &str) {
        let what = format!("`{id}` can be clicked");
        until(&what, LIMIT, async || {
            let element = self.find(id).await;
            let enabled = element.is_enabled().await.unwrap_or(false);
            enabled && element.click().await.is_ok()
        })
        .await;
    }

    /// Types `text` in place of what is in that field, and leaves it.
    pub async fn fill(&self, id: &str, text: &str) {
        let field = self.find(id).await;
        let all = Key::Control + "a";
        field.send_keys(all).await.expect("the field takes keys");
        let typed = field.send_keys(text.to_owned() + Key::Tab).await;
        typed.expect("the field takes keys");
    }

    /// Presses a key on that element.
    pub async fn press(&self, id: &str, key: Key) {
        let pressed = self.find(id).await.send_keys(key + "").await;
        pressed.expect("the element takes keys");
    }

    /// The elements that a CSS selector of ids, roles and data finds.
    pub async fn all(&self, selector: &str) -> Vec<WebElement> {
        let found = self.browser.driver().find_all(By::Css(selector)).await;
        found.unwrap_or_default()
    }

    /// Waits until something on the page fits the selector.
    pub async fn has(&self, selector: &str) {
        let what = format!("the page has {selector}");
        until(&what, LIMIT, async || !self.all(selector).await.is_empty()).await;
    }

    /// What a script of the test's own returns.
    ///
    /// # Panics
    ///
    /// When it fails.
    pub async fn ask(&self, script: &str) -> serde_json::Value {
        let answer = self.browser.driver().execute(script, Vec::new()).await;
        answer.expect("the script runs").json().clone()
    }

    /// Gives the window another size.
    pub async fn resize(&self, width: u32, height: u32) {
        let resized = self.browser.driver().set_window_rect(0, 0, width, height);
        resized.await.expect("the window can be resized");
    }

    /// Keeps a picture of the window, if `LEADER_SCREENSHOTS` names a folder for them.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub async fn picture(&self, name: &str) {
        if let Some(folder) = env::var_os("LEADER_SCREENSHOTS") {
            let path = PathBuf::from(folder).join(name).with_extension("png");
            let taken = self.browser.driver().screenshot(&path).await;
            taken.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    async fn keep_what_was_seen(&self) {
        let path = env::temp_dir().join(format!("leader-page-{}.png", std::process::id()));
        if self.browser.driver().screenshot(&path).await.is_ok() {
            eprintln!("what the page showed is in {}", path.display());
        }
        let body = self.browser.driver().find(By::Tag("body")).await;
        if let Ok(body) = body {
            eprintln!("{}", body.text().await.unwrap_or_default());
        }
        eprintln!("the console: {:?}", self.complaints().await);
    }

    /// What the page told the browser's console as an error.
    async fn complaints(&self) -> Vec<String> {
        let log = self
            .browser
            .driver()
            .browser_log()
            .await
            .unwrap_or_default();
        log.into_iter()
            .filter(|entry| entry.level == "SEVERE")
            .map(|entry| entry.message)
            .collect()
    }

    async fn has_no_complaint(&self) {
        let complaints = self.complaints().await;
        assert!(
            complaints.is_empty(),
            "the browser's console: {complaints:#?}"
        );
    }
}

/// The program that `cargo build --examples` has made of that example.
fn example(name: &str) -> PathBuf {
    let own = env::current_exe().expect("a test has a path");
    let target = own.ancestors().nth(2).unwrap_or(Path::new(""));
    let program = target.join("examples").join(name);
    assert!(
        program.is_file(),
        "there is no {}; `cargo xtask browser` builds it",
        program.display()
    );
    program
}
