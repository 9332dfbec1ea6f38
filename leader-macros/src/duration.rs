//! Durations as people write them: `"500ms"`, `"10s"`, `"1m30s"`, `"PT0.5S"`.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// The duration, or what is wrong with it and what to write instead.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if text.is_empty() {
        return Err("a duration is missing; write `\"10s\"`, say".to_owned());
    }
    if let Some(iso) = text.strip_prefix('P') {
        return parse_iso(iso).ok_or_else(|| {
            format!("`{text}` is no ISO 8601 duration; write `\"PT1M30S\"` or `\"1m30s\"`, say")
        });
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "`{text}` has no unit; write `\"{text}s\"` or `\"{text}ms\"`"
        ));
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    let mut last = u64::MAX;
    while !rest.is_empty() {
        let (digits, after) = split(rest, |c| c.is_ascii_digit());
        if after.starts_with('.') && !digits.is_empty() {
            return Err(format!(
                "`{text}` has a fraction; write it in a smaller unit, `\"1500ms\"` say"
            ));
        }
        let (unit, after) = split(after, char::is_alphabetic);
        if digits.is_empty() || unit.is_empty() {
            return Err(malformed(text));
        }
        let Some((_, millis)) = UNITS.iter().find(|(known, _)| *known == unit) else {
            return Err(format!(
                "`{unit}` in `{text}` is no unit; the units are `ms`, `s`, `m`, `h` and `d`"
            ));
        };
        if *millis >= last {
            return Err(format!(
                "the units in `{text}` must get smaller; write `\"1m30s\"`, say"
            ));
        }
        last = *millis;
        total = add(total, digits, *millis).ok_or_else(|| format!("`{text}` is too long"))?;
        rest = after;
    }
    Ok(total)
}

fn malformed(text: &str) -> String {
    format!(
        "`{text}` is no duration; write `\"500ms\"`, `\"10s\"`, `\"1m30s\"` or `\"PT0.5S\"`, say"
    )
}

/// What follows the `P`: days, then after a `T` hours, minutes, and seconds that may have a fraction.
fn parse_iso(iso: &str) -> Option<Duration> {
    let (days, time) = match iso.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (iso, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    if !days.is_empty() {
        total = add(total, days.strip_suffix('D')?, 86_400_000)?;
    }
    let mut rest = time;
    for (unit, millis) in [('H', 3_600_000), ('M', 60_000)] {
        if let Some((digits, after)) = rest.split_once(unit) {
            total = add(total, digits, millis)?;
            rest = after;
        }
    }
    if !rest.is_empty() {
        let seconds = rest.strip_suffix('S')?;
        let (whole, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, "0"));
        total = add(total, whole, 1_000)?;
        if fraction.is_empty() || fraction.len() > 9 || !is_number(fraction) {
            return None;
        }
        let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
        total = total.checked_add(Duration::from_nanos(nanos))?;
    }
    Some(total)
}

fn add(total: Duration, digits: &str, millis: u64) -> Option<Duration> {
    if !is_number(digits) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    // In milliseconds days would end sooner than seconds.
    let millis = u128::from(count) * u128::from(millis);
    let seconds = u64::try_from(millis / 1_000).ok()?;
    let nanos = u32::try_from(millis % 1_000).ok()? * 1_000_000;
    total.checked_add(Duration::new(seconds, nanos))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_people_write_them() {
        for (text, millis) in [
            ("500ms", 500),
            ("0s", 0),
            ("10s", 10_000),
            ("1m30s", 90_000),
            ("2h", 7_200_000),
            ("1d12h", 129_600_000),
            ("PT0.5S", 500),
            ("PT10S", 10_000),
            ("PT1M30S", 90_000),
            ("P1DT12H", 129_600_000),
            ("P1D", 86_400_000),
            ("PT1H0,25S", 3_600_250),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn a_duration_may_be_as_long_in_one_unit_as_in_another() {
        let longest = Duration::from_secs(u64::MAX);
        for text in [
            "18446744073709551615s",
            "213503982334601d7h15s",
            "P213503982334601DT7H15S",
            "PT18446744073709551615S",
        ] {
            assert_eq!(parse(text), Ok(longest), "{text}");
        }
        for text in [
            "18446744073709551616s",
            "213503982334601d7h16s",
            "213503982334602d",
        ] {
            assert!(parse(text).unwrap_err().contains("too long"), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_advice() {
        for text in [
            "",
            "10",
            "s",
            "10 s",
            "ten",
            "1.5s",
            "-1s",
            "10x",
            "30s1m",
            "1s1s",
            "P",
            "PT",
            "P10S",
            "PT1.S",
            "PT5",
            "1d99999999999999999999s",
            "10S",
            "é",
            "1é",
        ] {
            let advice = parse(text).unwrap_err();
            assert!(
                advice.contains("write") || advice.contains("units") || advice.contains("long"),
                "{advice}"
            );
        }
    }
}
