//! What happens to a connection besides answers: messages, losses, returns.

use fred::error::Error;
use fred::interfaces::EventInterface;
use fred::types::Message;
use fred::types::config::Server;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{mpsc, watch};

use super::Shared;
use crate::reply::Reply;

/// Whether the connection is lost, and why it was or could not be made, the last time.
pub(super) struct Mishaps {
    errors: Receiver<(Error, Option<Server>)>,
    returns: Receiver<Server>,
    last: Option<Error>,
    lost: bool,
}

impl Mishaps {
    pub(super) fn of(client: &Shared) -> Self {
        Self {
            errors: client.error_rx(),
            returns: client.reconnect_rx(),
            last: None,
            lost: false,
        }
    }

    pub(super) fn last(&mut self) -> Option<&Error> {
        self.look();
        self.last.as_ref()
    }

    /// Whether the connection was lost and has not come back yet. fred goes on to call itself connected until it has
    /// tried in vain to be.
    pub(super) fn are_not_over(&mut self) -> bool {
        self.look();
        self.lost
    }

    /// Errors first: a return that follows one of them is then seen now or the next time, never missed.
    fn look(&mut self) {
        loop {
            match self.errors.try_recv() {
                Ok((error, _)) if error.is_canceled() => {}
                Ok((error, _)) => {
                    self.last = Some(error);
                    self.lost = true;
                }
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        loop {
            match self.returns.try_recv() {
                Ok(_) | Err(TryRecvError::Lagged(_)) => self.lost = false,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }
}

/// Waits until it was tried in vain to come back. What was to be sent by then waits behind that, for as long as it takes.
pub(super) struct Despair {
    errors: Receiver<(Error, Option<Server>)>,
}

impl Despair {
    pub(super) fn of(client: &Shared) -> Self {
        Self {
            errors: client.error_rx(),
        }
    }

    pub(super) async fn of_coming_back(mut self) -> Error {
        loop {
            match self.errors.recv().await {
                // The loss of a connection has the server's name.
                Ok((error, None)) if !error.is_canceled() => return error,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return std::future::pending().await,
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
    Message { channel: String, told: Reply },
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
                        told: message.value.into(),
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
