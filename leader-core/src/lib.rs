//! Leader election and leases for Tokio services.

mod error;
mod event;
mod hints;
mod name;
mod node;
mod options;
mod state;
pub mod store;
mod token;

pub use error::{BackendKind, LeaderError, LossReason, Step};
pub use event::{Events, LeaderEvent, TenureId};
pub use name::LockName;
pub use node::NodeId;
pub use options::{LeaseOptions, LeaseOptionsBuilder, OnLost};
pub use state::{Holder, LeaderState};
pub use token::{FencingToken, Token};
