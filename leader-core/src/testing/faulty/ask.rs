//! [`Ask`]: the six steps of a store in one form, so that one piece of code can delay, lose and repeat each of them.

use crate::hints::HintSender;
use crate::name::LockName;
use crate::state::Holder;
use crate::store::{
    Claim, ClaimReply, ExtendReply, Extension, LeaseStore, Release, ReleaseReply, Revision,
    StoreError, Watching,
};

use super::log::{Reply, Request};

/// A request that can be sent, and sent again.
pub(super) trait Ask: Clone + Send + Sync + 'static {
    type Answer: Send + 'static;

    /// The request, for the log.
    fn request(&self) -> Request;

    fn run<S: LeaseStore>(&self, store: &S) -> impl Future<Output = Self::Answer> + Send;

    fn failed(&self, error: StoreError) -> Self::Answer;

    /// The answer, for the log.
    fn reply(answer: &Self::Answer) -> Reply;
}

impl Ask for Claim {
    type Answer = Result<ClaimReply, StoreError>;

    fn request(&self) -> Request {
        Request::Claim(self.clone())
    }

    fn run<S: LeaseStore>(&self, store: &S) -> impl Future<Output = Self::Answer> + Send {
        store.claim(self)
    }

    fn failed(&self, error: StoreError) -> Self::Answer {
        Err(error)
    }

    fn reply(answer: &Self::Answer) -> Reply {
        Reply::Claim(answer.clone())
    }
}

/// A batch of extensions.
#[derive(Clone)]
pub(super) struct Batch(pub(super) Vec<Extension>);

impl Ask for Batch {
    type Answer = Vec<Result<ExtendReply, StoreError>>;

    fn request(&self) -> Request {
        Request::Extend(self.0.clone())
    }

    fn run<S: LeaseStore>(&self, store: &S) -> impl Future<Output = Self::Answer> + Send {
        store.extend(&self.0)
    }

    fn failed(&self, error: StoreError) -> Self::Answer {
        vec![Err(error); self.0.len()]
    }

    fn reply(answer: &Self::Answer) -> Reply {
        Reply::Extend(answer.clone())
    }
}

impl Ask for Release {
    type Answer = Result<ReleaseReply, StoreError>;

    fn request(&self) -> Request {
        Request::Release(self.clone())
    }

    fn run<S: LeaseStore>(&self, store: &S) -> impl Future<Output = Self::Answer> + Send {
        store.release(self)
    }

    fn failed(&self, error: StoreError) -> Self::Answer {
        Err(error)
    }

    fn reply(answer: &Self::Answer) -> Reply {
        Reply::Release(answer.clone())
    }
}

/// A watch to be begun, or an observation, which has no beginning.
#[derive(Clone)]
pub(super) struct Watch {
    pub(super) name: LockName,
    pub(super) since: Option<Revision>,
    pub(super) hints: HintSender,
}

impl Ask for Watch {
    type Answer = Result<Watching, StoreError>;

    fn request(&self) -> Request {
        Request::Watch {
            name: self.name.clone(),
            since: self.since.unwrap_or_default(),
        }
    }

    async fn run<S: LeaseStore>(&self, store: &S) -> Self::Answer {
        let hints = self.hints.clone();
        match self.since {
            Some(since) => store.watch(&self.name, since, hints).await,
            None => store.observe(&self.name, hints).await,
        }
    }

    fn failed(&self, error: StoreError) -> Self::Answer {
        Err(error)
    }

    fn reply(answer: &Self::Answer) -> Reply {
        Reply::Watch(answer.as_ref().map(|_| ()).map_err(Clone::clone))
    }
}

/// A name to be read.
#[derive(Clone)]
pub(super) struct Inspect(pub(super) LockName);

impl Ask for Inspect {
    type Answer = Result<Vec<Holder>, StoreError>;

    fn request(&self) -> Request {
        Request::Inspect(self.0.clone())
    }

    fn run<S: LeaseStore>(&self, store: &S) -> impl Future<Output = Self::Answer> + Send {
        store.inspect(&self.0)
    }

    fn failed(&self, error: StoreError) -> Self::Answer {
        Err(error)
    }

    fn reply(answer: &Self::Answer) -> Reply {
        Reply::Inspect(answer.clone())
    }
}

/// A name to be freed.
#[derive(Clone)]
pub(super) struct Evict(pub(super) LockName);

impl Ask for Evict {
    type Answer = Result<u32, StoreError>;

    fn request(&self) -> Request {
        Request::Evict(self.0.clone())
    }

    fn run<S: LeaseStore>(&self, store: &S) -> impl Future<Output = Self::Answer> + Send {
        store.evict(&self.0)
    }

    fn failed(&self, error: StoreError) -> Self::Answer {
        Err(error)
    }

    fn reply(answer: &Self::Answer) -> Reply {
        Reply::Evict(answer.clone())
    }
}
