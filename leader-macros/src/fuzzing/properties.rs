//! Property tests: any duration, any name, any attribute.

use std::fmt::Debug;
use std::time::Duration;

use proc_macro2::TokenStream;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use syn::LitStr;

use super::{iso, units};
use crate::args::{self, KEYS, Mistakes, Time};
use crate::{duration, expand, name};

fn holds<S: Strategy>(cases: u32, any: S, property: impl Fn(S::Value))
where
    S::Value: Debug,
{
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let held = runner.run(&any, |value| {
        property(value);
        Ok(())
    });
    if let Err(error) = held {
        panic!("{error}");
    }
}

fn nearly_a_duration() -> impl Strategy<Value = String> {
    let parts = vec![
        "P",
        "T",
        "D",
        "H",
        "M",
        "S",
        "d",
        "h",
        "m",
        "s",
        "ms",
        "0",
        "1",
        "30",
        "500",
        "0.5",
        "0,25",
        ".",
        ",",
        "-",
        "+",
        " ",
        "us",
        "é",
        "18446744073709551615",
        "18446744073709552",
        "213503982334601",
        "99999999999999999999",
    ];
    let parts = prop::collection::vec(prop::sample::select(parts), 0..7);
    prop_oneof![
        3 => parts.prop_map(|parts| parts.concat()),
        2 => "([0-9]{1,3}d)?([0-9]{1,3}h)?([0-9]{1,3}m)?([0-9]{1,3}s)?([0-9]{1,3}ms)?",
        2 => "P([0-9]{1,3}D)?(T([0-9]{1,3}H)?([0-9]{1,3}M)?([0-9]{1,3}([.,][0-9]{1,10})?S)?)?",
        1 => any::<String>(),
    ]
}

#[test]
fn any_text_is_a_duration_or_refused_with_advice() {
    holds(4_000, nearly_a_duration(), |text| super::duration(&text));
}

#[test]
fn a_duration_that_is_written_is_read_as_it_was() {
    let whole = prop_oneof![0..100_000_u64, 0..=u64::MAX, Just(u64::MAX)];
    holds(2_500, (whole, 0..1_000_000_000_u32), |(seconds, nanos)| {
        let exact = Duration::new(seconds, nanos);
        assert_eq!(duration::parse(&iso(exact)), Ok(exact));
        let millis = Duration::new(seconds, nanos / 1_000_000 * 1_000_000);
        assert_eq!(duration::parse(&units(millis)), Ok(millis));
    });
}

/// As somebody would write it, with other keys before and behind.
#[test]
fn a_duration_is_refused_where_it_stands() {
    let key = prop::sample::select(vec!["wait", "lease", "min_lease", "max_tenure"]);
    holds(2_000, (key, nearly_a_duration()), |(key, text)| {
        let literal = format!("{text:?}");
        let before = format!("name = \"x\", {key} = ");
        let Ok(tokens) = format!("{before}{literal}, bounded").parse::<TokenStream>() else {
            return;
        };
        let mut mistakes = Mistakes::default();
        let args = args::parse(tokens, &mut mistakes);
        let time = match key {
            "wait" => args.wait,
            "lease" => args.lease,
            "min_lease" => args.min_lease,
            _ => args.max_tenure,
        };
        assert!(
            args.name.is_some() && args.bounded.is_some(),
            "the rest is read"
        );
        match (duration::parse(&text), time, mistakes.into_error()) {
            (Ok(read), Some(Time::Literal(time, _)), None) => assert_eq!(time, read),
            (Err(advice), None, Some(error)) => {
                let errors: Vec<syn::Error> = error.into_iter().collect();
                let [error] = errors.as_slice() else {
                    panic!("{} errors", errors.len());
                };
                assert_eq!(error.to_string(), advice);
                let (start, end) = (error.span().start(), error.span().end());
                let ends = before.chars().count() + literal.chars().count();
                assert_eq!((start.column, end.column), (before.chars().count(), ends));
            }
            (read, _, error) => panic!("{read:?}, and {error:?}"),
        }
    });
}

#[test]
fn a_name_without_placeholders_is_refused_here_if_it_would_be_later() {
    let text = prop_oneof![
        "[a-zA-Z0-9_.:/-]{0,12}",
        "[a-z]{254,257}",
        "\\PC{0,6}",
        any::<String>()
    ];
    holds(4_000, text, |text| {
        if text.contains(['{', '}']) {
            return;
        }
        let literal = LitStr::new(&text, proc_macro2::Span::call_site());
        let here = name::parse(&literal).is_ok();
        assert_eq!(here, leader_core::LockName::new(&text).is_ok(), "{text:?}");
    });
}

/// Whatever stands in the parentheses and below: some tokens, never a panic.
#[test]
fn any_attribute_on_any_function_expands() {
    let others = [
        "=",
        ",",
        "=",
        ",",
        "\"10s\"",
        "\"x:{a}\"",
        "\"x:{a:>b$.*}\"",
        "\"{\"",
        "\"{0}\"",
        "\"{é$}\"",
        "\"\"",
        "\"skip\"",
        "\"run\"",
        "\"stream\"",
        "3",
        "0",
        "-1",
        "1.5",
        "true",
        "format!(\"{a}\")",
        "self.elector",
        "crate::x",
        "()",
        "{}",
        "|x| x",
        "'a'",
        "b\"x\"",
        "#",
        "?",
        "r#type",
        "é",
    ];
    let word = prop::sample::select([&KEYS[..], &others[..]].concat());
    let args = prop::collection::vec(word, 0..14).prop_map(|words| words.join(" "));
    let item = prop::sample::select(vec![
        "async fn f(a: &str) -> Result<(), E> { Ok(()) }",
        "async fn f(mut self, (a, b): (u8, u8)) -> Option<u8> { None }",
        "fn f(a: &str) -> impl Future<Output = Result<(), E>> { g() }",
        "fn f<'a>(&'a self, a: &'a str) -> BoxFuture<'a, Result<(), E>> { g() }",
        "fn f(a: &str) -> impl Stream<Item = u8> + '_ { g() }",
        "fn f(a: &str) -> BoxStream<'static, Result<u8, E>> { g() }",
        "const fn f() {}",
        "fn f(a: u8) -> u8 { a }",
        "async fn f();",
        "unsafe extern \"C\" fn f(a: u8, ...) {}",
        "struct S;",
        "impl S { async fn f() {} }",
        "",
        "async fn f(",
        "async",
    ]);
    holds(3_000, (args, item), |(args, item)| {
        let (Ok(args), Ok(item)) = (args.parse::<TokenStream>(), item.parse::<TokenStream>())
        else {
            return;
        };
        let _ = expand::expand(args, &item);
    });
}
