//! Property tests: replies, messages and refusals of any shape, any names, any URL.

use std::fmt::Debug;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Value;

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

/// The words of our scripts, and some that are nearly theirs.
fn word() -> impl Strategy<Value = String> {
    let words = "granted taken ended foreign extended expired deleted released holders evicted \
                 observed written stale none value changed OK PONG GRANTED !READONLY !NOPERM";
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    prop_oneof![
        6 => prop::sample::select(words),
        1 => "[0-9]{0,21}",
        1 => "\\PC{0,30}",
        1 => any::<String>(),
    ]
}

fn number() -> impl Strategy<Value = i64> {
    let bounds = vec![
        -1,
        0,
        1,
        2,
        3,
        i64::from(u32::MAX),
        (1 << 53) - 1,
        1 << 53,
        i64::MIN,
        i64::MAX,
    ];
    prop_oneof![
        3 => prop::sample::select(bounds),
        2 => 0..2_000_000_000_000_000_i64,
        1 => any::<i64>(),
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => number().prop_map(Value::Integer),
        4 => word().prop_map(|text| Value::String(text.into())),
        1 => word().prop_map(|text| Value::Bytes(text.into_bytes().into())),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Value::Bytes(bytes.into())),
        1 => Just(Value::Null),
        1 => Just(Value::Queued),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => any::<f64>().prop_map(Value::Double),
    ]
}

/// What a script answers in one text, but for one thing or another.
fn nearly_a_text() -> impl Strategy<Value = Value> {
    let part = prop_oneof![4 => number().prop_map(|number| number.to_string()), 1 => word()];
    (word(), prop::collection::vec(part, 0..4)).prop_map(|(word, parts)| {
        let parts = std::iter::once(word).chain(parts);
        Value::String(parts.collect::<Vec<_>>().join(":").into())
    })
}

/// What a script answers, but for one thing or another.
fn nearly_a_reply() -> impl Strategy<Value = Value> {
    let rest = prop::collection::vec(leaf(), 0..5);
    (word(), rest).prop_map(|(word, rest)| {
        let word = Value::String(word.into());
        Value::Array(std::iter::once(word).chain(rest).collect())
    })
}

fn holders() -> impl Strategy<Value = Value> {
    let node = prop_oneof![word(), Just(String::new())];
    let holder = (number(), number(), number(), number(), node).prop_map(|(a, b, c, d, node)| {
        let numbers = [a, b, c, d].map(Value::Integer);
        let node = Value::String(node.into());
        Value::Array(numbers.into_iter().chain([node]).collect())
    });
    prop::collection::vec(holder, 0..4).prop_map(|holders| {
        let word = Value::String("holders".into());
        Value::Array(std::iter::once(word).chain(holders).collect())
    })
}

fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 40, 6, |inner| {
        let pairs = prop::collection::vec((word(), inner.clone()), 0..4);
        let map = pairs.prop_map(|pairs| Value::Map(pairs.try_into().expect("words are keys")));
        prop_oneof![
            4 => prop::collection::vec(inner, 0..6).prop_map(Value::Array),
            1 => map,
        ]
    })
}

#[test]
fn a_reply_of_any_shape_is_an_error_or_what_it_says() {
    let value =
        prop_oneof![3 => nearly_a_reply(), 3 => nearly_a_text(), 1 => holders(), 3 => tree()];
    let slots = prop_oneof![Just(1), Just(3), Just(1024)];
    holds(
        3_000,
        (value, slots, 0..4_usize),
        |(value, slots, count)| {
            super::reply(&value, slots, count);
        },
    );
}

/// A grant is right often enough in the test above that it is not vain.
#[test]
fn what_a_script_answers_is_read() {
    let granted = (0..3_i64, 1..1_i64 << 53)
        .prop_map(|(slot, fence)| Value::String(format!("granted:{slot}:{fence}").into()));
    holds(1_000, granted, |value| {
        let read = crate::reply::claim(&value.clone().into(), 3);
        assert!(
            matches!(read, Ok(super::ClaimReply::Granted { .. })),
            "{value:?} gave {read:?}"
        );
        super::reply(&value, 3, 1);
    });
}

#[test]
fn a_message_of_any_shape_is_a_hint_at_most() {
    let number = prop_oneof!["[0-9]{1,21}", "[+-]?[0-9]{1,3}", "\\PC{0,4}"];
    let released = (number.clone(), number)
        .prop_map(|(revision, free_in)| Value::String(format!("{revision}:{free_in}").into()));
    let value = prop_oneof![released, tree()];
    holds(2_000, value, |value| super::message(&value));
}

#[test]
fn a_refusal_in_any_words_is_an_error_with_the_address() {
    let part = prop::sample::select(vec![
        "ERR ",
        "READONLY ",
        "MOVED 1 ",
        "ASK ",
        ":6379",
        "@user_script:",
        "@user_script: 9: ",
        "-",
        "User ",
        " has no permissions",
        "can't run this command",
        ", with args beginning with",
        "Os {",
        "Custom {",
        "message: ",
        "error: \"",
        "}",
        "invalid peer certificate: ",
        "é",
    ]);
    let part = prop_oneof![part.prop_map(str::to_owned), "\\PC{0,6}", any::<String>()];
    let words = prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat());
    holds(2_000, words, |words| super::refusal(&words));
}

#[test]
fn two_names_share_nothing() {
    let prefix = || "[a-c:]{1,3}";
    let name = || "[a-b][ab:./]{0,3}(:lease|:released|:ended:00ff)?";
    let pairs = ((prefix(), name()), (prefix(), name()));
    holds(2_000, pairs, |((prefix, name), (other_prefix, other))| {
        super::keys((&prefix, &name), (&other_prefix, &other));
        super::keys((&prefix, &name), (&prefix, &name));
    });
}

const SECRET: &str = "s3cr3t";

#[test]
fn a_url_is_refused_or_shown_without_its_password() {
    let scheme = prop::sample::select(vec![
        "redis",
        "valkey",
        "rediss",
        "redis-cluster",
        "redis-sentinel",
        "REDIS",
        "redis+unix",
        "http",
        "",
    ]);
    let odd = || {
        let part = prop::sample::select(vec![
            "", "@", "/", "\\", "[", "]", "%", "%2F", "%ff", ":", "1", " ", "\t", "é", "#", "|",
        ]);
        prop::collection::vec(part, 0..3).prop_map(|parts| parts.concat())
    };
    let place = prop::sample::select(vec![
        "cache",
        "cache:6379",
        "cache:6379/0",
        "cache/16x",
        "[::1]:1",
        "[::1",
        "ca che",
        "",
        "cache?node=b:1",
        "cache?node=b@c:1",
        "cache?node=%0ab:1",
        "cache?node=:1",
        "cache?sentinelServiceName=x&node=b:2",
        "cache?sentinelServiceName=x&sentinelPassword=s3cr3t",
        "cache?sentinelServiceName=x&sentinelPasswort=s3cr3t",
    ]);
    let user = prop_oneof![Just(String::new()), "[a-z]{1,4}", odd()];
    let parts = (scheme, user, odd(), odd(), place);
    holds(5_000, parts, |(scheme, user, before, after, place)| {
        let url = format!("{scheme}://{user}:{before}{SECRET}{after}@{place}");
        super::url(&url, SECRET);
    });
}

#[test]
fn any_text_is_a_url_or_none() {
    let any = prop_oneof![any::<String>(), "redis(s|-cluster|-sentinel)?://\\PC{0,30}"];
    holds(2_000, any, |text| super::url(&text, ""));
}

#[test]
fn an_escaped_login_is_what_the_server_is_told() {
    let login = (any::<String>(), any::<String>(), "[a-z]{1,8}", 1..u16::MAX);
    holds(2_000, login, |(user, password, host, port)| {
        super::login(&user, &password, &host, port);
    });
}
