//! What is counted and measured, and that whoever counts cannot touch a lease.
#![allow(missing_docs, reason = "a test")]

mod counts;
mod gauges;
#[path = "../life/mod.rs"]
mod life;
mod page;
mod recorders;
mod support;
