//! [`Nodes`]: the stores of a quorum, and how many of them are a majority.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};
use std::time::Duration;

/// A set of nodes, by their numbers.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NodeSet(u32);

impl NodeSet {
    /// How many nodes there can be.
    pub(super) const MAX: usize = 31;

    pub(super) fn all(count: usize) -> Self {
        Self((1 << count) - 1)
    }

    pub(super) fn insert(&mut self, node: usize) {
        self.0 |= 1 << node;
    }

    pub(super) fn remove(&mut self, node: usize) {
        self.0 &= !(1 << node);
    }

    pub(super) fn contains(self, node: usize) -> bool {
        self.0 & (1 << node) != 0
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..Self::MAX).filter(move |node| self.contains(*node))
    }
}

impl FromIterator<usize> for NodeSet {
    fn from_iter<I: IntoIterator<Item = usize>>(nodes: I) -> Self {
        let mut set = Self::default();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}

impl BitOr for NodeSet {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for NodeSet {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// How many nodes there are, and how many must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size(usize);

impl Size {
    pub(super) fn of(nodes: usize) -> Self {
        Self(nodes)
    }

    pub(super) fn nodes(self) -> usize {
        self.0
    }

    /// As many as make any two of them have a node in common.
    pub(super) fn majority(self) -> usize {
        self.0 / 2 + 1
    }

    /// How many may fail.
    pub(super) fn spare(self) -> usize {
        self.0 - self.majority()
    }
}

/// A store among others.
pub(super) struct Node<S> {
    pub(super) store: S,
    /// How long one step of it may take.
    pub(super) timeout: Duration,
}
