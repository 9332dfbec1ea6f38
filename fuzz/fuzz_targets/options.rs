//! Options of any size, of leases and of campaigns, and what is done with those that are accepted.
#![no_main]

use std::time::Duration;

use leader_core::fuzzing::{self, CampaignWish, Wish};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// Mostly times that somebody might write.
fn time(bytes: &mut Unstructured<'_>) -> Result<Duration> {
    Ok(match bytes.int_in_range(0..=3)? {
        0 => Duration::from_millis(bytes.arbitrary::<u16>()?.into()),
        1 => Duration::from_micros(bytes.arbitrary::<u32>()?.into()),
        2 => Duration::from_nanos(bytes.arbitrary()?),
        _ => Duration::from_secs(bytes.arbitrary()?),
    })
}

fn play(bytes: &mut Unstructured<'_>) -> Result<()> {
    if bytes.arbitrary()? {
        fuzzing::campaign(&CampaignWish {
            lease: time(bytes)?,
            grace: time(bytes)?,
            rest: time(bytes)?,
            pause: time(bytes)?,
            longest: time(bytes)?,
            fails: bytes.arbitrary()?,
        });
        return Ok(());
    }
    fuzzing::options(&Wish {
        wait: time(bytes)?,
        lease: time(bytes)?,
        min_lease: time(bytes)?,
        auto_extend: bytes.arbitrary()?,
        notify: bytes.arbitrary()?,
        slots: u32::from(bytes.arbitrary::<u8>()?) * bytes.int_in_range(1..=u32::MAX / 255)?,
        max_tenure: bytes
            .arbitrary::<bool>()?
            .then(|| time(bytes))
            .transpose()?,
        extension: time(bytes)?,
        work: bytes.arbitrary()?,
        pattern: bytes.arbitrary()?,
    });
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let _ = play(&mut Unstructured::new(bytes));
});
