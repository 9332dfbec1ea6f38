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

/// A word and numbers in one text, as scripts answer what is answered most.
fn text(bytes: &mut Unstructured<'_>) -> Result<String> {
    let mut text = (*bytes.choose(&WORDS)?).to_owned();
    for _ in 0..bytes.int_in_range(0..=3)? {
        text = format!("{text}:{}", bytes.choose(&NUMBERS)?);
    }
    Ok(text)
}

/// A value of any shape, not deeper than `depth`.
pub fn value(bytes: &mut Unstructured<'_>, depth: u8) -> Result<Value> {
    let shapes = if depth == 0 { 10 } else { 12 };
    Ok(match bytes.int_in_range(0..=shapes)? {
        0 | 1 => Value::String((*bytes.choose(&WORDS)?).into()),
        2 | 3 => Value::Integer(*bytes.choose(&NUMBERS)?),
        4 => Value::Integer(bytes.arbitrary()?),
        5 => Value::String(match bytes.int_in_range(0..=2)? {
            0 => bytes.arbitrary::<&str>()?.into(),
            _ => text(bytes)?.into(),
        }),
        6 => Value::Bytes(bytes.arbitrary::<Vec<u8>>()?.into()),
        7 => Value::Null,
        8 => match bytes.int_in_range(0..=2)? {
            0 => Value::Boolean(bytes.arbitrary()?),
            1 => Value::Double(bytes.arbitrary()?),
            _ => Value::Queued,
        },
        9 => Value::Bytes(bytes.choose(&WORDS)?.as_bytes().into()),
        10 => pair(bytes)?,
        11 => list(bytes, depth)?,
        _ => {
            let pairs = [(bytes.arbitrary::<&str>()?, value(bytes, depth - 1)?)];
            let map = pairs.into_iter().collect::<Vec<_>>().try_into();
            map.map_or(Value::Null, Value::Map)
        }
    })
}

/// `granted:2:1759836153000000`, or nearly.
pub fn pair(bytes: &mut Unstructured<'_>) -> Result<Value> {
    let (word, small) = (bytes.choose(&WORDS)?, bytes.choose(&NUMBERS)?);
    let large = match bytes.arbitrary()? {
        true => *bytes.choose(&NUMBERS)?,
        false => bytes.arbitrary()?,
    };
    Ok(Value::String(format!("{word}:{small}:{large}").into()))
}

/// A list, as many answers are.
pub fn list(bytes: &mut Unstructured<'_>, depth: u8) -> Result<Value> {
    let count = bytes.int_in_range(0..=6)?;
    let values: Result<Vec<_>> = (0..count)
        .map(|_| value(bytes, depth.saturating_sub(1)))
        .collect();
    values.map(Value::Array)
}
