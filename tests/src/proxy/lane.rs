//! One direction of a connection: what has been read and not yet been written.

use crate::resp::{self, Stop};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Lane {
    partial: Vec<u8>,
    queue: VecDeque<(Instant, Vec<u8>)>,
}

impl Lane {
    /// Takes in what was read, and gives the frames that are complete by it. What is no Redis protocol (TLS) is one
    /// frame as it comes.
    pub(super) fn frames(&mut self, read: &[u8]) -> Vec<Vec<u8>> {
        self.partial.extend_from_slice(read);
        let mut frames = Vec::new();
        while !self.partial.is_empty() {
            let length = match resp::parse(&self.partial) {
                Ok((_, length)) => length,
                Err(Stop::Malformed) => self.partial.len(),
                Err(Stop::Incomplete) => break,
            };
            frames.push(self.partial.drain(..length).collect());
        }
        frames
    }

    pub(super) fn push(&mut self, frame: Vec<u8>, delay: Duration) {
        self.queue.push_back((Instant::now() + delay, frame));
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queue.front().map(|(due, _)| *due)
    }

    pub(super) fn pop_due(&mut self) -> Option<Vec<u8>> {
        if self.next_due()? <= Instant::now() {
            self.pop()
        } else {
            None
        }
    }

    pub(super) fn pop(&mut self) -> Option<Vec<u8>> {
        self.queue.pop_front().map(|(_, frame)| frame)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}
