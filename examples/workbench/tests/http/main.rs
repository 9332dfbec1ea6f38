//! The workbench as its page and its neighbours meet it: real requests over the loopback.

mod bench;
mod elsewhere;
mod given_up;
mod load;
mod malformed;
mod servers;
mod support;
