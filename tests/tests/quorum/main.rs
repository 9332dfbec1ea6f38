//! A majority of independent servers decides: on real ones, some of which are dead, hung, or have forgotten.

mod conformance;
mod connect;
mod elections;
mod returns;
mod rounds;
mod servers;
