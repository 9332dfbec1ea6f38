//! A grant counts once replicas have it: on a primary and a replica, with everything that can go wrong between them.

mod accident;
mod conformance;
mod connect;
mod demotion;
mod group;
mod shortage;
mod steps;
