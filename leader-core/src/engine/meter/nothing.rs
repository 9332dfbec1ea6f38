//! Without the feature `metrics` nothing is counted, and nothing of this is left in the program.

use tokio::time::Instant;

use super::Extension;
use crate::error::{BackendKind, LossReason};
use crate::label::Label;

#[derive(Debug, Default)]
pub(crate) struct Meter {}

#[derive(Debug)]
pub(crate) struct Standing;

#[derive(Debug)]
pub(crate) struct Held;

impl Meter {
    #[expect(clippy::unused_self, reason = "used with the feature")]
    pub(crate) fn standing(&self, _: &Label) -> Standing {
        Standing
    }
}

pub(crate) fn skipped(_: &Label) {}

pub(crate) fn attempt_failed(_: &Label, _: BackendKind) {}

pub(crate) fn extended(_: &Label, _: Extension) {}

pub(crate) fn lost(_: &Label, _: LossReason) {}

pub(crate) fn release_failed(_: &Label) {}

impl Held {
    pub(crate) fn begin(_: &Label, _begun: Instant, _freed: Option<Instant>) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "used with the feature")]
    pub(crate) fn end(&self) {}
}
