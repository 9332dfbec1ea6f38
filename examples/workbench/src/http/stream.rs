//! Server-sent events: each page reads at its own pace, and nobody waits for it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::Workbench;
use super::refusal::Refusal;
use crate::bench::Undone;
use crate::journal::Since;

/// How many events a page is told at once. More than that since the last time, and it has missed the rest.
pub(super) const MOST_EVENTS: usize = 250;

/// One open page.
struct Page {
    app: Workbench,
    states: watch::Receiver<Arc<str>>,
    /// The last event that was told.
    seen: u64,
    /// Of which volume of the journal; 0 before the first.
    volume: u64,
    _place: OwnedSemaphorePermit,
}

pub(super) async fn events(
    State(app): State<Workbench>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let place = app.pages.clone().try_acquire_owned().map_err(|_| {
        let error = "too many pages are open; close one of them";
        Refusal::undone(
            StatusCode::SERVICE_UNAVAILABLE,
            Undone::new("too_many_pages", error),
        )
    })?;
    let closing = app.closing.clone();
    let page = Page {
        states: app.views.subscribe(),
        app,
        seen: 0,
        volume: 0,
        _place: place,
    };
    let frames = stream::unfold(page, |mut page| async move {
        let frame = page.next().await?;
        Some((Ok(frame), page))
    });
    let frames = frames.take_until(closing.cancelled_owned());
    Ok(Sse::new(frames).keep_alive(KeepAlive::new().interval(Duration::from_secs(10))))
}

impl Page {
    /// What has happened since the last frame. It is made when the browser takes it: one that is slow gets fewer.
    async fn next(&mut self) -> Option<Event> {
        self.states.changed().await.ok()?;
        let state = self.states.borrow_and_update().clone();
        let journal = &self.app.bench.world.journal;
        let Since {
            volume,
            missed,
            events,
        } = journal.since(self.seen, MOST_EVENTS);
        // A page begins anew when it has missed something; the first of all its frames is a beginning, too.
        let (first, other_volume) = (self.volume == 0, self.volume != volume);
        let missed = if other_volume { 0 } else { missed };
        let (kind, events) = if first || other_volume || missed > 0 {
            ("snapshot", journal.since(0, MOST_EVENTS).events)
        } else {
            ("update", events)
        };
        self.volume = volume;
        self.seen = events.last().map_or(self.seen, |event| event.seq);
        let events = serde_json::to_string(&events).unwrap_or_default();
        let data = format!(r#"{{"missed":{missed},"state":{state},"events":{events}}}"#);
        Some(Event::default().event(kind).data(data))
    }
}
