//! Part F of the scenarios where the store breaks: a campaign never ends by itself, and leads again.

use std::time::Duration;

use futures::StreamExt;
use leader_core::testing::ScriptedElector;
use leader_core::{
    BackendKind, Campaign, CampaignPhase, ElectorExt, Holder, LeaderError, LeadershipChange,
    LeaseHandle, LeaseOptions,
};
use leader_redis::RedisElector;
use leader_tests::{Proxy, Server, connect_in_time, elector_at, ms, options, until};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

const LEASE: Duration = ms(300);
const LIMIT: Duration = Duration::from_secs(20);
const ROUNDS: usize = 50;

async fn until_asked(lease: LeaseHandle) {
    lease.cancellation_token().cancelled().await;
}

/// A candidate on its own way to the server.
struct Candidate {
    proxy: Proxy,
    campaign: Campaign,
    told: JoinHandle<Vec<LeadershipChange>>,
}

impl Candidate {
    async fn start(server: &Server, node_id: &str) -> Self {
        let proxy = Proxy::start(server.addr());
        let builder = elector_at(proxy.url()).node_id(node_id);
        let builder = builder.command_timeout(ms(200));
        let elector = connect_in_time(async || builder.clone().connect().await).await;
        let lease = options(LeaseOptions::builder().lease(LEASE));
        let campaign = elector.campaign("x", &lease, until_asked);
        let told = tokio::spawn(campaign.subscribe().collect());
        Self {
            proxy,
            campaign,
            told,
        }
    }
}

/// Who leads, all at the same moment: that between the first look and the second. A stalled machine may take longer
/// over one look than a lease takes to pass from one to the other.
fn leaders(candidates: &[Candidate]) -> Vec<usize> {
    let lease = |index: usize| Some((index, candidates[index].campaign.lease()?));
    let first: Vec<_> = (0..candidates.len()).filter_map(lease).collect();
    let still = first.iter().filter(|(_, lease)| lease.is_valid());
    still.map(|(index, _)| *index).collect()
}

/// Waits until exactly one leads, and the store says so too. While the store keeps what it acknowledged, never more than
/// one does.
async fn one_leads(candidates: &[Candidate], store: &RedisElector, forgetful: bool) -> usize {
    let mut leader = None;
    until("exactly one leads", LIMIT, async || {
        let leaders = leaders(candidates);
        assert!(forgetful || leaders.len() < 2, "{leaders:?} lead");
        leader = leaders.first().copied();
        let [only] = leaders[..] else {
            return false;
        };
        let state = store.state("x").await;
        let holder = state
            .ok()
            .and_then(|state| state.holders().first().map(Holder::fence));
        holder.is_some() && holder == candidates[only].campaign.lease().map(|lease| lease.fence())
    })
    .await;
    leader.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f01_after_each_of_fifty_faults_exactly_one_leads_again() {
    let server = Server::start().await;
    let mut candidates = Vec::new();
    for node in ["a", "b", "c"] {
        candidates.push(Candidate::start(&server, node).await);
    }
    let store = elector_at(server.url()).command_timeout(LIMIT);
    let store = store.connect().await.unwrap();
    let mut slowest = Duration::ZERO;
    for round in 0..ROUNDS {
        let leader = one_leads(&candidates, &store, true).await;
        let forgetful = round % 5 == 3;
        match round % 5 {
            // The leader's connection is cut, until somebody else leads.
            0 => {
                candidates[leader].proxy.cut().await;
                until("another leads", LIMIT, async || {
                    let leaders = leaders(&candidates);
                    assert!(leaders.len() < 2, "{leaders:?} lead");
                    leaders.len() == 1 && leaders[0] != leader
                })
                .await;
                candidates[leader].proxy.heal().await;
            }
            // Three leases of silence between the leader and the server.
            1 => {
                candidates[leader].proxy.blackhole();
                sleep(LEASE * 3).await;
                assert!(!candidates[leader].campaign.is_leader(), "round {round}");
                candidates[leader].proxy.heal().await;
            }
            // Three leases of silence of the server.
            2 => {
                server.freeze().await;
                sleep(LEASE * 3).await;
                assert!(leaders(&candidates).is_empty(), "round {round}");
                server.thaw().await;
            }
            // The server restarts, and has forgotten everything.
            3 => server.restart().await,
            // All connections break, and new ones can be made.
            _ => {
                for candidate in &candidates {
                    candidate.proxy.kill_connections().await;
                }
            }
        }
        let healed = Instant::now();
        one_leads(&candidates, &store, forgetful).await;
        slowest = slowest.max(healed.elapsed());
        for candidate in &candidates {
            assert_ne!(candidate.campaign.status().phase(), CampaignPhase::Ended);
        }
    }
    println!(
        "{ROUNDS} rounds; one leads again at most {slowest:?} after the fault, of a lease of {LEASE:?}"
    );
    let mut tenures = 0;
    for Candidate {
        campaign,
        told,
        proxy,
    } in candidates
    {
        // The last fault may still be there for the release, which is then tried again in the background.
        if let Err(error) = campaign.stop().await {
            let unanswered = matches!(
                error,
                LeaderError::Backend {
                    kind: BackendKind::Unreachable | BackendKind::TimedOut,
                    ..
                }
            );
            assert!(unanswered, "{error:?}");
        }
        let told = timeout(LIMIT, told).await.unwrap().unwrap();
        for (index, change) in told.iter().enumerate() {
            let in_turn = match change {
                LeadershipChange::Granted { .. } => index % 2 == 0,
                LeadershipChange::Revoked { .. } => index % 2 == 1,
                _ => false,
            };
            assert!(in_turn, "{told:?}");
        }
        tenures += told.len() / 2;
        drop(proxy);
    }
    println!("{tenures} tenures, each granted and revoked in turn");
}

#[tokio::test(start_paused = true)]
async fn f01_a_store_that_fails_is_said_and_waited_out() {
    let elector = ScriptedElector::leader();
    let lease = options(LeaseOptions::builder().lease(LEASE));
    let campaign = elector.campaign("x", &lease, until_asked);
    let changes = tokio::spawn(campaign.subscribe().collect::<Vec<_>>());
    for round in 0..ROUNDS {
        until("it leads", LEASE, async || campaign.is_leader()).await;
        // Some that may pass, and some that will not by themselves.
        let kinds = [
            BackendKind::Unreachable,
            BackendKind::Denied,
            BackendKind::WrongType,
        ];
        let kind = kinds[round % kinds.len()];
        elector.fail(kind);
        sleep(LEASE * 3).await;
        assert!(!campaign.is_leader());
        let status = campaign.status();
        assert!(status.failures() > 1, "{status:?}");
        // Half a lease is the longest pause: it asks, and it does not flood.
        assert!(status.failures() < 20, "{status:?}");
        let failure = status
            .failure()
            .map(ToString::to_string)
            .unwrap_or_default();
        assert!(failure.contains(&kind.to_string()), "{failure}");
        elector.lead();
    }
    until("it leads", LEASE, async || campaign.is_leader()).await;
    assert!(campaign.status().failure().is_none());
    campaign.stop().await.unwrap();
    assert_eq!(changes.await.unwrap().len(), 2 * (ROUNDS + 1));
}
