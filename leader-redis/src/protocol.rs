//! [`Protocol`]: which version of the servers' protocol is spoken.

/// Which version of the protocol requests and answers are in; set by
/// [`RedisElectorBuilder::protocol`](crate::RedisElectorBuilder::protocol).
///
/// Nothing that this library asks is answered differently in one or the other, nor sooner. The default is the older one,
/// as that of [fred](crate::fred) is: every server and every proxy before it speaks it.
///
/// Messages, which wake waiters, always come in RESP3, on a connection of their own: in RESP2 a connection that has
/// subscribed answers nothing else, and could not be asked whether it still lives.
///
/// ```no_run
/// use leader_redis::{Protocol, RedisElector};
///
/// # async fn example() -> Result<(), leader_core::LeaderError> {
/// let elector = RedisElector::builder()
///     .url("redis://cache.internal")
///     .protocol(Protocol::Resp3)
///     .connect()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// RESP2. The default.
    #[default]
    Resp2,
    /// RESP3, to which a connection is switched by `HELLO 3`.
    Resp3,
}
