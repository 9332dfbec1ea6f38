//! Property tests: any name, any options.

use std::fmt::Debug;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{CampaignWish, Wish};

fn holds<S: Strategy>(cases: u32, any: S, property: impl Fn(&S::Value))
where
    S::Value: Debug,
{
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let held = runner.run(&any, |value| {
        property(&value);
        Ok(())
    });
    if let Err(error) = held {
        panic!("{error}");
    }
}

/// Text near the rule: mostly what may stand in a name, of any length around the bounds.
fn nearly_a_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9][a-zA-Z0-9_.:/-]{0,20}",
        "[a-zA-Z0-9_.:/{}* -]{0,8}",
        "[a-z]{253,258}",
        "\\PC{0,40}",
        any::<String>(),
    ]
}

/// Any time, often one of the bounds or next to it.
fn time() -> impl Strategy<Value = Duration> {
    let bounds = prop::sample::select(vec![
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_micros(9_999),
        Duration::from_millis(10),
        Duration::from_secs(60),
        Duration::from_secs(31_536_000),
        Duration::from_secs(31_536_000) + Duration::from_nanos(1),
        Duration::from_secs(u64::MAX),
        Duration::MAX,
    ]);
    prop_oneof![
        2 => bounds,
        4 => (0..120_000_u64).prop_map(Duration::from_millis),
        1 => any::<u64>().prop_map(Duration::from_nanos),
        1 => (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(s, n)| Duration::new(s, n)),
    ]
}

fn wish() -> impl Strategy<Value = Wish> {
    // Mostly in order, so that what is accepted is used often enough.
    let lease = prop_oneof![1 => time(), 3 => (10..100_000_u64).prop_map(Duration::from_millis)];
    let part = |lease: Duration| {
        prop_oneof![
            1 => time(),
            3 => (0..=100_u32).prop_map(move |percent| lease / 100 * percent),
        ]
    };
    let slots =
        prop_oneof![4 => 1..5_u32, 1 => prop::sample::select(vec![0, 1024, 1025, u32::MAX])];
    let longer = |lease: Duration| {
        prop_oneof![
            1 => time(),
            3 => (1..10_u32).prop_map(move |times| lease.saturating_mul(times)),
        ]
    };
    lease.prop_flat_map(move |lease| {
        let flags = any::<(bool, bool)>();
        let max_tenure = prop::option::of(longer(lease));
        let pattern = prop::option::of("\\PC{0,10}");
        let times = (time(), part(lease), time());
        (times, flags, slots.clone(), max_tenure, pattern, 0..250_u8).prop_map(
            move |(times, flags, slots, max_tenure, pattern, work)| Wish {
                wait: times.0,
                lease,
                min_lease: times.1,
                auto_extend: flags.0,
                notify: flags.1,
                slots,
                max_tenure,
                pattern,
                extension: times.2,
                work,
            },
        )
    })
}

#[test]
fn a_name_is_what_its_rule_says() {
    holds(2_500, nearly_a_name(), |text| super::name(text));
}

#[test]
fn a_node_id_comes_back_as_it_was() {
    let blank = prop::sample::select(vec![" ", "\t", "\u{85}", "\u{a0}", "\u{3000}", "\0"]);
    let blank = (blank, 0..200_usize).prop_map(|(blank, times)| blank.repeat(times));
    let behind_blanks = (blank, any::<String>()).prop_map(|(blank, rest)| blank + &rest);
    let any = prop_oneof![any::<String>(), behind_blanks];
    holds(2_000, any, |text| super::node_id(text));
}

#[test]
fn options_that_are_accepted_can_be_used() {
    holds(600, wish(), super::options);
}

#[test]
fn a_campaign_that_is_accepted_can_be_led() {
    let wish = (time(), time(), time(), time(), time(), any::<bool>()).prop_map(
        |(lease, grace, rest, pause, longest, fails)| CampaignWish {
            lease,
            grace,
            rest,
            pause,
            longest,
            fails,
        },
    );
    holds(600, wish, super::campaign);
}
