//! Leader election and leases for Tokio services: work that *stops* when its lease is no longer certain.
//!
//! A service runs on five machines. At one in the morning the settlement must run once, not five times. Or one of the
//! five consumes the order feed, and when it dies another takes over. Or three of the five at most call a slow partner
//! at a time. In each case some async code runs only inside a **lease** that one candidate holds:
//!
//! ```
//! use leader_core::{ElectorExt, LeaderError, LeaseOptions, LocalElector};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), LeaderError> {
//! // In a service this is a `RedisElector` of the crate `leader-redis`; nothing else changes.
//! let elector = LocalElector::new();
//!
//! let options = LeaseOptions::builder()
//!     .wait(Duration::from_millis(500))
//!     .lease(Duration::from_secs(10))
//!     .auto_extend(true)
//!     .build()?;
//!
//! let closed = elector
//!     .run_if_leader("invoice-close", &options, |lease| async move {
//!         println!("leading with fencing token {}", lease.fence());
//!         42
//!     })
//!     .await?;
//! assert_eq!(closed, Some(42)); // `None`: somebody else led
//! # Ok(())
//! # }
//! ```
//!
//! A `Stream` is guarded in the same way: [`ElectorExt::guard_stream`]. It claims at its first poll, and holds across its
//! items. Who leads for days campaigns: [`ElectorExt::campaign`]. Which call is for which job: [`guide`].
//!
//! # The words
//!
//! - A **name** is what is led: [`LockName`]. It has one **slot**, or as many as may lead at once.
//! - A **candidate** is an elector: [`Elector`], with the methods of [`ElectorExt`]. Its **node id** is for people.
//! - A **lease** is the exclusive, time-bounded right to a slot: [`Lease`], seen by others as [`LeaseHandle`]. Its
//!   **fencing token** grows with every grant: [`FencingToken`].
//! - **Skipped** means that somebody else led until the wait was over; nothing ran. That is an outcome, not an error.
//! - **Lost** means that the lease could not be proved valid any more while the work ran. The work is dropped.
//!
//! # What is promised
//!
//! On a store that keeps what it has acknowledged, no more candidates than there are slots hold a lease that is valid
//! *by their own reckoning*, which is conservative: a lease counts from before its request was sent, and ends 1 % and
//! 2 ms early. No wall clock of a client is compared with another's. When the deadline passes, or the store says "not
//! yours", the guarded future is dropped and never polled again, even if the process was frozen and no timer has fired
//! yet. A run that was not lost returns what its body returned, and then the slot is free: also when the body failed,
//! panicked, or was dropped. A store that fails is an error within a bounded time; it is never mistaken for somebody
//! else leading.
//!
//! What it assumes: clocks that measure a lease agree to within 1 %, and go on while the process stands still. Tokio's
//! clock does when a process is stopped or starved; on Linux it stands still while the whole machine is suspended.
//!
//! What a lease cannot do: undo a side effect that has already left the process. A leader that was paused in the middle
//! of a write does not know it. For that, send the fencing token along, and let the resource refuse a lower one than
//! it has seen: [`fencing`].
//!
//! # The parts
//!
//! ```text
//! your code
//!   ElectorExt     what people call
//!   Elector        the same behind `dyn`: `Arc<dyn Elector>` lives in a service's state
//!   StoreElector   the engine: waiting, deadlines, extension, release, events; once for all stores
//!   LeaseStore     what a backend implements: one atomic step at a time
//! ```
//!
//! [`LocalElector`] is the engine on memory of this process: the embedded default, and the elector to test a service
//! with, since its leases obey [`tokio::time::pause`](https://docs.rs/tokio/latest/tokio/time/fn.pause.html).
//!
//! # Features
//!
//! - `macros`, on by default: the attribute `#[leader_election]`, which runs an annotated function as the leader only.
//! - `metrics`: counters, gauges and histograms through the `metrics` facade. How to read
//!   them: [`metrics`].
//! - `serde`: `Serialize` for [`LeaderState`] and its parts.
//! - `testing`: the conformance suite for stores, a store that misbehaves on command, and an elector with a scripted
//!   outcome.

mod campaign;
mod elector;
mod engine;
mod error;
mod event;
mod ext;
pub mod fencing;
// What must hold of any input: shown by the property tests, and by `cargo fuzz`, which alone sees it from outside.
#[cfg(test)]
#[allow(unreachable_pub, reason = "it is public to the fuzz targets")]
mod fuzzing;
#[cfg(all(fuzzing, not(test)))]
#[doc(hidden)]
#[allow(missing_docs, reason = "not public")]
pub mod fuzzing;
mod guard;
#[doc = include_str!("guide.md")]
pub mod guide {
    #[doc = include_str!("accidents.md")]
    pub mod accidents {}
}
#[doc = include_str!("metrics.md")]
pub mod metrics {}
mod health;
mod hints;
mod label;
mod lease;
mod local;
mod name;
mod node;
mod observe;
mod options;
mod outcome;
#[doc(hidden)]
#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "not public"
)]
pub mod __private {
    pub use crate::private::*;
    pub use crate::stream::annotated::*;
}
#[allow(
    missing_docs,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "not public"
)]
mod private;
mod quorum;
mod returns;
mod scope;
mod span;
mod state;
pub mod store;
mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod token;

pub use campaign::{
    BodyEnd, Campaign, CampaignEnd, CampaignOptions, CampaignOptionsBuilder, CampaignPhase,
    CampaignStatus, Changes, IntoBodyEnd, LeadershipChange, Revocation, WhenBodyEnds,
};
pub use elector::{Elector, ElectorId};
pub use engine::{BoxFuture, StoreElector, StoreElectorBuilder};
pub use error::{BackendKind, LeaderError, LossReason, Step};
pub use event::{Events, LeaderEvent, TenureId};
pub use ext::ElectorExt;
pub use health::{Health, Unproved};
#[cfg(feature = "macros")]
#[doc = include_str!("leader_election.md")]
// The last chapter, which is tested where axum is, in `examples`.
#[cfg_attr(not(doctest), doc = include_str!("axum_response.md"))]
pub use leader_macros::leader_election;
pub use lease::{Lease, LeaseHandle};
pub use local::{LocalElector, LocalStore};
pub use name::LockName;
pub use node::NodeId;
pub use observe::Observing;
pub use options::{LeaseOptions, LeaseOptionsBuilder, OnLost};
pub use outcome::{Acquisition, RunOutcome, Skipped};
pub use quorum::Quorum;
pub use returns::{FromLeaderError, FromSkip};
pub use scope::{
    AlreadyInstalled, current_elector, current_lease, ensure_leader, install, with_elector,
};
pub use state::{Holder, LeaderState};
pub use stream::{GuardedStream, GuardedTryStream, StreamOutcome};
pub use token::{FencingToken, Token};
#[doc(no_inline)]
pub use tokio_util::sync::CancellationToken;
