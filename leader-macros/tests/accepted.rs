//! What the attribute accepts. `tests/renamed` has more of each shape, and runs them.
#![allow(
    dead_code,
    missing_docs,
    unused_variables,
    reason = "it is enough that it compiles"
)]
#![allow(
    clippy::unused_async,
    clippy::needless_pass_by_value,
    reason = "as above"
)]

#[path = "accepted/functions.rs"]
mod functions;
#[path = "accepted/keys.rs"]
mod keys;
