//! Plays the faults of a storm, and writes down when each was in force.

use futures::future::join_all;

use crate::clock::Clock;
use crate::crew::Crew;
use crate::fault::Kind;
use crate::plan::Strike;
use crate::record::{Log, Record};
use crate::site::{End, Site, Trouble};

/// Who does the evil.
pub(crate) struct Nemesis<'a, S> {
    pub(crate) site: &'a S,
    pub(crate) crew: &'a Crew,
    pub(crate) log: &'a Log,
    pub(crate) clock: Clock,
}

impl<S: Site> Nemesis<'_, S> {
    /// All lanes at once, and in each of them one fault after the other. Returns when all is mended.
    pub(crate) async fn rage(&self, storm: Vec<Vec<Strike>>) {
        join_all(storm.into_iter().map(async |lane| {
            for strike in lane {
                tokio::time::sleep(strike.after).await;
                self.play(&strike).await;
            }
        }))
        .await;
    }

    async fn play(&self, strike: &Strike) {
        let Strike {
            kind,
            target,
            hold,
            delay,
            ..
        } = *strike;
        let from = self.clock.now();
        let mut forgot = None;
        let trouble = |whose, trouble| self.site.wires().trouble(whose, trouble, hold);
        match kind {
            Kind::WorkerKilled => self.crew.replace(target, hold).await,
            Kind::WorkerPaused | Kind::WorkerFrozen => self.crew.freeze(target, hold).await,
            Kind::WorkerCut => trouble(End::Worker(target), Trouble::Cut).await,
            Kind::WorkerSilenced => trouble(End::Worker(target), Trouble::Silent).await,
            Kind::WorkerSlowed => trouble(End::Worker(target), Trouble::Slow(delay)).await,
            Kind::ServerCut => {
                trouble(End::Server(self.site.server(target).await), Trouble::Cut).await;
            }
            Kind::ServerSlowed => {
                trouble(
                    End::Server(self.site.server(target).await),
                    Trouble::Slow(delay),
                )
                .await;
            }
            _ => forgot = self.site.strike(strike, self.clock).await,
        }
        self.log.write(&Record::Fault {
            kind,
            target,
            from,
            to: self.clock.now(),
            forgot,
        });
    }
}
