//! Nothing here: the tests use `leader-core` under the name `leader`, as a crate that renamed it does.
