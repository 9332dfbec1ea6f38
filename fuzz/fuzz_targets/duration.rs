//! Durations in the attribute. The macro's crate can be linked to by nobody, so its files are included.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../leader-macros/src/duration.rs"]
mod duration;
#[path = "../../leader-macros/src/fuzzing.rs"]
mod fuzzing;

fuzz_target!(|text: &str| fuzzing::duration(text));
