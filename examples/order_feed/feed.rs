//! The orders, kept and numbered by a broker that can be read from any number: a Redis Stream, a Kafka partition, a
//! table. Here it is in memory.

use futures::{Stream, stream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) number: u64,
}

pub(crate) struct Feed {
    /// Orders 1 to this one are there.
    last: watch::Sender<u64>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            last: watch::Sender::new(0),
        }
    }
}

impl Feed {
    pub(crate) fn publish(&self) {
        self.last.send_modify(|last| *last += 1);
    }

    /// The orders from this number on, without an end.
    pub(crate) fn read_from(&self, number: u64) -> impl Stream<Item = Order> + use<> {
        stream::unfold(
            (number, self.last.subscribe()),
            |(number, mut last)| async move {
                // An error means that the broker is gone.
                let there = last.wait_for(|last| *last >= number).await.is_ok();
                there.then_some((Order { number }, (number + 1, last)))
            },
        )
    }
}
