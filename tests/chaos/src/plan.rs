//! Storms of faults, from a seed.

use std::time::Duration;

use leader_sim::Dice;

use crate::fault::{Kind, Side};
use crate::topology::Topology;

/// One fault that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    pub(crate) kind: Kind,
    /// The number of a worker or of a server.
    pub(crate) target: usize,
    /// How long after the one before it in its lane.
    pub(crate) after: Duration,
    /// For how long.
    pub(crate) hold: Duration,
    /// What is added to each way of a request where the network is slow.
    pub(crate) delay: Duration,
}

/// Deals out faults so that each kind has its share.
#[derive(Debug)]
pub(crate) struct Plan {
    topology: Topology,
    workers: usize,
    longest_lease: Duration,
    dice: Dice,
    deck: Vec<Kind>,
    decks: usize,
}

impl Plan {
    pub(crate) fn new(
        topology: Topology,
        workers: usize,
        longest_lease: Duration,
        seed: u64,
    ) -> Self {
        Self {
            topology,
            workers,
            longest_lease,
            dice: Dice::new(seed),
            deck: Vec::new(),
            decks: 0,
        }
    }

    /// The next storm, in lanes: the faults of a lane come one after the other, and lanes do not wait for each other. A
    /// worker is a lane, and so are as many servers as may be in trouble at once.
    pub(crate) fn storm(&mut self) -> Vec<Vec<Strike>> {
        let size = if self.dice.chance(20) {
            1
        } else {
            self.dice.between(6, 16)
        };
        let mut lanes: Vec<Vec<Strike>> = Vec::new();
        lanes.resize(self.workers + 2, Vec::new());
        for _ in 0..size {
            let strike = self.strike();
            let lane = match strike.kind.side() {
                Side::Worker => strike.target,
                Side::Server => self.workers + self.minority(strike.target),
            };
            lanes[lane].push(strike);
        }
        lanes.retain(|lane| !lane.is_empty());
        lanes
    }

    /// Whether each kind was dealt out.
    pub(crate) fn had_all(&self) -> bool {
        self.decks > 1 || self.decks == 1 && self.deck.is_empty()
    }

    /// How long the lull after it is to be once all is well.
    pub(crate) fn rest(&mut self) -> Duration {
        Duration::from_millis(self.dice.between(0, 100))
    }

    /// Which of the two servers that may be in trouble at once this one is.
    fn minority(&self, server: usize) -> usize {
        usize::from(self.topology == Topology::Quorum && server >= 3)
    }

    fn strike(&mut self) -> Strike {
        let kind = self.draw();
        let pick = |dice: &mut Dice, from: usize, to: usize| {
            let number = dice.between(from as u64, to as u64 - 1);
            usize::try_from(number).unwrap_or_default()
        };
        let target = match (kind.side(), self.topology, kind) {
            (Side::Worker, ..) => pick(&mut self.dice, 0, self.workers),
            // These two keep nothing on disk.
            (_, Topology::Quorum, Kind::ServerForgot) => pick(&mut self.dice, 3, 5),
            (_, Topology::Quorum, Kind::ServerKilled) => pick(&mut self.dice, 0, 3),
            (_, Topology::Quorum, _) => pick(&mut self.dice, 0, 5),
            // By the name that lives there.
            (_, Topology::Cluster, _) => pick(&mut self.dice, 0, 7),
            _ => 0,
        };
        let lease = u64::try_from(self.longest_lease.as_millis()).unwrap_or(u64::MAX);
        let (low, high) = match kind {
            Kind::WorkerFrozen => (lease + 50, lease * 3 / 2),
            // Until no lease that it knew can be in force.
            Kind::ServerForgot => (lease + 100, lease + 200),
            Kind::WorkerPaused => (20, 250),
            Kind::WorkerKilled | Kind::ServerKilled | Kind::Failover => (0, 200),
            _ => (30, 350),
        };
        Strike {
            kind,
            target,
            after: Duration::from_millis(self.dice.between(0, 100)),
            hold: Duration::from_millis(self.dice.between(low, high)),
            delay: Duration::from_millis(self.dice.between(5, 150)),
        }
    }

    fn draw(&mut self) -> Kind {
        if self.deck.is_empty() {
            self.decks += 1;
            self.deck = Kind::of(self.topology);
            for last in (1..self.deck.len()).rev() {
                let other = self.dice.between(0, last as u64);
                self.deck.swap(last, usize::try_from(other).unwrap_or(last));
            }
        }
        self.deck.pop().unwrap_or(Kind::WorkerPaused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn plan(seed: u64) -> Plan {
        Plan::new(Topology::Quorum, 5, Duration::from_secs(1), seed)
    }

    #[test]
    fn a_seed_gives_the_same_storms_again_and_another_gives_others() {
        let storms = |seed| {
            let mut plan = plan(seed);
            (0..20).map(|_| plan.storm()).collect::<Vec<_>>()
        };
        assert_eq!(storms(1), storms(1));
        assert_ne!(storms(1), storms(2));
    }

    #[test]
    fn each_kind_has_its_share_and_a_majority_is_left_alone() {
        let mut plan = plan(3);
        let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
        for _ in 0..100 {
            for lane in plan.storm() {
                let servers = |strike: &&Strike| strike.kind.side() == Side::Server;
                let small = lane.iter().filter(servers).all(|strike| strike.target < 3);
                let large = lane.iter().filter(servers).all(|strike| strike.target >= 3);
                assert!(small || large, "one of each group at a time: {lane:?}");
                for strike in lane {
                    *counts.entry(strike.kind).or_default() += 1;
                }
            }
        }
        let (least, most) = (counts.values().min(), counts.values().max());
        assert_eq!(counts.len(), Kind::of(Topology::Quorum).len());
        assert!(
            least
                .zip(most)
                .is_some_and(|(least, most)| most - least <= 1),
            "{counts:?}"
        );
    }
}
