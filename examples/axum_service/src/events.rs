//! What happens in this process's elections, as server-sent events.

use std::convert::Infallible;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt};
use leader_core::{ElectorExt, LeaderEvent};
use serde_json::{Value, json};

use crate::app::App;

/// Ends with the service: a stream without an end would keep it from closing.
pub(crate) async fn stream(
    State(app): State<App>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = app.elector.events().filter_map(async |event| told(&event));
    let events = events
        .take_until(app.closing.clone().cancelled_owned())
        .map(|(event, data)| Ok(Event::default().event(event).data(data.to_string())));
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// An event's name and data, of those that people want to see.
fn told(event: &LeaderEvent) -> Option<(&'static str, Value)> {
    Some(match event {
        LeaderEvent::Elected { tenure, .. } => (
            "elected",
            json!({ "name": tenure.name, "fence": tenure.fence }),
        ),
        LeaderEvent::Lost { tenure, reason, .. } => (
            "lost",
            json!({ "name": tenure.name, "fence": tenure.fence, "reason": reason.as_str() }),
        ),
        LeaderEvent::Released { tenure, .. } => (
            "released",
            json!({ "name": tenure.name, "fence": tenure.fence }),
        ),
        LeaderEvent::Failed { name, step, .. } => {
            ("failed", json!({ "name": name, "step": step.to_string() }))
        }
        LeaderEvent::Missed { count, .. } => ("missed", json!({ "count": count })),
        _ => return None,
    })
}
