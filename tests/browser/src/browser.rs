//! [`Browser`]: a Chromium without a window, and the driver that it is steered by.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use leader_tests::Worker;
use tempfile::TempDir;
use thirtyfour::{ChromiumLikeCapabilities, DesiredCapabilities, WebDriver};

/// What Chromium is called, by distribution.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// Far more than it takes, also on a machine with much else to do.
const START: Duration = Duration::from_secs(60);

/// The window that the page is seen in.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    size: (u32, u32),
    dark: bool,
}

impl Window {
    /// A screen on a desk.
    pub const WIDE: Self = Self {
        size: (1280, 1100),
        dark: false,
    };
    /// The same, of somebody who likes it dark.
    pub const DARK: Self = Self {
        dark: true,
        ..Self::WIDE
    };
    /// A phone, as narrow as the browser's windows get.
    pub const NARROW: Self = Self {
        size: (390, 900),
        dark: false,
    };
}

/// A browser and its driver. To be ended with [`quit`](Self::quit): dropped, it leaves its processes behind.
#[derive(Debug)]
pub struct Browser {
    driver: WebDriver,
    _program: Worker,
    // Deleted last: the browser writes to it until its end.
    _profile: TempDir,
}

impl Browser {
    /// Starts one.
    ///
    /// # Panics
    ///
    /// When there is none on this machine, or it does not start.
    pub async fn start(window: Window) -> Self {
        let program = find("LEADER_TEST_CHROMEDRIVER", &["chromedriver"]);
        let mut program = Worker::spawn(&program, &["--port=0"]);
        let line = program
            .wait_for_line("ChromeDriver was started successfully on port ", START)
            .await;
        let port = line
            .trim_end_matches('.')
            .rsplit(' ')
            .next()
            .unwrap_or_default();
        let profile = tempfile::tempdir().expect("a folder for the browser's profile");
        let mut wanted = DesiredCapabilities::chrome();
        let set = wanted.set_binary(&find("LEADER_TEST_CHROMIUM", &BROWSERS));
        set.expect("a path is a string");
        let (width, height) = window.size;
        for argument in [
            "--headless=new",
            // Containers and root have no sandbox to give; the page is our own.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--hide-scrollbars",
            // Nothing that calls home: the tests touch no network but loopback.
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            "--lang=en",
            // 0 is dark, 1 is light.
            &format!(
                "--blink-settings=preferredColorScheme={}",
                u8::from(!window.dark)
            ),
            &format!("--window-size={width},{height}"),
            &format!("--user-data-dir={}", profile.path().display()),
        ] {
            wanted.add_arg(argument).expect("an argument is a string");
        }
        let driver = WebDriver::new(format!("http://127.0.0.1:{port}"), wanted).await;
        Self {
            driver: driver.expect("the driver starts a browser"),
            _program: program,
            _profile: profile,
        }
    }

    /// What steers it.
    #[must_use]
    pub fn driver(&self) -> &WebDriver {
        &self.driver
    }

    /// Ends the browser, and then its driver.
    pub async fn quit(self) {
        // A browser that has crashed has ended as well.
        let _ = self.driver.quit().await;
    }
}

fn find(variable: &str, names: &[&str]) -> String {
    if let Some(path) = env::var(variable).ok().filter(|path| !path.is_empty()) {
        return path;
    }
    let folders: Vec<PathBuf> = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default();
    let programs = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let program = programs
        .into_iter()
        .find(|program| program.is_file())
        .unwrap_or_else(|| {
            panic!(
                "there is no {}; `cargo xtask browser` installs it, or set {variable}",
                names[0]
            )
        });
    program.display().to_string()
}
