//! [`Plan`]: checked settings, and the way from them to a store that is connected.

use std::sync::Arc;
use std::time::Duration;

use leader_core::store::StoreError;

use crate::acks::{Acks, Need};
use crate::client::{Connection, Endpoint, Link, Purpose, Shared, Terms};
use crate::fault::Failure;
use crate::keys::Keys;
use crate::runtime::{Lodging, OwnRuntime};
use crate::store::{RedisStore, within};
use crate::watch::Wakeups;

/// What a store is made by.
pub(crate) struct Plan {
    pub(crate) way: Way,
    pub(crate) keys: Keys,
    pub(crate) timeout: Duration,
    pub(crate) acks: Option<Need>,
}

/// How to get a connection.
#[derive(Clone)]
pub(crate) enum Way {
    Open(Endpoint),
    Share(Shared),
}

/// Where connections live, and what keeps that place.
#[derive(Clone)]
pub(crate) struct Home {
    pub(crate) lodging: Lodging,
    _own: Option<Arc<OwnRuntime>>,
}

/// A server of a quorum.
pub(crate) struct Member {
    pub(crate) store: RedisStore,
    /// Why it does not answer, if it does not.
    pub(crate) why_not: Option<StoreError>,
    /// By which it knows itself, if it has told.
    pub(crate) run_id: Option<String>,
}

impl Home {
    pub(crate) fn new(lodging: Lodging, own: Option<OwnRuntime>) -> Self {
        Self {
            lodging,
            _own: own.map(Arc::new),
        }
    }
}

impl Plan {
    pub(crate) fn address(&self) -> String {
        self.way.endpoint().address()
    }

    /// Connects, or says why not.
    pub(crate) async fn connect(self, home: Home) -> Result<RedisStore, StoreError> {
        let (way, acks, terms) = (self.way.clone(), self.acks, self.terms(&home));
        let connect = async move {
            let endpoint = way.endpoint();
            tokio::try_join!(way.go(&terms), open_acks(&endpoint, acks, &terms))
        };
        match self.within_limit(&home, connect).await {
            Ok((link, acks)) => Ok(self.store(link, acks, home)),
            Err(failure) => Err(failure.at(&self.address(), None)),
        }
    }

    /// Connects, or goes on trying in the background and says why that is needed.
    pub(crate) async fn connect_in_time(self, home: Home) -> Result<Member, StoreError> {
        let (way, terms) = (self.way.clone(), self.terms(&home));
        let connect = async move {
            let (link, why_not) = Link::open_in_time(&way.endpoint(), &terms).await?;
            if why_not.is_some() {
                return Ok((link, why_not, None));
            }
            let (pong, run_id) = tokio::join!(link.ping(), link.run_id());
            Ok((link, pong.err(), run_id))
        };
        // Each of its steps has its limit.
        let connected = home.lodging.spawn(connect).await;
        match connected.unwrap_or_else(|error| Err(Failure::Client(error.to_string()))) {
            Ok((link, why_not, run_id)) => Ok(Member {
                why_not: why_not.map(|failure| failure.at(&self.address(), None)),
                run_id,
                store: self.store(link, None, home),
            }),
            Err(failure) => Err(failure.at(&self.address(), None)),
        }
    }

    fn terms(&self, home: &Home) -> Terms {
        Terms {
            limit: within(self.timeout),
            stated: self.timeout,
            lodging: home.lodging.clone(),
        }
    }

    /// Where the time limit has a clock, wherever the caller is.
    async fn within_limit<T: Send + 'static>(
        &self,
        home: &Home,
        connect: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let limit = self.timeout * self.way.endpoint().patience();
        let connect = home.lodging.spawn(async move {
            let connect = tokio::time::timeout(limit, connect);
            connect.await.unwrap_or(Err(Failure::NoAnswer(limit)))
        });
        let connected = connect.await;
        connected.unwrap_or_else(|error| Err(Failure::Client(error.to_string())))
    }

    fn store(self, link: Link, acks: Option<Acks>, home: Home) -> RedisStore {
        let (terms, address) = (self.terms(&home), self.address());
        let wakeups = Wakeups::new(self.way.endpoint(), link.known(), terms);
        RedisStore::new(link, acks, wakeups, self.keys, address, self.timeout, home)
    }
}

impl Way {
    pub(crate) fn endpoint(&self) -> Endpoint {
        match self {
            Self::Open(endpoint) => endpoint.clone(),
            Self::Share(client) => Endpoint::of(client),
        }
    }

    async fn go(self, terms: &Terms) -> Result<Link, Failure> {
        let link = match self {
            Self::Open(endpoint) => Link::open(&endpoint, terms).await?,
            Self::Share(client) => Link::share(client, terms)?,
        };
        link.ping().await?;
        Ok(link)
    }
}

/// The connection on which replicas are waited for, if they are.
async fn open_acks(
    endpoint: &Endpoint,
    need: Option<Need>,
    terms: &Terms,
) -> Result<Option<Acks>, Failure> {
    let Some(need) = need else {
        return Ok(None);
    };
    let terms = Terms {
        limit: terms.limit + need.patience(),
        stated: terms.stated + need.patience(),
        lodging: terms.lodging.clone(),
    };
    let connection = Connection::open(endpoint, Purpose::Commands, &terms).await?;
    connection.can_wait(need.place).await?;
    Ok(Some(Acks::new(connection, need, terms.lodging)))
}
