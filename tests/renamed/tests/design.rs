//! The lines of the design, in a crate that knows leader-core as `leader`: as written, but for that name.
//! `leader-core/tests/design.rs` has them to the letter.
#![allow(missing_docs, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use leader::{
    Elector, ElectorExt, LeaderError, LeaseOptions, LocalElector, RunOutcome, leader_election,
    with_elector,
};

#[derive(Debug, thiserror::Error)]
enum BillingError {
    #[error(transparent)]
    Leader(#[from] LeaderError),
}

type PartnerError = BillingError;
type FeedError = BillingError;

struct Db;

#[derive(Debug, PartialEq)]
struct Summary(u32);

struct Req;

#[derive(Debug, PartialEq)]
struct Order(String);

#[derive(Debug, PartialEq)]
struct Reply;

struct Service {
    elector: Arc<dyn Elector>,
    region: String,
}

impl Db {
    async fn close(&self) -> Summary {
        tokio::time::sleep(Duration::from_secs(20)).await;
        Summary(42)
    }
}

#[leader_election(
    name = "invoice-close",
    wait = "500ms",
    lease = "10s",
    min_lease = "1s",
    auto_extend,
    crate = "leader"
)]
async fn close_invoices(db: &Db) -> Result<Option<Summary>, BillingError> {
    Ok(Some(db.close().await))
}

impl Service {
    #[leader_election(name = "report:{tenant}", elector = self.elector, lease = "30s", crate = "leader")]
    async fn report(&self, tenant: &str) -> Result<(), BillingError> {
        let lease = leader::current_lease().ok_or(LeaderError::NotLeading)?;
        assert_eq!(lease.name().as_str(), format!("report:{tenant}"));
        Ok(())
    }

    #[leader_election(name = format!("partner:{}", self.region), slots = 3, lease = "10s", auto_extend, crate = "leader")]
    async fn call_partner(&self, req: Req) -> Result<RunOutcome<Reply>, PartnerError> {
        let Req = req;
        Ok(RunOutcome::Elected(Reply))
    }

    #[leader_election(
        name = "order-feed:{region}",
        lease = "10s",
        auto_extend,
        crate = "leader"
    )]
    fn orders(&self, region: &str) -> impl Stream<Item = Result<Order, FeedError>> + '_ {
        let order = format!("{region} of {}", self.region);
        stream::iter([Ok(Order(order.clone())), Ok(Order(order))])
    }
}

#[tokio::test(start_paused = true)]
async fn the_lines_of_the_design_compile_as_written() {
    let elector = LocalElector::new();
    let other = elector.node("node-b");
    let service = Service {
        elector: Arc::new(elector.clone()),
        region: "eu".to_owned(),
    };
    let closed = with_elector(elector.clone(), close_invoices(&Db));
    let too = with_elector(other.clone(), close_invoices(&Db));
    let (closed, too) = tokio::join!(closed, too);
    assert_eq!(closed.unwrap(), Some(Summary(42)));
    assert_eq!(too.unwrap(), None);

    service.report("acme").await.unwrap();
    let replied = with_elector(elector.clone(), service.call_partner(Req)).await;
    assert_eq!(replied.unwrap(), RunOutcome::Elected(Reply));

    // The elector is found when the stream is made.
    let mut orders = Box::pin(with_elector(other.clone(), async { service.orders("north") }).await);
    assert!(
        elector
            .state("order-feed:north")
            .await
            .unwrap()
            .holders()
            .is_empty()
    );
    assert_eq!(
        orders.next().await.unwrap().unwrap(),
        Order("north of eu".to_owned())
    );
    assert!(
        !elector
            .state("order-feed:north")
            .await
            .unwrap()
            .holders()
            .is_empty()
    );
    assert!(orders.next().await.is_some());
    assert!(orders.next().await.is_none());
    assert!(
        elector
            .state("order-feed:north")
            .await
            .unwrap()
            .holders()
            .is_empty()
    );

    // Somebody else reports: skipped is `Ok(())`.
    let options = LeaseOptions::default();
    let held = other.try_acquire("report:acme", &options).await.unwrap();
    service.report("acme").await.unwrap();
    drop(held);
}
