//! URLs: any text; any password in one, which must not be told; and an escaped login.
#![no_main]

use leader_redis::fuzzing;
use libfuzzer_sys::fuzz_target;

const SECRET: &str = "s3cr3t";

/// What stands before, after and behind a password is divided by what no URL has.
fuzz_target!(|text: &str| {
    let mut parts = text.split('\u{1}');
    let mut next = || parts.next().unwrap_or_default();
    let (scheme, user, before, after, place) = (next(), next(), next(), next(), next());
    fuzzing::url(text, "");
    // Behind a `?` in a password stand options: a `node` of that name is shown, and rightly.
    if ![user, before, after].iter().any(|part| part.contains('?'))
        && !scheme.contains(['?', ':', '@'])
    {
        let url = format!("{scheme}://{user}:{before}{SECRET}{after}@{place}");
        fuzzing::url(&url, SECRET);
    }
    let port = u16::try_from(text.len()).unwrap_or(1);
    fuzzing::login(user, before, "cache.internal", port);
});
