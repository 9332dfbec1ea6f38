//! How the bytes of a fuzzer become a server's answer: words of our scripts are short, so that it finds them.

use fred::types::Value;
use libfuzzer_sys::arbitrary::{Result, Unstructured};

const WORDS: [&str; 21] = [
    "granted",
    "taken",
    "ended",
    "foreign",
    "extended",
    "expired",
    "deleted",
    "released",
    "holders",
    "evicted",
    "observed",
    "written",
    "stale",
    "none",
    "value",
    "changed",
    "PONG",
    "!READONLY no",
    "node-b",
    "",
    " ",
];

const NUMBERS: [i64; 10] = [
    0,
    1,
    2,
    3,
    -1,
    4_294_967_296,
    1_759_836_153_000_000,
    9_007_199_254_740_992,
    i64::MIN,
    i64::MAX,
];

/// A value of any shape, not deeper than `depth`.
pub fn value(bytes: &mut Unstructured<'_>, depth: u8) -> Result<Value> {
    let shapes = if depth == 0 { 9 } else { 11 };
    Ok(match bytes.int_in_range(0..=shapes)? {
        0 | 1 => Value::String((*bytes.choose(&WORDS)?).into()),
        2 | 3 => Value::Integer(*bytes.choose(&NUMBERS)?),
        4 => Value::Integer(bytes.arbitrary()?),
        5 => Value::String(bytes.arbitrary::<&str>()?.into()),
        6 => Value::Bytes(bytes.arbitrary::<Vec<u8>>()?.into()),
        7 => Value::Null,
        8 => match bytes.int_in_range(0..=2)? {
            0 => Value::Boolean(bytes.arbitrary()?),
            1 => Value::Double(bytes.arbitrary()?),
            _ => Value::Queued,
        },
        9 => Value::Bytes(bytes.choose(&WORDS)?.as_bytes().into()),
        10 => list(bytes, depth)?,
        _ => {
            let pairs = [(bytes.arbitrary::<&str>()?, value(bytes, depth - 1)?)];
            let map = pairs.into_iter().collect::<Vec<_>>().try_into();
            map.map_or(Value::Null, Value::Map)
        }
    })
}

/// A list, as nearly all answers are.
pub fn list(bytes: &mut Unstructured<'_>, depth: u8) -> Result<Value> {
    let count = bytes.int_in_range(0..=6)?;
    let values: Result<Vec<_>> = (0..count)
        .map(|_| value(bytes, depth.saturating_sub(1)))
        .collect();
    values.map(Value::Array)
}
