//! [`Page`]: the workbench in a browser, with verbs for what a person does and sees.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use leader_tests::{Worker, until, until_some};
use serde_json::Value;
use thirtyfour::{By, Key, WebElement};

use crate::programs::example;
use crate::{Browser, Window};

/// Far more than anything on the page takes, also on a machine with much else to do.
const LIMIT: Duration = Duration::from_secs(60);

/// A row of the live table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whom it is about, `store` for the store.
    pub candidate: String,
    /// What happened, as the page's data calls it.
    pub action: String,
    /// The fencing token that is shown.
    pub fence: Option<u64>,
    /// The result that is shown.
    pub result: String,
}

/// A workbench's page. What it shows is found by id.
#[derive(Debug)]
pub struct Page {
    browser: Browser,
    workbench: Worker,
    address: String,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "each verb panics when what it asks for does not come; said once, at the first"
)]
impl Page {
    pub(crate) async fn open(arguments: &[&str], window: Window) -> Self {
        let program = example("workbench").display().to_string();
        let arguments = [&["--listen", "127.0.0.1:0"], arguments].concat();
        let mut workbench = Worker::spawn(&program, &arguments);
        let line = workbench.wait_for_line("workbench: open ", LIMIT).await;
        let page = Self {
            browser: Browser::start(window).await,
            workbench,
            address: line.split(' ').nth(2).expect("an address").to_owned(),
        };
        page.go_to("").await;
        page
    }

    /// Goes to the page with this query, `?lang=ko` say, and waits until it hears from the workbench.
    ///
    /// # Panics
    ///
    /// When the browser cannot go there; as all verbs do when what they wait for does not come.
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

    /// Ends the workbench, as Ctrl-C does.
    pub async fn end_the_workbench(&self) {
        self.workbench.interrupt();
        self.workbench.exit(LIMIT).await;
    }

    pub(crate) async fn quit(self) {
        self.browser.quit().await;
    }

    /// The element of that id, as soon as there is one.
    pub async fn find(&self, id: &str) -> WebElement {
        until_some(&format!("the page has `{id}`"), LIMIT, async || {
            self.browser.driver().find(By::Id(id)).await.ok()
        })
        .await
    }

    /// The elements that a selector of ids, roles and data finds, as soon as there are some.
    pub async fn has(&self, selector: &str) -> Vec<WebElement> {
        until_some(&format!("the page has {selector}"), LIMIT, async || {
            Some(self.all(selector).await).filter(|found| !found.is_empty())
        })
        .await
    }

    /// Waits until the selector finds so many elements.
    pub async fn count(&self, selector: &str, count: usize) {
        let what = format!("the page has {count} of {selector}");
        until(&what, LIMIT, async || {
            self.all(selector).await.len() == count
        })
        .await;
    }

    async fn all(&self, selector: &str) -> Vec<WebElement> {
        let found = self.browser.driver().find_all(By::Css(selector)).await;
        found.unwrap_or_default()
    }

    /// The value of an attribute of that element.
    pub async fn attribute(&self, id: &str, attribute: &str) -> Option<String> {
        let element = self.find(id).await;
        element.attr(attribute).await.ok().flatten()
    }

    /// Waits until that element has this value of an attribute.
    pub async fn shows(&self, id: &str, attribute: &str, value: &str) {
        self.shows_within(LIMIT, id, attribute, value).await;
    }

    /// As [`shows`](Self::shows), for what takes its time.
    pub async fn shows_within(&self, limit: Duration, id: &str, attribute: &str, value: &str) {
        let what = format!("`{id}` has {attribute}={value:?}");
        until(&what, limit, async || {
            self.attribute(id, attribute).await.as_deref() == Some(value)
        })
        .await;
    }

    /// Waits until the text that is shown of that element has `part` in it.
    pub async fn says(&self, id: &str, part: &str) {
        until(&format!("`{id}` says {part:?}"), LIMIT, async || {
            let text = self.find(id).await.text().await;
            text.unwrap_or_default().contains(part)
        })
        .await;
    }

    /// As [`says`](Self::says), of an element that is only heard.
    pub async fn says_unseen(&self, id: &str, part: &str) {
        let script = format!("return document.getElementById('{id}').textContent");
        until(&format!("`{id}` says {part:?}"), LIMIT, async || {
            let text = self.ask(&script).await;
            text.as_str().unwrap_or_default().contains(part)
        })
        .await;
    }

    /// Waits until that field has this value.
    pub async fn value(&self, id: &str, value: &str) {
        until(
            &format!("`{id}` has the value {value:?}"),
            LIMIT,
            async || {
                let shown = self.find(id).await.prop("value").await;
                shown.ok().flatten().as_deref() == Some(value)
            },
        )
        .await;
    }

    /// Waits until the workbench has taken a setting, as another page would see it.
    pub async fn shows_setting(&self, name: &str, value: &str) {
        let script = format!(
            "const setting = (await (await fetch('/api/state')).json()).state.settings['{name}'];
             return String('{name}'.endsWith('_ms') ? setting / 1000 : setting)"
        );
        until(&format!("`{name}` is set to {value}"), LIMIT, async || {
            self.ask(&script).await == value
        })
        .await;
    }

    /// Clicks on it, as soon as it can be.
    pub async fn click(&self, id: &str) {
        until(&format!("`{id}` can be clicked"), LIMIT, async || {
            let element = self.find(id).await;
            let enabled = element.is_enabled().await.unwrap_or(false);
            enabled && element.click().await.is_ok()
        })
        .await;
    }

    /// Types `text` in place of what is in that field, and leaves it.
    pub async fn fill(&self, id: &str, text: &str) {
        let field = self.find(id).await;
        for keys in [Key::Control + "a", text + Key::Tab] {
            let typed = field.send_keys(keys).await;
            typed.expect("the field takes keys");
        }
    }

    /// Presses a key on that element.
    pub async fn press(&self, id: &str, key: Key) {
        let pressed = self.find(id).await.send_keys(key + "").await;
        pressed.expect("the element takes keys");
    }

    /// Chooses an option of a list, by its value.
    pub async fn choose(&self, id: &str, value: &str) {
        let options = self.has(&format!("#{id} option[value='{value}']")).await;
        let chosen = options[0].click().await;
        chosen.expect("the option can be chosen");
    }

    /// What a script of the test's own returns.
    pub async fn ask(&self, script: &str) -> Value {
        let answer = self.browser.driver().execute(script, Vec::new()).await;
        answer.expect("the script runs").json().clone()
    }

    /// The rows of a table as they are shown, its head among them.
    pub async fn table(&self, id: &str) -> Vec<Vec<String>> {
        let script = format!(
            "return [...document.getElementById('{id}').rows].map((row) =>
               [...row.cells].filter((cell) => cell.checkVisibility()).map((cell) => cell.innerText))"
        );
        serde_json::from_value(self.ask(&script).await).expect("rows of text")
    }

    /// The rows of the live table as they are shown, the oldest first.
    pub async fn events(&self) -> Vec<Event> {
        let script = "return [...document.getElementById('events').rows].reverse().map((row) =>
            [row.dataset.candidate, row.dataset.action, row.cells[3].innerText, row.cells[5].innerText])";
        let rows: Vec<[String; 4]> =
            serde_json::from_value(self.ask(script).await).expect("rows of text");
        rows.into_iter()
            .map(|[candidate, action, fence, result]| Event {
                candidate,
                action,
                fence: fence.parse().ok(),
                result,
            })
            .collect()
    }

    /// Gives the window another size.
    pub async fn resize(&self, width: u32, height: u32) {
        let resized = self.browser.driver().set_window_rect(0, 0, width, height);
        resized.await.expect("the window can be resized");
    }

    /// Keeps a picture of the window, in which the page is seen from this element on, if `LEADER_SCREENSHOTS` names a
    /// folder for them.
    pub async fn picture(&self, name: &str, from: &str) {
        if let Some(folder) = env::var_os("LEADER_SCREENSHOTS") {
            let path = PathBuf::from(folder).join(name).with_extension("png");
            self.ask(&format!(
                "document.getElementById('{from}').scrollIntoView();
                 return new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
            ))
            .await;
            let taken = self.browser.driver().screenshot(&path).await;
            taken.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }

    /// Passes over what was told to the browser's console so far: it was meant to be.
    pub async fn forgive(&self) {
        self.complaints().await;
    }

    /// What was told to the browser's console as an error since this was last asked.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let log = self.browser.driver().browser_log().await;
        log.unwrap_or_default()
            .into_iter()
            .filter(|entry| entry.level == "SEVERE")
            .map(|entry| entry.message)
            .collect()
    }

    /// For a story that went wrong: a picture in the folder for temporary files, and the page as text.
    pub(crate) async fn keep_what_was_seen(&self) {
        let path = env::temp_dir().join(format!("leader-page-{}.png", std::process::id()));
        if self.browser.driver().screenshot(&path).await.is_ok() {
            eprintln!("what the page showed is in {}", path.display());
        }
        let body = self.browser.driver().find(By::Tag("body")).await;
        if let Ok(body) = body {
            eprintln!("{}", body.text().await.unwrap_or_default());
        }
    }
}
