//! [`FencedKey`]: a value kept in Redis that refuses a leader whose time is over.

use std::fmt;
use std::time::Duration;

use leader_core::FencingToken;
use leader_core::fencing::{FencedError, FencedResource, StaleFence};
use leader_core::store::StoreError;

use crate::client::Words;
use crate::reply::{self, FencedSet};
use crate::script::{FENCED_GET, FENCED_SET};
use crate::store::RedisStore;

/// A value at one key of the application's, which is written with a fencing token only. A clone is the same key.
///
/// ```no_run
/// use leader_core::fencing::FencedError;
/// use leader_core::{ElectorExt, LeaseOptions};
/// use leader_redis::RedisElector;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let elector = RedisElector::connect("redis://127.0.0.1:6379").await?;
/// let rate = elector.store().fenced_key("partner:rate");
///
/// let options = LeaseOptions::builder().auto_extend(true).build()?;
/// let writer = rate.clone();
/// elector
///     .run_if_leader("partner-rate", &options, |lease| async move {
///         match writer.set(lease.fence(), "1.0842").await {
///             Ok(()) => println!("written"),
///             Err(FencedError::Stale(stale)) => println!("{stale}"), // both numbers
///             Err(FencedError::Resource(error)) => println!("{error}"),
///         }
///     })
///     .await?;
///
/// if let Some(rate) = rate.get().await? {
///     println!("{:?}, written under {}", rate.value(), rate.fence());
/// }
/// # Ok(())
/// # }
/// ```
///
/// # What it keeps
///
/// A hash at exactly this key, without the elector's prefix: `fence`, the highest fencing token seen, in decimal digits,
/// and `value`. Anybody can read it (`HGET partner:rate value`); whoever writes it in another way goes around the fence.
/// Something else at the key is a clear error, and is left alone. Check and write are one script on one key, so it lives
/// on a cluster as well. It costs one command and one round trip.
///
/// With access control lists the user needs its own keys beside those of the library, `~partner:*` say, and the commands
/// `evalsha eval hget hmget hset exists pexpire persist`.
///
/// # When the key is gone
///
/// The fence lives in the key. When that expires, is deleted, evicted or flushed, or lost in a failover to a replica that
/// lacked it, **the next write is admitted whatever its token**, also that of a leader whose time was over long before.
/// Give a key an expiry only if nobody is hurt by that, and a longer one than any leader can stand still. Where the server
/// may forget, and a stale write must not pass, keep the value where it is kept safely: a fenced row in a database.
///
/// # Where it lives
///
/// On the elector's connection, with its command timeout, until the elector is shut down: from then on each call is an
/// error. Replicas are not waited for, also where the elector's leases wait for them (`replica_ack`). It need not be the
/// server that issues the leases: take the key from the store of another elector.
#[derive(Clone)]
pub struct FencedKey {
    store: RedisStore,
    key: String,
}

impl FencedKey {
    pub(crate) fn new(store: RedisStore, key: String) -> Self {
        Self { store, key }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Writes the value, which then lives until it is written again, unless a higher fencing token was seen here.
    ///
    /// # Errors
    ///
    /// - [`FencedError::Stale`] with both numbers: another has been elected and has written since. Nothing has changed.
    /// - [`FencedError::Resource`]: the server could not be reached, did not answer in time, or refused, or something
    ///   else stands at the key. [`StoreError::may_have_run`] says whether the value may have been written.
    ///
    /// # Cancellation safety
    ///
    /// When the future is dropped, the value may have been written, and may yet be.
    pub async fn set(
        &self,
        fence: FencingToken,
        value: impl AsRef<[u8]>,
    ) -> Result<(), FencedError<StoreError>> {
        self.write(fence, value.as_ref(), 0).await
    }

    /// As [`set`](Self::set); the key, and with it the fence, is gone after `lives`, unless it is written before. At least
    /// 1 ms, at most 100 years; what is beyond counts as that.
    ///
    /// # Errors
    ///
    /// As [`set`](Self::set).
    ///
    /// # Cancellation safety
    ///
    /// As [`set`](Self::set).
    pub async fn set_expiring(
        &self,
        fence: FencingToken,
        value: impl AsRef<[u8]>,
        lives: Duration,
    ) -> Result<(), FencedError<StoreError>> {
        self.write(fence, value.as_ref(), millis(lives)).await
    }

    async fn write(
        &self,
        fence: FencingToken,
        value: &[u8],
        lives: u64,
    ) -> Result<(), FencedError<StoreError>> {
        let mut words = Words::with_room(1, value.len());
        words.push(&self.key);
        words.push_number(fence.get());
        words.push(value);
        words.push_number(lives);
        let call = words.into_call();
        let answer = self.store.run_for_value(&FENCED_SET, &self.key, &call);
        let answer = answer.await.map_err(FencedError::Resource)?;
        match reply::fenced_set(&answer) {
            Ok(FencedSet::Written) => Ok(()),
            Ok(FencedSet::Stale { seen }) => Err(FencedError::Stale(StaleFence {
                presented: fence,
                seen,
            })),
            Err(oddity) => Err(FencedError::Resource(
                self.store.value_error(&self.key, oddity),
            )),
        }
    }

    /// Reads the value, with the fencing token under which it was written; `None` when there is no such key.
    ///
    /// # Errors
    ///
    /// The server could not be reached, did not answer in time, or refused, or something else stands at the key.
    ///
    /// # Cancellation safety
    ///
    /// Reading changes nothing.
    pub async fn get(&self) -> Result<Option<FencedValue>, StoreError> {
        let mut words = Words::on(1);
        words.push(&self.key);
        let call = words.into_call();
        let answer = self.store.run_for_value(&FENCED_GET, &self.key, &call);
        let value = reply::fenced_get(&answer.await?);
        value.map_err(|oddity| self.store.value_error(&self.key, oddity))
    }
}

impl FencedResource for FencedKey {
    type Write = Vec<u8>;
    type Output = ();
    type Error = StoreError;

    async fn write(
        &self,
        fence: FencingToken,
        value: Vec<u8>,
    ) -> Result<(), FencedError<StoreError>> {
        self.set(fence, value).await
    }
}

impl fmt::Debug for FencedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// What a [`FencedKey`] holds.
#[derive(Clone, PartialEq, Eq)]
pub struct FencedValue {
    fence: FencingToken,
    value: Vec<u8>,
}

impl FencedValue {
    pub(crate) fn new(fence: FencingToken, value: Vec<u8>) -> Self {
        Self { fence, value }
    }

    /// The fencing token under which it was written: the highest that was seen.
    #[must_use]
    pub fn fence(&self) -> FencingToken {
        self.fence
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// The value, to keep.
    #[must_use]
    pub fn into_value(self) -> Vec<u8> {
        self.value
    }
}

/// Without the value, which is the application's and may be secret.
impl fmt::Debug for FencedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedValue")
            .field("fence", &self.fence)
            .field("bytes", &self.value.len())
            .finish_non_exhaustive()
    }
}

fn millis(lives: Duration) -> u64 {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    let lives = lives.clamp(Duration::from_millis(1), LONGEST);
    u64::try_from(lives.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}
