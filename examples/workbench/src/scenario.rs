//! [`Stage`]: where scenarios play, one at a time, and how far the present one has come.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use leader_core::CancellationToken;
use leader_tests::Server;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::bench::{Bench, Done, Undone, through};
use crate::script::{Act, Script};
use crate::settings::Settings;

/// How long a story and its servers may take for their end.
const CURTAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(crate) struct Stage {
    /// Held by whoever begins or ends a play: one at a time, and to its end.
    changing: tokio::sync::Mutex<()>,
    playing: Mutex<Option<Playing>>,
    /// How many have been played.
    plays: AtomicU64,
}

#[derive(Clone, Debug)]
struct Playing {
    /// No other play has it.
    number: u64,
    script: Script,
    step: u32,
    end: Option<Done>,
    /// Cancelled: it ends, and with it the servers that it has brought.
    cleared: CancellationToken,
    /// Cancelled by itself, once nothing of it runs any more.
    over: CancellationToken,
}

impl Stage {
    fn playing(&self) -> MutexGuard<'_, Option<Playing>> {
        self.playing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every scenario, and why it cannot be played, if it cannot.
    pub(crate) fn programme() -> Value {
        let servers = Server::can_be_started();
        let item = |script: &Script| {
            let why = servers.as_ref().err().filter(|_| script.needs_servers());
            json!({ "name": script.name(), "unavailable": why })
        };
        Script::ALL.iter().map(item).collect()
    }

    /// How far the present one has come.
    pub(crate) fn view(&self) -> Value {
        let playing = self.playing();
        let Some(playing) = playing.as_ref() else {
            return Value::Null;
        };
        let failure = playing.end.as_ref().and_then(|end| end.as_ref().err());
        json!({
            "name": playing.script.name(),
            "step": playing.step,
            "steps": playing.script.steps(),
            "over": playing.end.is_some(),
            "failure": failure.map(|failure| &failure.error),
            "failure_code": failure.map(|failure| failure.code),
        })
    }

    /// Plays `script` from its beginning, in place of what plays now.
    pub(crate) async fn play(self: &Arc<Self>, bench: &Arc<Bench>, script: Script) -> Done {
        if script.needs_servers() {
            Server::can_be_started().map_err(|error| Undone::new("no_servers", error))?;
        }
        let (stage, bench) = (self.clone(), bench.clone());
        through(async move {
            let _changing = stage.changing.lock().await;
            stage.end_play().await;
            stage.begin(&bench, script).await;
        })
        .await;
        Ok(())
    }

    /// Nothing plays any more, and the bench is as it was at first.
    pub(crate) async fn reset(self: &Arc<Self>, bench: &Arc<Bench>) -> Done {
        let (stage, bench) = (self.clone(), bench.clone());
        through(async move {
            let _changing = stage.changing.lock().await;
            stage.end_play().await;
            bench.lay_out(None, Settings::default()).await
        })
        .await
    }

    /// Nothing plays any more.
    pub(crate) async fn clear(&self) {
        let _changing = self.changing.lock().await;
        self.end_play().await;
    }

    async fn begin(self: &Arc<Self>, bench: &Arc<Bench>, script: Script) {
        let Playing {
            number,
            cleared,
            over,
            ..
        } = self.announce(script);
        // What a server could not be rid of may be in its way; then it says so itself.
        let _ = bench.lay_out(None, Settings::default()).await;
        let act = Act::new(bench.clone(), self.clone(), number);
        // On a thread of its own: the harness of the servers is not made to be sent from one to another.
        let runtime = Handle::current();
        let playing = tokio::task::spawn_blocking(move || {
            runtime.block_on(cleared.run_until_cancelled(script.play(act)))
        });
        let stage = self.clone();
        tokio::spawn(async move {
            let _over = over.drop_guard();
            let end = match playing.await {
                Ok(Some(end)) => end,
                Ok(None) => return,
                // The harness of the servers panics where it cannot go on.
                Err(error) => Err(Undone::new("servers_failed", panic_text(error))),
            };
            stage.end(number, end);
        });
    }

    /// From now on it is `script` that plays.
    fn announce(&self, script: Script) -> Playing {
        let playing = Playing {
            number: self.plays.fetch_add(1, Ordering::Relaxed),
            script,
            step: 0,
            end: None,
            cleared: CancellationToken::new(),
            over: CancellationToken::new(),
        };
        *self.playing() = Some(playing.clone());
        playing
    }

    /// Ends what plays, and waits until nothing of it can do anything any more.
    async fn end_play(&self) {
        let Some(playing) = self.playing().take() else {
            return;
        };
        playing.cleared.cancel();
        let _ = timeout(CURTAIN, playing.over.cancelled()).await;
    }

    /// The play of this number has come to `step`, if it plays still.
    pub(crate) fn step(&self, play: u64, step: u32) {
        let mut playing = self.playing();
        if let Some(playing) = of(play, &mut playing) {
            playing.step = step;
        }
    }

    /// The play of this number has ended, if it plays still.
    pub(crate) fn end(&self, play: u64, end: Done) {
        let mut playing = self.playing();
        if let Some(playing) = of(play, &mut playing) {
            playing.end.get_or_insert(end);
        }
    }
}

/// What plays, if it is the play of that number: a story that was cleared may be on its way to its next step still.
fn of(play: u64, playing: &mut Option<Playing>) -> Option<&mut Playing> {
    playing.as_mut().filter(|playing| playing.number == play)
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "it was stopped".to_owned();
    };
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(_) => "it could not go on".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cleared_says_nothing_of_what_plays_next() {
        let stage = Stage::default();
        let first = stage.announce(Script::Contention).number;
        stage.step(first, 1);
        let second = stage.announce(Script::Slots).number;
        stage.step(first, 2);
        stage.end(first, Ok(()));
        let view = stage.view();
        assert_eq!((&view["step"], &view["over"]), (&json!(0), &json!(false)));
        stage.step(second, 3);
        stage.end(second, Err(Undone::new("waited_in_vain", "in vain")));
        stage.end(second, Ok(()));
        let view = stage.view();
        assert_eq!(view["step"], 3);
        assert_eq!(view["failure_code"], "waited_in_vain");
    }
}
