//! A user limited to what the README says is enough: it is, and nothing in it can be left out unnoticed.

mod rule;
mod warnings;

use std::time::Duration;

use leader_core::store::{
    Claim, ExtendReply, Extension, LeaseStore, Release, Revision, StoreError, hints,
};
use leader_core::{BackendKind, ElectorExt, LeaderError, LockName, NodeId, Token};
use leader_redis::{RedisElector, RedisStore};
use leader_tests::{Server, elector_at, lead, options, patient, until, waiting};

use crate::rule::{PASSWORD, Permission, USER, readme, without};

/// Far more than anything here takes on a machine that is busy.
const LIMIT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(60);

async fn server(rule: &str) -> Server {
    Server::builder().user(rule).start().await
}

async fn elector(server: &Server, node_id: &str) -> Result<RedisElector, LeaderError> {
    let builder = elector_at(server.url_for(USER, PASSWORD)).node_id(node_id);
    builder
        .command_timeout(Duration::from_secs(5))
        .connect()
        .await
}

async fn store() -> (RedisStore, Server) {
    let server = server(&readme()).await;
    let elector = elector(&server, "limited")
        .await
        .expect("the rule suffices");
    (elector.store().clone(), server)
}

leader_core::conformance_tests!(store = store());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contended_run_with_waiters_is_refused_nothing() {
    let server = server(&readme()).await;
    let a = elector(&server, "a").await.unwrap();
    let b = elector(&server, "b").await.unwrap();
    let extended = options(waiting(LIMIT, Duration::from_secs(3)).auto_extend(true));
    for round in 0..3 {
        let lease = lead(&a, "x", &extended).await;
        let waiters: Vec<_> = (0..5)
            .map(|_| {
                let b = b.clone();
                tokio::spawn(async move { lead(&b, "x", &patient()).await.release().await })
            })
            .collect();
        until("somebody waits", LIMIT, async || {
            let subscribed = server.command(&["PUBSUB", "NUMSUB", "leader:{x}:released"]);
            subscribed.await.array()[1].integer() == 1
        })
        .await;
        lease.extend(LONG).await.unwrap();
        if round == 1 {
            server.command(&["SCRIPT", "FLUSH"]).await;
        }
        if round == 2 {
            assert_eq!(a.force_release("x").await.unwrap(), 1);
        } else {
            lease.release().await.unwrap();
        }
        for waiter in waiters {
            let waited = tokio::time::timeout(LIMIT, waiter).await;
            waited
                .expect("woken, not when the lease ends")
                .unwrap()
                .unwrap();
        }
    }
    a.state("x").await.unwrap();
    a.shutdown().await;
    b.shutdown().await;
    assert_eq!(refused(&server).await, Vec::<String>::new());
}

/// What the server has refused to the user.
async fn refused(server: &Server) -> Vec<String> {
    let log = server.command(&["ACL", "LOG"]).await;
    let entry = |entry: &leader_tests::Reply| {
        let fields: Vec<String> = entry
            .array()
            .iter()
            .map(leader_tests::Reply::text)
            .collect();
        let object = fields.iter().position(|field| field == "object");
        object.map(|at| fields[at + 1].clone()).unwrap_or_default()
    };
    log.array().iter().map(entry).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_permission_that_is_missing_is_named() {
    let warnings = warnings::collect();
    let rule = readme();
    let permissions = rule::permissions(&rule);
    assert!(permissions.len() > 10, "{permissions:?}");
    for missing in permissions {
        let server = server(&without(&rule, &missing)).await;
        let told = tokio::time::timeout(LIMIT, everything(&server)).await;
        let denied = told.unwrap_or_else(|_| panic!("{missing:?} is missing, and something hangs"));
        let mut told: Vec<String> = Vec::new();
        for (kind, words) in denied {
            assert_eq!(kind, BackendKind::Denied, "{missing:?}: {words}");
            told.push(words);
        }
        told.extend(warnings.of(server.addr()));
        if missing.is_optional() {
            assert!(told.is_empty(), "{missing:?} is needed after all: {told:?}");
            let refused = refused(&server).await;
            assert!(
                refused.iter().any(|object| missing.is_logged_as(object)),
                "{refused:?}"
            );
            continue;
        }
        assert!(
            told.iter().any(|words| missing.is_named_in(words)),
            "{missing:?} is missing, and nothing says so: {told:#?}"
        );
        for words in &told {
            assert!(!words.contains(PASSWORD), "{words}");
        }
        if missing.keeps_waiters_waiting() {
            let warned = warnings.of(server.addr());
            assert!(
                !warned.is_empty(),
                "{missing:?}: waiters are late without a warning"
            );
        }
    }
}

/// Each step of a store once, whatever fails; and what failed.
async fn everything(server: &Server) -> Vec<(BackendKind, String)> {
    let mut failed = Vec::new();
    let elector = match elector(server, "limited").await {
        Ok(elector) => elector,
        Err(LeaderError::Backend { kind, .. }) if kind != BackendKind::Denied => {
            panic!("the server is not there: {kind:?}")
        }
        Err(error) => return vec![(BackendKind::Denied, error.to_string())],
    };
    let store = elector.store();
    let mut note = |error: Option<StoreError>| {
        failed.extend(error.map(|error| (error.kind(), error.to_string())));
    };
    let (name, other) = (name("x"), name("other"));
    let (ours, theirs) = (Token::random(), Token::random());
    let claim = |token| Claim::new(name.clone(), NodeId::new("limited"), token, LONG);
    note(store.claim(&claim(ours)).await.err());
    note(store.claim(&claim(theirs)).await.err());

    let (sender, _told) = hints();
    let watched = store.watch(&name, Revision::default(), sender).await;
    note(watched.as_ref().err().cloned());
    drop(watched);
    // Behind the end of the subscription on the same connection.
    let (sender, _told) = hints();
    let watched = store.watch(&other, Revision::default(), sender).await;
    note(watched.as_ref().err().cloned());

    let extension = |name: &LockName| Extension::new(name.clone(), ours, 0, LONG * 2);
    for extended in store.extend(&[extension(&name), extension(&other)]).await {
        if !matches!(
            extended,
            Ok(ExtendReply::Extended | ExtendReply::NotHeld(_))
        ) {
            note(extended.err());
        }
    }
    note(store.inspect(&name).await.err());
    note(
        store
            .release(&Release::new(name.clone(), ours, 0))
            .await
            .err(),
    );
    note(
        store
            .release(&Release::abandoned(name.clone(), theirs, LONG))
            .await
            .err(),
    );
    note(store.claim(&claim(theirs)).await.err());
    note(store.evict(&name).await.err());
    server.command(&["SCRIPT", "FLUSH"]).await;
    note(store.claim(&claim(Token::random())).await.err());
    failed
}

fn name(name: &str) -> LockName {
    LockName::new(name).expect("the name is valid")
}

#[test]
fn the_rule_has_no_more_than_it_needs() {
    let rule = readme();
    for wide in [
        "~*",
        "&*",
        "allkeys",
        "allchannels",
        "+@",
        "nopass",
        "allcommands",
    ] {
        assert!(!rule.contains(wide), "{rule}");
    }
    assert!(
        rule.contains("resetchannels"),
        "6.2 allows all channels by default: {rule}"
    );
    assert!(rule::permissions(&rule).contains(&Permission::new("+evalsha")));
}
