//! Deterministic mode: whole tables, the same each time, and what holds for any plan.

mod command_line;
mod invariants;
mod plans;
mod play;
mod tables;
