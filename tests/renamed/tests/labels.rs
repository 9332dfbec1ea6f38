//! Spans are labelled with the name as the attribute writes it, not as it is filled in.
#![allow(missing_docs, reason = "a test")]

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use leader::{LeaderError, LeaseOptions, LocalElector, leader_election};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[leader_election(name = "report:{tenant}", crate = "leader")]
async fn literal(elector: &LocalElector, tenant: &str) -> Result<(), LeaderError> {
    Ok(())
}

#[leader_election(name = format!("partner:{}", tenant.len()), crate = "leader")]
async fn formatted(elector: &LocalElector, tenant: &str) -> Result<(), LeaderError> {
    Ok(())
}

#[leader_election(name = "given:{tenant}", options = &LeaseOptions::default(), crate = "leader")]
async fn given(elector: &LocalElector, tenant: &str) -> Result<(), LeaderError> {
    Ok(())
}

/// The field `name` of each span.
#[derive(Clone, Default)]
struct Labels(Arc<Mutex<Vec<String>>>);

impl Subscriber for Labels {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        if span.metadata().name() == "leading" {
            span.record(&mut self.clone());
        }
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Visit for Labels {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "name" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tenants_do_not_explode_a_dashboard() {
    let labels = Labels::default();
    let _subscribed = tracing::subscriber::set_default(labels.clone());
    let elector = LocalElector::new();
    literal(&elector, "acme").await.unwrap();
    formatted(&elector, "acme").await.unwrap();
    given(&elector, "acme").await.unwrap();
    let labels = labels.0.lock().unwrap().clone();
    assert_eq!(
        labels,
        [
            "\"report:{tenant}\"",
            "\"partner:{}\"",
            "\"given:{tenant}\""
        ]
    );
}
