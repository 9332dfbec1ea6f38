//! Figures of load and faults: as a table, as JSON, and as a line of the page of results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::check::{Close, Recovery, Verdict, Violation};

/// The figures of one run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    topology: &'static str,
    seed: u64,
    seconds: u64,
    workers: usize,
    /// How many processes there were, those that were killed included.
    lives: usize,
    tenures: usize,
    /// By how they ended.
    ends: BTreeMap<String, usize>,
    writes_accepted: usize,
    writes_refused: usize,
    writes_unanswered: usize,
    faults: BTreeMap<String, usize>,
    recovery: Recovery,
    /// The longest time that the director stood still, in milliseconds, and all of them together.
    worst_stall_ms: u64,
    stalled_ms: u64,
    explained_overlaps: usize,
    violations: Vec<Violation>,
}

impl Report {
    pub(crate) fn new(verdict: &Verdict, took: Duration) -> Self {
        let story = &verdict.story;
        let mut ends: BTreeMap<String, usize> = BTreeMap::new();
        for tenure in &story.tenures {
            let end = match &tenure.close {
                Close::Open => "worker killed",
                Close::Ended(_) => "done",
                Close::Dropped(_, why) => why,
            };
            *ends.entry(end.to_owned()).or_default() += 1;
        }
        let mut faults: BTreeMap<String, usize> = BTreeMap::new();
        for fault in &story.faults {
            *faults.entry(fault.kind.to_string()).or_default() += 1;
        }
        let answers = |refused: bool| {
            let of = story
                .writes
                .iter()
                .filter_map(|write| write.answer.as_ref());
            of.filter(|answer| answer.seen.is_some() == refused).count()
        };
        let stalls = || story.stalls.iter().map(|(from, to)| (to - from) / 1000);
        let lives: std::collections::BTreeSet<_> = story
            .tenures
            .iter()
            .map(|tenure| (tenure.worker, tenure.life))
            .collect();
        Self {
            topology: story.topology.as_str(),
            seed: story.seed,
            seconds: took.as_secs(),
            workers: story.workers,
            lives: lives.len(),
            tenures: story.tenures.len(),
            ends,
            writes_accepted: answers(false),
            writes_refused: answers(true),
            writes_unanswered: story
                .writes
                .iter()
                .filter(|write| write.answer.is_none())
                .count(),
            faults,
            recovery: verdict.recovery.clone(),
            worst_stall_ms: stalls().max().unwrap_or_default(),
            stalled_ms: stalls().sum(),
            explained_overlaps: verdict.explained.len(),
            violations: verdict.violations.clone(),
        }
    }

    /// For people.
    pub(crate) fn table(&self, verdict: &Verdict) -> String {
        let list = |counts: &BTreeMap<String, usize>| {
            let each = counts.iter().map(|(what, count)| format!("{what} {count}"));
            each.collect::<Vec<_>>().join(", ")
        };
        let recovery = &self.recovery;
        let mut text = String::new();
        let mut row = |what: &str, value: String| {
            let _ = writeln!(text, "  {what:<18} {value}");
        };
        row(
            "topology",
            format!("{}, seed {}, {} s", self.topology, self.seed, self.seconds),
        );
        row(
            "workers",
            format!("{}, in {} lives that led", self.workers, self.lives),
        );
        row("tenures", format!("{}: {}", self.tenures, list(&self.ends)));
        row(
            "fenced writes",
            format!(
                "{} accepted, {} refused, {} without an answer",
                self.writes_accepted, self.writes_refused, self.writes_unanswered
            ),
        );
        row(
            "faults",
            format!(
                "{}: {}",
                self.faults.values().sum::<usize>(),
                list(&self.faults)
            ),
        );
        row(
            "recovery",
            format!(
                "{} lulls, {} names led again: median {} ms, worst {} ms ({}); {} cut short",
                recovery.lulls,
                recovery.seen,
                recovery.median_ms,
                recovery.worst_ms,
                recovery.worst_name,
                recovery.cut_short
            ),
        );
        row(
            "machine stalls",
            format!(
                "worst {} ms, {} ms in all",
                self.worst_stall_ms, self.stalled_ms
            ),
        );
        row(
            "overlaps",
            format!("{} that a fault explains", self.explained_overlaps),
        );
        row("violations", self.violations.len().to_string());
        for explained in &verdict.explained {
            let _ = writeln!(text, "  explained: {explained}");
        }
        for violation in &self.violations {
            let _ = writeln!(
                text,
                "  VIOLATION of {}: {}",
                violation.rule, violation.what
            );
            for line in &violation.lines {
                let _ = writeln!(text, "      {line}");
            }
        }
        text
    }

    /// For the page of results.
    pub(crate) fn row(&self) -> String {
        let recovery = &self.recovery;
        let faults = self.faults.values();
        format!(
            "| {} | {} | {} | {} | {} / {} | {} (least {}) | {} ms / {} ms | {} ms, {} % | {} | {} |\n",
            self.topology,
            self.seconds,
            self.seed,
            self.tenures,
            self.writes_accepted,
            self.writes_refused,
            faults.clone().sum::<usize>(),
            faults.min().copied().unwrap_or_default(),
            recovery.median_ms,
            recovery.worst_ms,
            self.worst_stall_ms,
            self.stalled_ms / 10 / self.seconds.max(1),
            self.explained_overlaps,
            self.violations.len(),
        )
    }
}
