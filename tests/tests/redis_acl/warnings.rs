//! What the library warns of, for tests that look for it.

use std::fmt::{Debug, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The warnings of this process so far.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<String>>>);

/// Collects from now on; once in a process.
pub(crate) fn collect() -> Warnings {
    let warnings = Warnings::default();
    let set = tracing::subscriber::set_global_default(warnings.clone());
    set.expect("nobody else collects");
    warnings
}

impl Warnings {
    /// Those about the server at this address.
    pub(crate) fn of(&self, server: SocketAddr) -> Vec<String> {
        let warnings = self.0.lock().expect("nobody panicked");
        let about = |warning: &&String| warning.contains(&server.to_string());
        warnings.iter().filter(about).cloned().collect()
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}: {value:?} ", field.name());
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().expect("nobody panicked").push(text.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
