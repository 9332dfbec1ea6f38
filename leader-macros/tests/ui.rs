//! What the attribute says when it is not content: each mistake with its expected text.

/// Set `TRYBUILD=overwrite` to write the expected texts anew. Accepted functions stand in `accepted.rs`: with one of them
/// here, each mistake would be a build of its own.
#[test]
fn d05_mistakes_are_reported_where_they_are_with_what_to_write_instead() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
