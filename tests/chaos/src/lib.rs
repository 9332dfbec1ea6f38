//! Chaos on real processes.
