//! Answers of any shape to each script, and refusals in any words.
#![no_main]

use leader_fuzz::{list, pair, value};
use leader_redis::fuzzing;
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

fn play(bytes: &mut Unstructured<'_>) -> Result<()> {
    let slots = *bytes.choose(&[1, 3, 1024])?;
    let count = bytes.int_in_range(0..=3)?;
    match bytes.int_in_range(0..=7)? {
        0 => fuzzing::refusal(bytes.arbitrary()?),
        1 => fuzzing::reply(&value(bytes, 5)?, slots, count),
        2 | 3 => fuzzing::reply(&pair(bytes)?, slots, count),
        _ => fuzzing::reply(&list(bytes, 5)?, slots, count),
    }
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let _ = play(&mut Unstructured::new(bytes));
});
