//! [`Line`]: the way to a server, which is there as soon as it can be.

use std::sync::Arc;
use std::time::Duration;

use leader_core::store::{LeaseStore as _, StoreError};
use leader_core::{BackendKind, LeaderError};
use leader_redis::{RedisElectorBuilder, RedisStore};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::reach::EndOnDrop;

/// From one attempt to connect to the next, of whoever tries again.
pub(crate) const RECONNECT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
enum State {
    /// The first attempt is under way.
    Begun,
    Failed(LeaderError),
    Open(RedisStore),
}

/// Tried again and again in the background until it is open, so that one server that is dead keeps nobody from the others.
/// An open one is kept open by the store itself.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    state: watch::Receiver<State>,
    /// While the store cannot be asked for its own.
    command_timeout: Duration,
    connecting: Arc<EndOnDrop>,
}

impl Line {
    /// A way to the server of `builder`, on the runtime of the caller, with which it ends.
    pub(crate) fn to(builder: RedisElectorBuilder, command_timeout: Duration) -> Self {
        let (tell, state) = watch::channel(State::Begun);
        let connecting = tokio::spawn(async move {
            loop {
                match builder.clone().connect_store().await {
                    Ok(store) => return drop(tell.send(State::Open(store))),
                    Err(error) => drop(tell.send_replace(State::Failed(error))),
                }
                sleep(RECONNECT).await;
            }
        });
        Self {
            state,
            command_timeout,
            connecting: Arc::new(EndOnDrop(connecting.abort_handle())),
        }
    }

    /// The store, or why it is not reached, as soon as one or the other is known.
    pub(crate) async fn opened(&self) -> Result<RedisStore, LeaderError> {
        let mut state = self.state.clone();
        let known = state.wait_for(|state| !matches!(state, State::Begun)).await;
        match known.as_deref() {
            Ok(State::Open(store)) => Ok(store.clone()),
            Ok(State::Failed(error)) => Err(error.clone()),
            Ok(State::Begun) | Err(_) => Err(LeaderError::ShutDown),
        }
    }

    /// The same for a step, which is not sent then.
    pub(crate) async fn store(&self) -> Result<RedisStore, StoreError> {
        self.opened().await.map_err(|error| match error {
            LeaderError::Backend { error, .. } => error.not_run(),
            other => StoreError::new(BackendKind::Other, other.to_string()).not_run(),
        })
    }

    /// The store, if it is reached already.
    pub(crate) fn now(&self) -> Option<RedisStore> {
        match &*self.state.borrow() {
            State::Open(store) => Some(store.clone()),
            State::Begun | State::Failed(_) => None,
        }
    }

    pub(crate) fn command_timeout(&self) -> Duration {
        self.now()
            .map_or(self.command_timeout, |store| store.command_timeout())
    }

    pub(crate) async fn close(&self) {
        self.connecting.0.abort();
        if let Some(store) = self.now() {
            store.close().await;
        }
    }
}
