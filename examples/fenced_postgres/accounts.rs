//! The fenced table: what a service has. The check of the fencing token and the write are one statement.

use std::fmt;

use leader_core::FencingToken;
use leader_core::fencing::{FencedError, StaleFence};
use sqlx::PgPool;

/// Accounts, written by the leader only. Each row knows the highest fencing token under which it was written.
///
/// Statements run one by one, in the isolation that PostgreSQL has by default (`READ COMMITTED`): one that had to wait for
/// another's write looks at its `WHERE` again, at the row as it is now. In `REPEATABLE READ` it would fail instead, which
/// is as safe.
#[derive(Clone, Debug)]
pub(crate) struct Accounts {
    pool: PgPool,
}

/// Why an account was not written, apart from a stale token.
#[derive(Debug)]
pub(crate) enum AccountError {
    /// There is no such account.
    Unknown(i64),
    Database(sqlx::Error),
}

type Written<T = ()> = Result<T, FencedError<AccountError>>;

impl Accounts {
    pub(crate) async fn connect(url: &str) -> Result<Self, sqlx::Error> {
        let pool = PgPool::connect(url).await?;
        Ok(Self { pool })
    }

    /// `fence` starts low where rows come from somewhere else: below every token that a store issues.
    pub(crate) async fn create_table(&self) -> Result<(), sqlx::Error> {
        let table = "CREATE TABLE accounts (
                         id      BIGINT PRIMARY KEY,
                         balance BIGINT NOT NULL,
                         fence   BIGINT NOT NULL DEFAULT 0)";
        sqlx::query(table).execute(&self.pool).await?;
        Ok(())
    }

    /// Adds to a balance. No row was written: a newer leader was here, or there is no such account.
    pub(crate) async fn deposit(&self, fence: FencingToken, id: i64, amount: i64) -> Written {
        let update = "UPDATE accounts SET balance = balance + $3, fence = $2
                      WHERE id = $1 AND fence <= $2";
        let done = sqlx::query(update)
            .bind(id)
            .bind(number(fence))
            .bind(amount)
            .execute(&self.pool)
            .await
            .map_err(failed)?;
        if done.rows_affected() == 0 {
            return Err(self.why_not(fence, id).await);
        }
        Ok(())
    }

    /// Opens an account, or sets the balance of one that there is. No row was written: a newer leader was here.
    pub(crate) async fn open(&self, fence: FencingToken, id: i64, balance: i64) -> Written {
        let upsert = "INSERT INTO accounts (id, fence, balance) VALUES ($1, $2, $3)
                      ON CONFLICT (id) DO UPDATE SET balance = excluded.balance, fence = excluded.fence
                      WHERE accounts.fence <= excluded.fence";
        let done = sqlx::query(upsert)
            .bind(id)
            .bind(number(fence))
            .bind(balance)
            .execute(&self.pool)
            .await
            .map_err(failed)?;
        if done.rows_affected() == 0 {
            return Err(self.why_not(fence, id).await);
        }
        Ok(())
    }

    /// The balance, and the fencing token under which it was written.
    pub(crate) async fn read(&self, id: i64) -> Result<Option<(i64, FencingToken)>, sqlx::Error> {
        let row: Option<(i64, i64)> =
            sqlx::query_as("SELECT balance, fence FROM accounts WHERE id = $1")
                .bind(id)
                .fetch_optional(&self.pool)
                .await?;
        Ok(row.map(|(balance, fence)| (balance, token(fence))))
    }

    /// A token that was refused is still lower now: a row's token only grows.
    async fn why_not(&self, presented: FencingToken, id: i64) -> FencedError<AccountError> {
        match self.read(id).await {
            Ok(Some((_, seen))) if presented < seen => StaleFence { presented, seen }.into(),
            // One that somebody has opened only now was unknown just before.
            Ok(_) => FencedError::Resource(AccountError::Unknown(id)),
            Err(error) => failed(error),
        }
    }
}

/// A `BIGINT` has 63 bits. Tokens need 53.
fn number(fence: FencingToken) -> i64 {
    i64::try_from(fence.get()).unwrap_or(i64::MAX)
}

fn token(number: i64) -> FencingToken {
    FencingToken::new(u64::try_from(number).unwrap_or(0))
}

fn failed(error: sqlx::Error) -> FencedError<AccountError> {
    FencedError::Resource(AccountError::Database(error))
}

impl fmt::Display for AccountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "there is no account {id}"),
            Self::Database(error) => write!(f, "the database failed: {error}"),
        }
    }
}

impl std::error::Error for AccountError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unknown(_) => None,
            Self::Database(error) => Some(error),
        }
    }
}
