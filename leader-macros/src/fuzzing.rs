//! What must hold of any duration in the attribute, however odd: each function panics where it does not. The fuzz target
//! includes this file beside `duration`, since nothing can link to a macro's crate.

use std::time::Duration;

use crate::duration;

#[cfg(test)]
#[path = "fuzzing/properties.rs"]
mod properties;

/// Text is a duration, which is the same when it is written in either of the two ways; or it is refused with advice.
pub(crate) fn duration(text: &str) {
    match duration::parse(text) {
        Ok(read) => {
            assert_eq!(duration::parse(&iso(read)), Ok(read), "{text:?}");
            if read.subsec_nanos() % 1_000_000 == 0 {
                assert_eq!(duration::parse(&units(read)), Ok(read), "{text:?}");
            }
            assert!(text.starts_with('P') || text.bytes().all(|b| b.is_ascii_alphanumeric()));
        }
        Err(advice) => {
            let advises = ["write ", "the units are", "is too long"];
            assert!(
                advises.iter().any(|words| advice.contains(words)),
                "{advice}"
            );
        }
    }
}

/// `1d2h3m4s5ms`, without what is zero.
pub(crate) fn units(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
        (u64::from(millis), "ms"),
    ];
    let written = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .fold(String::new(), |written, (count, unit)| {
            written + &format!("{count}{unit}")
        });
    if written.is_empty() {
        return "0s".to_owned();
    }
    written
}

/// `P1DT2H3M4.000000005S`.
pub(crate) fn iso(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!(
        "P{}DT{}H{}M{}.{:09}S",
        seconds / 86_400,
        seconds / 3_600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        duration.subsec_nanos()
    )
}
