//! The service over HTTP: real processes, a real Redis, real requests.
#![allow(missing_docs, reason = "a test")]

mod bad_input;
mod deploy;
mod instances;
mod page;
mod support;
