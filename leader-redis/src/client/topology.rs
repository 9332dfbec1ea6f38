//! [`Topology`]: which node of a cluster has which slot, as far as is known.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Node;
use crate::reply::Reply;

const SLOTS: usize = 16_384;

/// Which node has which slot. Shared by the connections for commands and those for messages, so that what one of them
/// learns the other knows.
pub(crate) struct Topology {
    map: Mutex<Map>,
    /// Counts the times a slot was found to have gone to another node.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Map {
    nodes: Vec<Node>,
    /// By slot, the place in `nodes` of its owner.
    owners: Vec<Option<u16>>,
}

impl Map {
    fn owner(&self, slot: u16) -> Option<&Node> {
        let at = (*self.owners.get(usize::from(slot))?)?;
        self.nodes.get(usize::from(at))
    }

    fn give(&mut self, slots: impl IntoIterator<Item = u16>, node: Node) {
        let known = self.nodes.iter().position(|known| *known == node);
        let at = known.unwrap_or_else(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        });
        self.owners.resize(SLOTS, None);
        for slot in slots {
            if let Some(owner) = self.owners.get_mut(usize::from(slot)) {
                *owner = u16::try_from(at).ok();
            }
        }
    }
}

impl Topology {
    pub(crate) fn new() -> Self {
        Self {
            map: Mutex::default(),
            changes: watch::Sender::new(0),
        }
    }

    fn map(&self) -> MutexGuard<'_, Map> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn owner(&self, slot: u16) -> Option<Node> {
        self.map().owner(slot).cloned()
    }

    /// Every node that has a slot.
    pub(crate) fn primaries(&self) -> HashSet<Node> {
        let map = self.map();
        let owners: HashSet<u16> = map.owners.iter().copied().flatten().collect();
        let nodes = owners
            .into_iter()
            .filter_map(|at| map.nodes.get(usize::from(at)));
        nodes.cloned().collect()
    }

    /// Notes what a node said of one slot.
    pub(super) fn moved(&self, slot: u16, to: Node) {
        let mut map = self.map();
        if map.owner(slot) != Some(&to) {
            map.give([slot], to);
            drop(map);
            self.changes.send_modify(|count| *count += 1);
        }
    }

    /// Reads an answer of `asked` to `CLUSTER SLOTS`; `None` when it is none, or serves no slot.
    pub(crate) fn read(&self, answer: &Reply, asked: &Node) -> Option<()> {
        let Reply::List(ranges) = answer else {
            return None;
        };
        let mut map = Map::default();
        for range in ranges {
            let Reply::List(range) = range else {
                return None;
            };
            let [first, last, primary, ..] = range.as_slice() else {
                return None;
            };
            map.give(number(first)?..=number(last)?, node(primary, asked)?);
        }
        if map.nodes.is_empty() {
            return None;
        }
        let mut known = self.map();
        let changed = (0..16_384).any(|slot| known.owner(slot) != map.owner(slot));
        *known = map;
        drop(known);
        if changed {
            self.changes.send_modify(|count| *count += 1);
        }
        Some(())
    }

    /// What is told when a slot was found to have gone to another node.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

fn number(reply: &Reply) -> Option<u16> {
    match reply {
        Reply::Number(number) => u16::try_from(*number).ok(),
        _ => None,
    }
}

/// A node in `CLUSTER SLOTS`: its host, its port, and more. A host that the node does not know is the one it was asked at.
fn node(reply: &Reply, asked: &Node) -> Option<Node> {
    let Reply::List(parts) = reply else {
        return None;
    };
    let [host, port, ..] = parts.as_slice() else {
        return None;
    };
    let host = match host {
        Reply::Text(host) if !host.is_empty() && host != "?" => host.clone(),
        _ => asked.host.clone(),
    };
    let port = number(port).filter(|port| *port > 0)?;
    Some(Node { host, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> Node {
        Node {
            host: host.to_owned(),
            port,
        }
    }

    fn range(first: i64, last: i64, host: Reply, port: i64) -> Reply {
        let node = Reply::List(vec![
            host,
            Reply::Number(port),
            Reply::Text("id".to_owned()),
        ]);
        Reply::List(vec![Reply::Number(first), Reply::Number(last), node])
    }

    fn text(text: &str) -> Reply {
        Reply::Text(text.to_owned())
    }

    #[test]
    fn slots_have_owners() {
        let topology = Topology::new();
        let asked = at("a", 1);
        assert_eq!(topology.owner(0), None);
        let answer = Reply::List(vec![
            range(0, 9, text("a"), 1),
            range(10, 16_383, Reply::Nil, 2),
        ]);
        assert_eq!(topology.read(&answer, &asked), Some(()));
        assert_eq!(topology.owner(9), Some(at("a", 1)));
        assert_eq!(topology.owner(10), Some(at("a", 2)));
        assert_eq!(topology.owner(16_383), Some(at("a", 2)));
        assert_eq!(
            topology.primaries(),
            HashSet::from([at("a", 1), at("a", 2)])
        );
    }

    #[test]
    fn only_a_change_is_told() {
        let topology = Topology::new();
        let asked = at("a", 1);
        let answer = Reply::List(vec![range(0, 16_383, text("a"), 1)]);
        topology.read(&answer, &asked);
        let mut changes = topology.changes();
        topology.read(&answer, &asked);
        topology.moved(7, at("a", 1));
        assert!(!changes.has_changed().unwrap());

        topology.moved(7, at("b", 1));
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        assert_eq!(topology.owner(7), Some(at("b", 1)));

        topology.read(&answer, &asked);
        assert!(changes.has_changed().unwrap());
        assert_eq!(topology.owner(7), Some(at("a", 1)));
    }

    #[test]
    fn what_is_no_map_changes_nothing() {
        let topology = Topology::new();
        let asked = at("a", 1);
        for answer in [
            Reply::Nil,
            text("OK"),
            Reply::List(Vec::new()),
            Reply::List(vec![text("a")]),
            Reply::List(vec![range(-1, 5, text("a"), 1)]),
            Reply::List(vec![range(0, 5, text("a"), 0)]),
            Reply::List(vec![range(0, 5, text("a"), 70_000)]),
        ] {
            assert_eq!(topology.read(&answer, &asked), None, "{answer}");
        }
        assert_eq!(topology.owner(0), None);
    }
}
