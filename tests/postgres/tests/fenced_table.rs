//! A table in PostgreSQL whose rows refuse a stale leader: the very code of the example `fenced_postgres`.

#[path = "../../../examples/fenced_postgres/accounts.rs"]
mod accounts;

use accounts::{AccountError, Accounts};
use leader_core::FencingToken;
use leader_core::fencing::{FencedError, FencedResource, StaleFence};
use leader_core::testing::check_fenced_resource;
use leader_tests::Postgres;
use std::path::Path;
use tokio::task::JoinSet;

/// One account of the table.
struct Account(Accounts);

impl FencedResource for Account {
    type Write = i64;
    type Output = ();
    type Error = AccountError;

    async fn write(
        &self,
        fence: FencingToken,
        balance: i64,
    ) -> Result<(), FencedError<AccountError>> {
        self.0.open(fence, 7, balance).await
    }
}

const fn token(number: u64) -> FencingToken {
    FencingToken::new(number)
}

fn stale(presented: u64, seen: u64) -> StaleFence {
    let (presented, seen) = (token(presented), token(seen));
    StaleFence { presented, seen }
}

async fn accounts(database: &Postgres) -> Accounts {
    let accounts = Accounts::connect(&database.url())
        .await
        .expect("it answers");
    accounts.create_table().await.expect("it is new");
    accounts
}

#[tokio::test]
async fn a_database_is_gone_with_its_owner() {
    let database = Postgres::start().await;
    let url = database.url();
    let dir = Path::new(url.split_once("?host=").expect("it is on a socket").1);
    assert!(dir.join(".s.PGSQL.5432").exists());
    drop(database);
    assert!(!dir.exists());
}

#[tokio::test]
async fn a_row_is_a_fenced_resource() {
    let database = Postgres::start().await;
    let account = Account(accounts(&database).await);
    check_fenced_resource(&account, |number| i64::try_from(number).unwrap_or_default()).await;
}

#[tokio::test]
async fn g03_a_stale_update_and_a_stale_insert_are_refused_and_the_successors_row_stands() {
    let database = Postgres::start().await;
    let accounts = accounts(&database).await;
    accounts.open(token(1), 7, 100).await.unwrap();
    accounts.deposit(token(1), 7, 20).await.unwrap();
    accounts.deposit(token(2), 7, 30).await.unwrap();

    let update = accounts.deposit(token(1), 7, 1000).await.unwrap_err();
    assert_eq!(update.stale(), Some(stale(1, 2)));
    let insert = accounts.open(token(1), 7, 1000).await.unwrap_err();
    assert_eq!(insert.stale(), Some(stale(1, 2)));
    assert_eq!(accounts.read(7).await.unwrap(), Some((150, token(2))));

    // No row is written for another reason, which is told apart.
    let unknown = accounts.deposit(token(3), 8, 1).await.unwrap_err();
    assert!(
        matches!(unknown, FencedError::Resource(AccountError::Unknown(8))),
        "{unknown:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g01_writes_at_once_never_take_the_row_back() {
    const WRITES: u64 = 400;
    let database = Postgres::start().await;
    let accounts = accounts(&database).await;
    accounts.open(token(0), 7, 0).await.unwrap();
    let mut writes = JoinSet::new();
    for number in 1..=WRITES {
        let accounts = accounts.clone();
        writes.spawn(async move {
            match accounts.deposit(token(number), 7, 1).await {
                Ok(()) => 1,
                Err(FencedError::Stale(stale)) => {
                    assert!(stale.presented < stale.seen, "{stale}");
                    0
                }
                Err(error) => panic!("{error}"),
            }
        });
    }
    let mut highest = token(0);
    let mut written = 0;
    while let Some(done) = writes.join_next().await {
        written += done.unwrap();
        let (_, fence) = accounts.read(7).await.unwrap().expect("it is there");
        assert!(fence >= highest, "{fence} came after {highest}");
        highest = fence;
    }
    assert_eq!(
        accounts.read(7).await.unwrap(),
        Some((written, token(WRITES)))
    );
}
