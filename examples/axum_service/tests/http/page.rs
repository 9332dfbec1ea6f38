//! The page of metrics, as Prometheus reads it.

use std::collections::BTreeSet;

use leader_tests::{Server, until};
use prometheus_parse::{Scrape, Value};

use crate::support::{Instance, LIMIT, leader};

async fn scrape(instance: &Instance) -> Scrape {
    let page = instance.get("/metrics").await;
    assert_eq!(page.status, 200);
    // This parser takes the first `}` for the end of the labels, also between quotes, where the format allows any.
    let text = page.text.replace("{tenant}", "<tenant>");
    let lines = text.lines().map(|line| Ok(line.to_owned()));
    Scrape::parse(lines).unwrap_or_else(|error| panic!("{error} in {}", page.text))
}

/// The counter or gauge, summed up over what is not asked for.
#[expect(clippy::cast_possible_truncation, reason = "whole numbers")]
fn value(scrape: &Scrape, metric: &str, labels: &[(&str, &str)]) -> i64 {
    let samples = scrape.samples.iter().filter(|sample| {
        sample.metric == metric
            && labels
                .iter()
                .all(|(name, value)| sample.labels.get(name) == Some(value))
    });
    let values = samples.map(|sample| match sample.value {
        Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => value,
        _ => panic!("{sample:?}"),
    });
    values.sum::<f64>().round() as i64
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_read_and_says_who_leads() {
    let server = Server::start().await;
    let a = Instance::start(&server, "a").await;
    leader(&[&a]).await;
    let b = Instance::start(&server, "b").await;
    for tenant in ["acme", "umbrella"] {
        assert_eq!(a.post(&format!("/reports/{tenant}")).await.status, 200);
    }
    // The follower stands by now, and the leader has extended its lease.
    let scheduler = [("name", "scheduler")];
    until("the follower is counted", LIMIT, async || {
        value(&scrape(&b).await, "leader_election_waiting", &scheduler) == 1
    })
    .await;
    let extended = [("name", "scheduler"), ("result", "extended")];
    until("an extension is counted", LIMIT, async || {
        value(
            &scrape(&a).await,
            "leader_election_extensions_total",
            &extended,
        ) >= 1
    })
    .await;

    let (of_a, of_b) = (scrape(&a).await, scrape(&b).await);
    let of = |metric: &str, labels: &[(&str, &str)]| {
        (value(&of_a, metric, labels), value(&of_b, metric, labels))
    };
    assert_eq!(of("leader_election_master_status", &scheduler), (1, 0));
    assert!(
        of_b.samples
            .iter()
            .any(|sample| sample.metric == "leader_election_master_status"),
        "a follower shows 0"
    );
    assert_eq!(of("leader_election_held", &scheduler), (1, 0));
    assert_eq!(of("leader_election_elections_total", &scheduler), (1, 0));
    assert_eq!(of("leader_election_attempts_total", &scheduler), (1, 1));
    let reports = [("name", "report:<tenant>")];
    assert_eq!(value(&of_a, "leader_election_elections_total", &reports), 2);
    assert_eq!(value(&of_a, "leader_election_held", &reports), 0);

    // Histograms, with the buckets that the service chose.
    let holds: Vec<_> = of_a
        .samples
        .iter()
        .filter(|sample| sample.metric == "leader_election_hold_seconds")
        .collect();
    assert_eq!(holds.len(), 1, "{holds:?}");
    let Value::Histogram(buckets) = &holds[0].value else {
        panic!("no histogram: {holds:?}");
    };
    let all = buckets.iter().find(|bucket| bucket.less_than.is_infinite());
    assert!(
        all.is_some_and(|all| (all.count - 2.0).abs() < 0.1),
        "{buckets:?}"
    );

    // Every metric is described, its name says its kind and unit, and no label was filled in.
    let mut families = BTreeSet::new();
    for sample in &of_a.samples {
        let name = sample.metric.as_str();
        assert!(name.starts_with("leader_election_"), "{name}");
        for (_, label) in sample.labels.iter() {
            assert!(
                !label.contains("acme") && !label.contains("umbrella"),
                "{sample:?}"
            );
        }
        let fits = match sample.value {
            Value::Counter(_) => name.ends_with("_total"),
            Value::Histogram(_) => name.ends_with("_seconds"),
            _ => !name.ends_with("_total") && !name.ends_with("_seconds"),
        };
        assert!(fits, "{sample:?}");
        let family = name.trim_end_matches("_count").trim_end_matches("_sum");
        families.insert(family);
    }
    for name in families {
        assert!(
            of_a.docs.get(name).is_some_and(|help| !help.is_empty()),
            "{name} is not described"
        );
    }
}
