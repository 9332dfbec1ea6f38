//! The night job.
fn main() {}
