//! [`ScriptedElector`]: an elector whose outcome a test scripts.

mod store;

use std::fmt;

use self::store::{Script, ScriptedStore};
use crate::elector::delegate_elector;
use crate::engine::StoreElector;
use crate::error::{BackendKind, LossReason};
use crate::node::NodeId;
use crate::store::Release;

/// An elector whose outcome a test scripts: it leads, follows somebody, or finds its store failing, and loses what it
/// holds at a word. For tests of a service that is given its elector. A clone is the same elector.
///
/// It is a whole elector, engine and all, on a store that does as the script says. Its leases are real: fencing tokens
/// grow, `min_lease` is kept, leases expire by Tokio's clock, tasks that stand for the same name lead one after the
/// other, and a lost lease stops its body. For contention between candidates take
/// [`LocalElector`](crate::LocalElector), which has several on one store.
///
/// ```
/// use leader_core::testing::ScriptedElector;
/// use leader_core::{ElectorExt, LeaderError, LeaseOptions, LossReason};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), LeaderError> {
/// let elector = ScriptedElector::leader();
/// let options = LeaseOptions::builder().wait(std::time::Duration::ZERO).build()?;
///
/// // While it leads, the work runs. The lease is lost in the middle of it.
/// let run = elector.run_if_leader("invoice-close", &options, |_lease| async {
///     elector.lose(LossReason::Taken);
///     std::future::pending::<()>().await;
/// });
/// assert!(matches!(run.await, Err(LeaderError::LeaseLost { .. })));
///
/// // From now on somebody else leads: the work is skipped.
/// elector.follow("node-b");
/// let run = elector.run_if_leader("invoice-close", &options, |_lease| async { 1 });
/// assert_eq!(run.await?, None);
/// assert_eq!(elector.state("invoice-close").await?.holders()[0].node_id(), &"node-b");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ScriptedElector {
    elector: StoreElector<ScriptedStore>,
}

impl ScriptedElector {
    /// An elector that leads whenever it stands.
    #[must_use]
    pub fn leader() -> Self {
        let elector = StoreElector::builder(ScriptedStore::new());
        Self {
            elector: elector.node_id("scripted").build(),
        }
    }

    /// An elector that never leads, because `leader` does.
    #[must_use]
    pub fn follower(leader: impl Into<NodeId>) -> Self {
        let elector = Self::leader();
        elector.follow(leader);
        elector
    }

    /// An elector whose store fails with an error of this kind.
    #[must_use]
    pub fn failing(kind: BackendKind) -> Self {
        let elector = Self::leader();
        elector.fail(kind);
        elector
    }

    /// From now on it leads whenever it stands. Whoever waits is elected.
    pub fn lead(&self) {
        self.elector.store().turn(Script::Lead);
    }

    /// From now on `leader` leads every name: whoever stands is skipped when its wait is over.
    ///
    /// What is held goes on: the next extension, by hand or in the background, is told that the lease is
    /// [taken](LossReason::Taken), and without one the lease expires. [`lose`](Self::lose) ends it at once.
    pub fn follow(&self, leader: impl Into<NodeId>) {
        let store = self.elector.store();
        store.turn(store.led_by(leader.into()));
    }

    /// From now on every step fails with an error of this kind: whoever stands gets it, at once or, when it is
    /// [transient](BackendKind::is_transient), when its wait is over.
    ///
    /// What is held goes on until its deadline, or until the store is back.
    pub fn fail(&self, kind: BackendKind) {
        self.elector.store().turn(Script::Fail(kind));
    }

    /// Every lease that is held now is lost, for this reason; says how many there were. Bodies under
    /// [`OnLost::Cancel`](crate::OnLost::Cancel) are not polled again, cancellation tokens fire.
    ///
    /// The names are free after it: while the script is that it leads, it is elected again, with a greater fencing
    /// token. A run that is lost to [`LossReason::ShutDown`] ends with
    /// [`LeaderError::ShutDown`](crate::LeaderError::ShutDown), as in a real shutdown.
    #[allow(
        clippy::must_use_candidate,
        reason = "a test may well know how many there were"
    )]
    pub fn lose(&self, reason: LossReason) -> usize {
        let store = self.elector.store();
        let held = self.elector.tenures_in_force();
        for tenure in &held {
            let id = &tenure.id;
            store.free(&Release::new(id.name.clone(), tenure.token, id.slot));
            tenure.lose(reason);
        }
        store.tell();
        held.len()
    }
}

impl fmt::Debug for ScriptedElector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedElector")
            .field("script", &self.elector.store().script())
            .field("elector", &self.elector)
            .finish()
    }
}

delegate_elector!(ScriptedElector, |this| this.elector);
