//! Observing: every node is observed, and what each tells is passed on. Whoever looks on asks a majority anyway.

use std::sync::Arc;

use super::Shared;
use super::opening::{Opened, Opening, Report, begin};
use crate::hints::{HintSender, hints};
use crate::name::LockName;
use crate::store::{Hint, LeaseStore, StoreError, Watching};

pub(super) async fn observe<S: LeaseStore>(
    shared: &Arc<Shared<S>>,
    name: &LockName,
    hints: HintSender,
) -> Result<Watching, StoreError> {
    let (shared_by_task, name) = (shared.clone(), name.clone());
    begin(shared, |report| {
        pass_on(shared_by_task, name, hints, report)
    })
    .await
}

async fn pass_on<S: LeaseStore>(
    shared: Arc<Shared<S>>,
    name: LockName,
    observer: HintSender,
    report: Report,
) {
    // Not the observer's own end: what is lost on the way to a node may keep it for long.
    let (post, mut told) = hints();
    let mut opening = Opening::new(shared.clone(), report, |node| {
        let (shared, name, post) = (shared.clone(), name.clone(), post.clone());
        async move { shared.nodes[node].store.observe(&name, post).await }
    });
    loop {
        tokio::select! {
            hint = told.next() => observer.push(hint),
            opened = opening.next() => match opened {
                Opened::TooFew => return,
                // There may have been a change before it was listened to.
                Opened::Late => observer.push(Hint::Missed),
                Opened::InTime | Opened::NotYet => {}
            },
        }
    }
}
