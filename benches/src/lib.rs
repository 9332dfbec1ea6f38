//! What the benchmarks and the soak share.

pub mod cpu;
pub mod memory;
pub mod soak;
