//! [`Failure`]: too few nodes have answered; how many, and why each of the others did not.

use std::fmt;

use super::nodes::Size;
use crate::error::BackendKind;
use crate::store::StoreError;

/// Too few nodes have answered.
#[derive(Debug)]
struct Failure {
    of: Size,
    answered: usize,
    failed: Vec<(usize, StoreError)>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            of,
            answered,
            failed,
        } = self;
        write!(
            f,
            "{answered} of {} nodes have answered, and {} must",
            of.nodes(),
            of.majority()
        )?;
        for (node, error) in failed {
            write!(f, "; node {} is {}: {error}", node + 1, error.kind())?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// The failure of a step that too few nodes have answered: of the kind that most of the failures are.
pub(super) fn failure(of: Size, answered: usize, failed: Vec<(usize, StoreError)>) -> StoreError {
    let count = |kind: BackendKind| {
        let alike = failed.iter().filter(|(_, error)| error.kind() == kind);
        // Of kinds that are as frequent, one that may pass.
        (alike.count(), kind.is_transient())
    };
    let kinds = failed.iter().map(|(_, error)| error.kind());
    let kind = kinds.max_by_key(|kind| count(*kind));
    let may_have_run = failed.iter().any(|(_, error)| error.may_have_run());
    let failure = Failure {
        of,
        answered,
        failed,
    };
    StoreError::new(kind.unwrap_or(BackendKind::Other), failure).that_may_have_run(may_have_run)
}

/// A node was told to refuse this token, in an earlier round whose claim it had not answered.
pub(super) fn ended() -> StoreError {
    let words = "the claim had been given up on this node";
    StoreError::new(BackendKind::NotReady, words).not_run()
}

/// The round went on without this node.
pub(super) fn not_yet() -> StoreError {
    StoreError::new(BackendKind::TimedOut, "no answer yet")
}

/// A number was written back again and again, and the nodes have others.
pub(super) fn disagreed() -> StoreError {
    let words = "the nodes do not agree about the fencing token; the claim may still be in force";
    StoreError::new(BackendKind::NotReady, words).that_may_have_run(true)
}

pub(super) fn unknown_node() -> StoreError {
    StoreError::new(BackendKind::Other, "there is no such node").not_run()
}

pub(super) fn closed() -> StoreError {
    StoreError::new(BackendKind::Unreachable, "the quorum was closed").not_run()
}
