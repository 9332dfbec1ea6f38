//! What a subscriber to `tracing` is told: the pattern of the name, who, which slot, which fencing token; never the
//! secret token. And that it cannot touch a lease.
#![allow(missing_docs, reason = "a test")]

mod life;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use leader_core::Token;
use life::{SEED, a_life};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

type Fields = BTreeMap<&'static str, String>;

/// What was told: a span's name or an event's message, and the other fields.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<(String, Level, Fields)>>>);

#[derive(Default)]
struct Collect(Fields);

impl Visit for Collect {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl Told {
    fn note(&self, what: String, metadata: &Metadata<'_>, fields: Fields) {
        if metadata.target().starts_with("leader") {
            let told = (what, *metadata.level(), fields);
            self.0.lock().unwrap().push(told);
        }
    }
}

impl Subscriber for Told {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Collect::default();
        span.record(&mut fields);
        self.note(span.metadata().name().to_owned(), span.metadata(), fields.0);
        Id::from_u64(1)
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Collect::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        self.note(message, event.metadata(), fields.0);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn spans_and_events_say_what_who_which_slot_and_which_fencing_token() {
    let told = Told::default();
    let subscribed = tracing::subscriber::set_default(told.clone());
    a_life().await;
    drop(subscribed);
    let told = told.0.lock().unwrap().clone();

    // Those that are about a tenure say which.
    let about_a_tenure = [
        ("leading", Level::INFO),
        ("elected", Level::DEBUG),
        ("extended", Level::TRACE),
        ("released", Level::DEBUG),
        ("lost the lease", Level::WARN),
        ("the store failed; trying again", Level::DEBUG),
    ];
    let others = [
        ("standing", Level::DEBUG),
        ("skipped", Level::DEBUG),
        ("not elected", Level::DEBUG),
        ("a slot was not given back", Level::DEBUG),
    ];
    for (what, level) in about_a_tenure.into_iter().chain(others) {
        let all: Vec<_> = told.iter().filter(|(told, ..)| told == what).collect();
        assert!(!all.is_empty(), "{what} was not told: {told:#?}");
        for (_, at, fields) in all {
            assert_eq!(*at, level, "{what}");
            assert_eq!(fields["name"], "\"report:{tenant}\"", "{what}");
            assert!(["node", "peer"].contains(&&*fields["node_id"]), "{what}");
            if about_a_tenure.contains(&(what, level)) {
                assert_eq!(fields["slot"], "0", "{what}");
                assert!(fields["fence"].parse::<u64>().unwrap() > 0, "{what}");
            }
        }
    }
    let field = |what: &str, field: &str| {
        let of = told.iter().find(|(told, ..)| told == what);
        of.and_then(|(.., fields)| fields.get(field)).cloned()
    };
    assert_eq!(field("skipped", "holder").as_deref(), Some("node"));
    assert!(field("lost the lease", "reason").is_some());
    assert!(field("the store failed; trying again", "step").is_some());
    assert!(field("not elected", "error").is_some());
}

#[tokio::test(start_paused = true)]
async fn no_subscriber_sees_a_token() {
    let told = Told::default();
    let subscribed = tracing::subscriber::set_default(told.clone());
    a_life().await;
    drop(subscribed);
    let told = format!("{:?}", told.0.lock().unwrap()).to_lowercase();
    // All tokens of a life begin with its seed: as digits, with dashes between, or byte by byte.
    let token = Token::from_bytes((u128::from(SEED) << 64).to_be_bytes());
    let digits = &token.to_hex()[..12];
    let dashed = format!("{}-{}", &digits[..8], &digits[8..]);
    let bytes = token.as_bytes()[..4].iter().map(u8::to_string);
    let bytes = bytes.collect::<Vec<_>>().join(", ");
    for secret in [digits, &dashed, &bytes] {
        assert!(!told.contains(secret), "{secret} in {told}");
    }
    // It would be found.
    assert!(format!("{:?}", token.as_bytes()).contains(&bytes));
}

/// Panics whenever it is told anything of one kind.
struct Panicking {
    when: &'static str,
    panics: Arc<AtomicU64>,
}

impl Panicking {
    fn told(&self, kind: &str) {
        if kind == self.when {
            self.panics.fetch_add(1, Ordering::Relaxed);
            panic!("a subscriber's");
        }
    }
}

impl Subscriber for Panicking {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        if metadata.target().starts_with("leader") {
            self.told("enabled");
        }
        metadata.target().starts_with("leader")
    }

    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        tracing::subscriber::Interest::sometimes()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        self.told("new_span");
        Id::from_u64(1)
    }

    fn event(&self, _: &Event<'_>) {
        self.told("event");
    }

    fn enter(&self, _: &Id) {
        self.told("enter");
    }

    fn exit(&self, _: &Id) {
        self.told("exit");
    }

    fn try_close(&self, _: Id) -> bool {
        self.told("close");
        true
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
}

#[tokio::test(start_paused = true)]
async fn subscribers_that_panic() {
    for when in ["enabled", "new_span", "event", "enter", "exit", "close"] {
        let panics = Arc::new(AtomicU64::new(0));
        let subscribed = tracing::subscriber::set_default(Panicking {
            when,
            panics: panics.clone(),
        });
        a_life().await;
        drop(subscribed);
        assert!(
            panics.load(Ordering::Relaxed) > 5,
            "{when} was told, and panicked"
        );
    }
}
