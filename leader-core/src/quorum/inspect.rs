//! Reading who leads, and evicting: what a majority of the nodes agrees on.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::failure::{failure, unknown_node};
use super::nodes::Size;
use super::round::{Round, within};
use crate::name::LockName;
use crate::state::Holder;
use crate::store::{LeaseStore, StoreError};
use crate::token::FencingToken;

pub(super) async fn inspect<S: LeaseStore>(
    shared: &Arc<Shared<S>>,
    name: &LockName,
) -> Result<Vec<Holder>, StoreError> {
    let ask = |node| inspect_of(shared.clone(), node, name.clone());
    let round = Round::new((0..shared.nodes.len()).map(ask));
    let size = shared.size;
    let seen = majority(shared, round, |seen| is_clear(size, seen)).await?;
    Ok(agreed(size, &seen))
}

pub(super) async fn evict<S: LeaseStore>(
    shared: &Arc<Shared<S>>,
    name: &LockName,
) -> Result<u32, StoreError> {
    let ask = |node| evict_of(shared.clone(), node, name.clone());
    let round = Round::new((0..shared.nodes.len()).map(ask));
    let mut freed = majority(shared, round, |_| true).await?;
    // On so many nodes at least: what a minority had counted as free.
    freed.sort_unstable_by(|a, b| b.cmp(a));
    let of_majority = freed.get(shared.size.majority() - 1);
    Ok(of_majority.copied().unwrap_or_default())
}

async fn inspect_of<S: LeaseStore>(
    shared: Arc<Shared<S>>,
    node: usize,
    name: LockName,
) -> (usize, Result<Vec<Holder>, StoreError>) {
    let Some(at) = shared.nodes.get(node) else {
        return (node, Err(unknown_node()));
    };
    (node, within(at.timeout, at.store.inspect(&name)).await)
}

async fn evict_of<S: LeaseStore>(
    shared: Arc<Shared<S>>,
    node: usize,
    name: LockName,
) -> (usize, Result<u32, StoreError>) {
    let Some(at) = shared.nodes.get(node) else {
        return (node, Err(unknown_node()));
    };
    (node, within(at.timeout, at.store.evict(&name)).await)
}

/// The answers of a majority, of more nodes if those are not clear, and of all that are as quick.
async fn majority<S, F, T>(
    shared: &Arc<Shared<S>>,
    mut round: Round<F>,
    are_clear: impl Fn(&[T]) -> bool,
) -> Result<Vec<T>, StoreError>
where
    S: LeaseStore,
    F: Future<Output = (usize, Result<T, StoreError>)> + Send + 'static,
    T: Send,
{
    let size = shared.size;
    let mut answers = Vec::new();
    let mut failed: Vec<(usize, StoreError)> = Vec::new();
    let mut note = |answers: &mut Vec<T>, more: Vec<(usize, Result<T, StoreError>)>| {
        for (node, answer) in more {
            match answer {
                Ok(answer) => answers.push(answer),
                Err(error) => failed.push((node, error)),
            }
        }
        failed.len() > size.spare()
    };
    loop {
        let more = round.answers().await;
        let is_over = more.is_empty();
        let has_failed = note(&mut answers, more);
        if is_over || has_failed || (answers.len() >= size.majority() && are_clear(&answers)) {
            break;
        }
    }
    let rest = round.rest(shared).await;
    note(&mut answers, rest);
    if answers.len() >= size.majority() {
        return Ok(answers);
    }
    Err(failure(size, answers.len(), failed))
}

/// Whether no answer that is still awaited can make a holder one of a majority, or tell which number was granted: that is
/// the one that a majority has, and nodes that were late for the claim have others.
fn is_clear(size: Size, seen: &[Vec<Holder>]) -> bool {
    let awaited = size.nodes() - seen.len();
    let same = |a: &Holder, b: &Holder| a.slot() == b.slot() && a.node_id() == b.node_id();
    let same_number = |a: &Holder, b: &Holder| same(a, b) && a.fence() == b.fence();
    let all = || seen.iter().flatten();
    let undecided = |count: usize| count < size.majority() && count + awaited >= size.majority();
    !all().any(|holder| {
        undecided(all().filter(|other| same(holder, other)).count())
            || undecided(all().filter(|other| same_number(holder, other)).count())
    })
}

/// Who holds a slot on a majority.
fn agreed(size: Size, seen: &[Vec<Holder>]) -> Vec<Holder> {
    let mut all: Vec<&Holder> = seen.iter().flatten().collect();
    all.sort_by(|a, b| (a.slot(), a.node_id()).cmp(&(b.slot(), b.node_id())));
    let same = |a: &&Holder, b: &&Holder| a.slot() == b.slot() && a.node_id() == b.node_id();
    let groups = all.chunk_by(same);
    groups
        .filter(|group| group.len() >= size.majority())
        .filter_map(|group| holder(size, group))
        .collect()
}

/// What a majority says of one holder: how long the slot is taken on so many nodes, and which number it has on most.
fn holder(size: Size, group: &[&Holder]) -> Option<Holder> {
    let first = group.first()?;
    let mut remaining: Vec<Duration> = group.iter().map(|holder| holder.remaining()).collect();
    remaining.sort_unstable_by(|a, b| b.cmp(a));
    let remaining = remaining.get(size.majority() - 1).copied()?;
    let with = |fence: FencingToken| {
        group
            .iter()
            .filter(|holder| holder.fence() == fence)
            .count()
    };
    let fences = group.iter().map(|holder| holder.fence());
    let fence = fences.max_by_key(|fence| (with(*fence), *fence))?;
    let retained = group.iter().filter(|holder| holder.is_retained()).count();
    let holder = Holder::new(first.node_id().clone(), first.slot(), fence, remaining);
    Some(if retained * 2 > group.len() {
        holder.retained()
    } else {
        holder
    })
}
