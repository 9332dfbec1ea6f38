//! The Redis store's promises, asked of a real server through the trait that the engine uses.

mod claim;
mod connect;
mod elector;
mod extend;
mod faults;
mod fenced;
mod impostor;
mod lost;
mod observe;
mod release;
mod slots;
mod steps;
mod watch;
