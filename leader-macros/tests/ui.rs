//! What the attribute accepts, and what it says when it does not: each mistake with its expected text.

/// One build for all cases: set `TRYBUILD=overwrite` to write the expected texts anew.
#[test]
fn d05_mistakes_are_reported_where_they_are_with_what_to_write_instead() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/fail/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}
