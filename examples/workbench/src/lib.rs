//! The workbench: one lock, its candidates, and time.

pub mod ticks;
