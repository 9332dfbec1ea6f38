//! [`Around`]: a span around work that a subscriber to `tracing` must not be able to end.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tracing::Span;

use crate::engine::{Tenure, quietly};
use crate::label::Label;
use crate::node::NodeId;

/// A span that is entered and left without minding a subscriber that panics. Boxed: whoever waits or leads has room for
/// it, and few have one.
#[derive(Debug)]
pub(crate) struct Around(Option<Box<Span>>);

impl Around {
    #[inline]
    pub(crate) fn nothing() -> Self {
        Self(None)
    }

    /// The span of what runs under a tenure.
    pub(crate) fn leading(tenure: &Tenure) -> Self {
        if !tracing::level_enabled!(tracing::Level::INFO) {
            return Self::nothing();
        }
        let span = quietly(|| {
            tracing::info_span!(
                "leading",
                name = tenure.label.as_str(),
                node_id = %tenure.id.node_id,
                slot = tenure.id.slot,
                fence = tenure.id.fence.get(),
            )
        });
        Self(span.map(Box::new))
    }

    /// The span of an attempt to be elected.
    pub(crate) fn standing(label: &Label, node_id: &NodeId, slots: u32) -> Self {
        if !tracing::level_enabled!(tracing::Level::DEBUG) {
            return Self::nothing();
        }
        let name = label.as_str();
        let span = quietly(|| tracing::debug_span!("standing", name, %node_id, slots));
        Self(span.map(Box::new))
    }

    /// Does `work` inside the span.
    #[inline]
    pub(crate) fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some(span) = &self.0 else {
            return work();
        };
        let _entered = Entered(quietly(|| span.enter()));
        work()
    }

    /// Polls and drops `future` inside the span.
    pub(crate) fn future<F>(self, future: F) -> Inside<F> {
        Inside {
            future: Some(future),
            span: self,
        }
    }
}

impl Drop for Around {
    fn drop(&mut self) {
        if let Some(span) = self.0.take() {
            quietly(|| drop(span));
        }
    }
}

/// Leaves the span when dropped, also by a panic of the work inside.
struct Entered<'a>(Option<tracing::span::Entered<'a>>);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let entered = self.0.take();
        quietly(|| drop(entered));
    }
}

pin_project! {
    /// A future inside a span.
    pub(crate) struct Inside<F> {
        #[pin]
        future: Option<F>,
        span: Around,
    }

    impl<F> PinnedDrop for Inside<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.future.is_some() {
                this.span.inside(|| this.future.set(None));
            }
        }
    }
}

impl<F: Future> Future for Inside<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        this.span.inside(|| {
            let Some(future) = this.future.as_mut().as_pin_mut() else {
                // Polled after its end.
                return Poll::Pending;
            };
            let polled = future.poll(cx);
            if polled.is_ready() {
                this.future.set(None);
            }
            polled
        })
    }
}
