//! What the tests of the workbench's page stand on: a workbench, a browser that looks at it, and verbs for what a person
//! does and sees there.
//!
//! Each test has a workbench, a driver and a browser of its own, on free ports of loopback, and ends them. What is on the
//! page is found by its ids, which are what the page promises; what is asserted is what is shown.

mod browser;
mod page;
mod programs;
mod story;

pub use browser::{Browser, Window};
pub use page::{Event, Page};
pub use programs::timeline;
pub use story::on_the_page;
