//! What must hold of any name and any options, however odd: each function panics where it does not.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;

use crate::{
    CampaignOptions, ElectorExt, LeaderError, LeaseOptions, LocalElector, LockName, NodeId, OnLost,
    WhenBodyEnds,
};

#[cfg(test)]
mod properties;

/// A name is accepted exactly when it keeps the rule of its type, and is then what was written. What is refused is told
/// in one short line.
pub fn name(text: &str) {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    let is_good = (1..=255).contains(&text.len())
        && text.as_bytes()[0].is_ascii_alphanumeric()
        && text.bytes().all(is_allowed);
    match LockName::new(text) {
        Ok(name) => {
            assert!(is_good, "{text:?} was accepted");
            assert_eq!(name.as_str(), text);
            assert_eq!(name.to_string().parse::<LockName>().unwrap(), name);
        }
        Err(error) => {
            assert!(!is_good, "{text:?} was refused");
            assert!(matches!(error, LeaderError::InvalidName { .. }));
            one_short_line(&error.to_string());
        }
    }
}

/// A node id is printable, short, never blank, and the same when it comes back from a store.
pub fn node_id(text: &str) {
    let id = NodeId::new(text);
    assert!(!id.as_str().trim().is_empty(), "{text:?} gave {id:?}");
    assert!(id.as_str().chars().count() <= NodeId::MAX_LEN);
    assert!(!id.as_str().contains(char::is_control), "{id:?}");
    assert_eq!(NodeId::new(id.as_str()), id);
}

/// Options as somebody might ask for, and what is then done with them.
#[derive(Clone, Debug)]
pub struct Wish {
    pub wait: Duration,
    pub lease: Duration,
    pub min_lease: Duration,
    pub auto_extend: bool,
    pub notify: bool,
    pub slots: u32,
    pub max_tenure: Option<Duration>,
    pub pattern: Option<String>,
    /// For how long the lease is extended by hand.
    pub extension: Duration,
    /// How long the work takes, in percent of the lease.
    pub work: u8,
}

/// Options are refused by the rule that they break first, with an error that names it and the bound; what is accepted
/// keeps its meaning, and can be used without a panic.
pub fn options(wish: &Wish) {
    let mut builder = LeaseOptions::builder()
        .wait(wish.wait)
        .lease(wish.lease)
        .min_lease(wish.min_lease)
        .auto_extend(wish.auto_extend)
        .on_lost(if wish.notify {
            OnLost::Notify
        } else {
            OnLost::Cancel
        })
        .slots(wish.slots);
    if let Some(max_tenure) = wish.max_tenure {
        builder = builder.max_tenure(max_tenure);
    }
    if let Some(pattern) = &wish.pattern {
        builder = builder.name_pattern(pattern);
    }
    let lease = format!("{:?}", wish.lease);
    let broken = if wish.lease < Duration::from_millis(10) {
        Some(("lease", "10 ms at least"))
    } else if wish.lease > Duration::from_secs(31_536_000) {
        Some(("lease", "365 days at most"))
    } else if wish.min_lease > wish.lease {
        Some(("min_lease", lease.as_str()))
    } else if !(1..=1024).contains(&wish.slots) {
        Some(("slots", "1 to 1024"))
    } else if wish.max_tenure.is_some_and(|max| max < wish.lease) {
        Some(("max_tenure", lease.as_str()))
    } else {
        None
    };
    let Some(options) = agreed(builder.build(), broken) else {
        return;
    };
    assert_eq!(options.wait(), wish.wait);
    assert_eq!(options.lease(), wish.lease);
    assert_eq!(options.min_lease(), wish.min_lease);
    assert_eq!(options.slots(), wish.slots);
    assert_eq!(options.max_tenure(), wish.max_tenure);
    assert_eq!(options.name_pattern(), wish.pattern.as_deref());
    in_virtual_time(used(options, wish));
}

/// A lease is held, extended by hand and waited for, with these options, until all is over.
async fn used(options: LeaseOptions, wish: &Wish) {
    let elector = LocalElector::new();
    let peer = elector.node("peer");
    let work = options.lease() * u32::from(wish.work) / 100;

    let lease = elector.try_acquire("used", &options).await;
    let lease = lease.unwrap().expect("nobody else leads");
    assert!(lease.is_valid() && lease.slot() < options.slots());
    assert!(lease.remaining() <= options.lease());
    match lease.extend(wish.extension).await {
        Ok(()) => assert!(lease.is_valid()),
        Err(LeaderError::InvalidOptions { option, reason }) => {
            one_short_line(&reason);
            assert_eq!(option, "extend");
            let legal = LeaseOptions::MIN_LEASE..=LeaseOptions::MAX_LEASE;
            assert!(!legal.contains(&wish.extension));
        }
        Err(error) => assert!(matches!(error, LeaderError::LeaseLost { .. }), "{error}"),
    }
    let held = async {
        tokio::time::sleep(work).await;
        drop(lease);
    };
    // A peer that waits for ever is elected once the lease is given up, or has ended.
    let waited = peer.run_if_leader("used", &options, |_| tokio::time::sleep(work));
    let ((), waited) = tokio::join!(held, waited);
    match waited {
        Ok(_) | Err(LeaderError::LeaseLost { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    elector.shutdown().await;
    peer.shutdown().await;
}

/// Times of a campaign as somebody might ask for.
#[derive(Clone, Debug)]
pub struct CampaignWish {
    pub lease: Duration,
    pub grace: Duration,
    pub rest: Duration,
    pub pause: Duration,
    pub longest: Duration,
    pub fails: bool,
}

/// As [`options`], of a campaign: what is accepted stands again and again, resigns, and ends when it is told to.
pub fn campaign(wish: &CampaignWish) {
    let Ok(lease) = LeaseOptions::builder().lease(wish.lease).build() else {
        return;
    };
    let then = WhenBodyEnds::StandAgain {
        pause: wish.pause,
        longest: wish.longest,
    };
    let built = CampaignOptions::builder(&lease)
        .grace(wish.grace)
        .rest(wish.rest)
        .when_body_ends(then)
        .build();
    let first = format!("{:?}", wish.pause);
    let broken = if wish.pause < Duration::from_millis(10) {
        Some(("when_body_returns", "10 ms at least"))
    } else if wish.longest < wish.pause {
        Some(("when_body_returns", first.as_str()))
    } else {
        None
    };
    let Some(options) = agreed(built, broken) else {
        return;
    };
    let fails = wish.fails;
    in_virtual_time(async move {
        let elector = LocalElector::new();
        let campaign = elector.campaign("led", options, move |_| async move {
            if fails { Err("no") } else { Ok(()) }
        });
        let mut changes = campaign.subscribe();
        for _ in 0..6 {
            // A pause of years is nothing to wait for.
            let change = tokio::time::timeout(Duration::from_secs(3600), changes.next());
            if change.await.is_err() {
                break;
            }
        }
        let _ = campaign.resign().await;
        campaign.stop().await.unwrap();
        elector.shutdown().await;
    });
}

/// What was built, if it is right that it was; a refusal must be of the option that is `broken`, and tell its bound.
fn agreed<T: Debug>(
    built: Result<T, LeaderError>,
    broken: Option<(&'static str, &str)>,
) -> Option<T> {
    match (built, broken) {
        (Ok(built), None) => Some(built),
        (Err(LeaderError::InvalidOptions { option, reason }), Some((at_fault, bound))) => {
            assert_eq!(option, at_fault, "{reason}");
            assert!(reason.contains(bound), "{reason}");
            one_short_line(&reason);
            None
        }
        (built, broken) => panic!("{broken:?} is broken, and it gave {built:?}"),
    }
}

fn one_short_line(message: &str) {
    assert!(message.chars().count() < 1000, "{message}");
    assert!(!message.contains(char::is_control), "{message:?}");
}

fn in_virtual_time(story: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.unwrap().block_on(story);
}
