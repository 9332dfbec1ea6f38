//! What happens to a connection besides answers: messages, losses, returns.

use fred::error::Error;
use fred::interfaces::EventInterface;
use fred::types::Message;
use fred::types::config::Server;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{mpsc, watch};

use super::Shared;

/// Why the connection was lost or could not be made, the last time.
pub(super) struct Mishaps {
    errors: Receiver<(Error, Option<Server>)>,
    last: Option<Error>,
}

impl Mishaps {
    pub(super) fn of(client: &Shared) -> Self {
        Self {
            errors: client.error_rx(),
            last: None,
        }
    }

    pub(super) fn last(&mut self) -> Option<&Error> {
        loop {
            match self.errors.try_recv() {
                Ok((error, _)) if error.is_canceled() => {}
                Ok((error, _)) => self.last = Some(error),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return self.last.as_ref(),
            }
        }
    }
}

/// What happens to a connection, or to those of a cluster, as it happens.
pub(crate) struct Incidents {
    source: Source,
}

enum Source {
    One {
        messages: Receiver<Message>,
        reconnects: Receiver<Server>,
    },
    Many {
        told: mpsc::UnboundedReceiver<Incident>,
        /// Slots that were found at another node.
        moves: watch::Receiver<u64>,
    },
}

#[derive(Debug)]
pub(crate) enum Incident {
    /// A message came in.
    Message { channel: String, text: String },
    /// Messages were lost.
    Lost,
    /// The connection was lost and has come back, without its subscriptions; or a slot went to another node, which knows
    /// nothing of them.
    Reconnected,
    /// The connection was closed for good.
    Closed,
}

impl Incidents {
    pub(super) fn of(client: &Shared) -> Self {
        let source = Source::One {
            messages: client.message_rx(),
            reconnects: client.reconnect_rx(),
        };
        Self { source }
    }

    pub(super) fn of_many(
        told: mpsc::UnboundedReceiver<Incident>,
        moves: watch::Receiver<u64>,
    ) -> Self {
        let source = Source::Many { told, moves };
        Self { source }
    }

    /// Waits for the next one. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Incident {
        match &mut self.source {
            Source::One {
                messages,
                reconnects,
            } => tokio::select! {
                message = messages.recv() => match message {
                    Ok(message) => Incident::Message {
                        channel: message.channel.to_string(),
                        text: message.value.into_string().unwrap_or_default(),
                    },
                    Err(RecvError::Lagged(_)) => Incident::Lost,
                    Err(RecvError::Closed) => Incident::Closed,
                },
                reconnect = reconnects.recv() => match reconnect {
                    Ok(_) | Err(RecvError::Lagged(_)) => Incident::Reconnected,
                    Err(RecvError::Closed) => Incident::Closed,
                },
            },
            Source::Many { told, moves } => tokio::select! {
                incident = told.recv() => incident.unwrap_or(Incident::Closed),
                moved = moves.changed() => match moved {
                    Ok(()) => Incident::Reconnected,
                    Err(_) => Incident::Closed,
                },
            },
        }
    }
}
