//! The workbench: one lock, its candidates, and time.
//!
//! A page on which a person moves the time limits, freezes, kills and cuts off candidates, and watches who leads. What
//! runs behind it is the library itself: each candidate is an elector on a thread of its own.
//!
//! | file | what it has |
//! |---|---|
//! | `world` | what everybody on the bench shares |
//! | `candidate` | a process that can be frozen and killed, in the form of a thread |
//! | `life` | what it does: stand, work, write, stand again |
//! | `site`, `reach`, `line` | the store, its nodes, and the ways to them, which can be cut |
//! | `erase` | deleting what a server has of the workbench |
//! | `resource` | what leaders write to, and what refuses a stale one |
//! | `journal` | what has happened |
//! | `settings` | what can be set, and in which range |
//! | `bench` | what can be done |
//! | `scenario`, `script` | stories that do it by themselves |
//! | `view`, `http` | what pages see, and how |
//! | `ticks` | the same under paused time, in ticks: plans, and their tables |

mod bench;
mod candidate;
mod erase;
mod http;
mod journal;
mod life;
mod line;
mod reach;
mod resource;
mod scenario;
mod script;
mod settings;
mod site;
pub mod ticks;
mod view;
mod world;

pub use http::Workbench;
pub use site::Place;
