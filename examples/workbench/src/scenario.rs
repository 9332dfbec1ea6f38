//! [`Stage`]: scenarios that play on the bench, one at a time.

use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(crate) struct Stage;

impl Stage {
    pub(crate) fn view(&self) -> Value {
        json!(null)
    }

    pub(crate) fn programme(&self) -> Value {
        json!([])
    }
}
