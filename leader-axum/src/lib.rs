//! Leader election seen over HTTP, for axum.
//!
//! - [`LeaderOnly`]: a layer whose routes only the leader serves; a follower answers 503, says who leads, and when to try
//!   again.
//! - [`Management`]: who leads what, and handing over, behind a token of its own.
//! - [`liveness`]: whether this process can prove that it leads, wherever it believes so.
//!
//! Everything takes an `Arc<dyn Elector>`, so that a service which keeps one in its state can have all of this.
//! `examples/axum_service` is a service that does.

mod answer;
mod health;
mod leader_only;
mod management;
mod token;

pub use health::liveness;
pub use leader_only::{LeaderOnly, LeaderOnlyService};
pub use management::Management;
pub use token::{ManagementToken, WeakToken};
