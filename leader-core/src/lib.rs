//! Leader election and leases for Tokio services.

mod elector;
mod engine;
mod error;
mod event;
mod ext;
mod guard;
mod hints;
mod lease;
mod local;
mod name;
mod node;
mod options;
mod outcome;
mod scope;
mod state;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod token;

pub use elector::{Elector, ElectorId};
pub use engine::{BoxFuture, StoreElector, StoreElectorBuilder};
pub use error::{BackendKind, LeaderError, LossReason, Step};
pub use event::{Events, LeaderEvent, TenureId};
pub use ext::ElectorExt;
pub use lease::{Lease, LeaseHandle};
pub use local::{LocalElector, LocalStore};
pub use name::LockName;
pub use node::NodeId;
pub use options::{LeaseOptions, LeaseOptionsBuilder, OnLost};
pub use outcome::{Acquisition, RunOutcome, Skipped};
pub use scope::{
    AlreadyInstalled, current_elector, current_lease, ensure_leader, install, with_elector,
};
pub use state::{Holder, LeaderState};
pub use token::{FencingToken, Token};
