//! Names and node ids of any text, and two names beside each other.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    leader_core::fuzzing::name(text);
    leader_core::fuzzing::node_id(text);
    let mut parts = text.split('|');
    let mut next = || parts.next().unwrap_or("leader");
    leader_redis::fuzzing::keys((next(), next()), (next(), next()));
});
