//! A play as text: a table of its rows, and a lane for each candidate.

use serde::Serialize;

use super::plan::{Candidate, OnLost, Plan};
use super::row::{Action, Row};
use super::words::{Language, heads};

/// What a candidate is at, after all that happened in a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Nothing.
    #[default]
    Idle,
    /// Waits to be elected.
    Waiting,
    /// Was skipped in this tick.
    Skipped,
    /// Leads.
    Leading,
    /// Has lost its lease, and works on.
    Stale,
    /// Is frozen.
    Frozen,
    /// Has ended its work, and a minimum lease keeps its slot.
    Retained,
}

impl Mark {
    const ALL: [Self; 7] = [
        Self::Waiting,
        Self::Skipped,
        Self::Leading,
        Self::Stale,
        Self::Frozen,
        Self::Retained,
        Self::Idle,
    ];

    /// The mark as a character.
    #[must_use]
    pub fn symbol(self) -> char {
        match self {
            Self::Idle => '.',
            Self::Waiting => '~',
            Self::Skipped => 'x',
            Self::Leading => '#',
            Self::Stale => '!',
            Self::Frozen => 'z',
            Self::Retained => '=',
        }
    }

    /// What it means.
    #[must_use]
    pub fn words(self, language: Language) -> &'static str {
        language.of(match self {
            Self::Idle => ["nothing", "없음"],
            Self::Waiting => ["waits", "대기"],
            Self::Skipped => ["skipped", "건너뜀"],
            Self::Leading => ["leads", "이끎"],
            Self::Stale => ["works without a lease", "리스 없이 작업"],
            Self::Frozen => ["frozen", "정지"],
            Self::Retained => ["min lease keeps the slot", "최소 리스가 슬롯 유지"],
        })
    }
}

/// One candidate's marks, from tick 0 on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// Whose.
    pub candidate: Candidate,
    /// One for each tick.
    pub marks: Vec<Mark>,
}

/// A lane for each candidate, of the first `ticks` ticks. `rows` are those of a play of `plan`, so far.
#[must_use]
pub fn lanes(plan: &Plan, rows: &[Row], ticks: u32) -> Vec<Lane> {
    let lane = |candidate| {
        let mut at = Position::default();
        let mut rows = rows
            .iter()
            .filter(|row| row.candidate == candidate)
            .peekable();
        let mark = |tick| {
            at.skipped = false;
            while let Some(row) = rows.next_if(|row| row.tick <= tick) {
                at.take(plan, row);
            }
            at.mark(tick)
        };
        Lane {
            candidate,
            marks: (0..ticks).map(mark).collect(),
        }
    };
    plan.candidates().into_iter().map(lane).collect()
}

/// Where a candidate is. It may be in several places, when it stands again before its first work has ended.
#[derive(Default)]
struct Position {
    waiting: u32,
    leading: u32,
    stale: u32,
    frozen: bool,
    skipped: bool,
    kept_until: u32,
}

impl Position {
    fn take(&mut self, plan: &Plan, row: &Row) {
        match row.action {
            Action::Frozen => self.frozen = true,
            Action::Thawed => self.frozen = false,
            Action::Waits => self.waiting += 1,
            Action::Skipped | Action::Failed => {
                self.skipped = row.action == Action::Skipped;
                self.waiting = self.waiting.saturating_sub(1);
            }
            Action::Elected => {
                self.waiting = self.waiting.saturating_sub(1);
                self.leading += 1;
            }
            Action::Lost => {
                self.leading = self.leading.saturating_sub(1);
                self.stale += u32::from(plan.on_lost == OnLost::Continue);
            }
            Action::Released => {
                self.leading = self.leading.saturating_sub(1);
                self.kept_until = row.tick + row.remaining.unwrap_or_default();
            }
            Action::ReleaseRefused => self.stale = self.stale.saturating_sub(1),
            Action::Extended
            | Action::WroteFirst
            | Action::WroteLast
            | Action::FirstWriteRefused
            | Action::LastWriteRefused => {}
        }
    }

    fn mark(&self, tick: u32) -> Mark {
        if self.frozen {
            Mark::Frozen
        } else if self.leading > 0 {
            Mark::Leading
        } else if self.stale > 0 {
            Mark::Stale
        } else if self.waiting > 0 {
            Mark::Waiting
        } else if self.skipped {
            Mark::Skipped
        } else if tick < self.kept_until {
            Mark::Retained
        } else {
            Mark::Idle
        }
    }
}

/// The rows of a play of `plan` as a table, and the lanes below it.
#[must_use]
pub fn table(plan: &Plan, rows: &[Row], language: Language) -> String {
    let mut lines = vec![heads(language).map(str::to_owned)];
    lines.extend(rows.iter().map(|row| cells(row, language)));
    let mut text = String::new();
    for line in &lines {
        let mut written = String::new();
        for (column, cell) in line.iter().enumerate() {
            // A column of one slot says nothing.
            if column == SLOT && plan.slots == 1 {
                continue;
            }
            let widest = lines.iter().map(|line| width(&line[column])).max();
            let pad = " ".repeat(widest.unwrap_or_default() - width(cell));
            if NUMBERS.contains(&column) {
                written.extend([pad.as_str(), cell, "  "]);
            } else {
                written.extend([cell, pad.as_str(), "  "]);
            }
        }
        text.push_str(written.trim_end());
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&chart(plan, rows, language));
    text
}

const SLOT: usize = 3;
/// The columns that are aligned to the right.
const NUMBERS: [usize; 4] = [0, SLOT, 4, 5];

fn cells(row: &Row, language: Language) -> [String; 7] {
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |n| n.to_string());
    [
        row.tick.to_string(),
        row.candidate.to_string(),
        row.action.words(language).to_owned(),
        number(row.slot.map(u64::from)),
        number(row.token),
        number(row.remaining.map(u64::from)),
        row.result(language),
    ]
}

/// How many columns of a terminal a text takes: the letters of Korean take two.
fn width(text: &str) -> usize {
    let wide = |letter: char| ('\u{1100}'..='\u{ffdc}').contains(&letter);
    text.chars()
        .map(|letter| 1 + usize::from(wide(letter)))
        .sum()
}

fn chart(plan: &Plan, rows: &[Row], language: Language) -> String {
    let ends = rows.iter().map(|row| row.tick + retained(row)).max();
    let ticks = ends.unwrap_or_default() + 1;
    let lanes = lanes(plan, rows, ticks);
    let used = |mark: &&Mark| lanes.iter().any(|lane| lane.marks.contains(mark));
    let legend: Vec<_> = Mark::ALL
        .iter()
        .filter(used)
        .map(|mark| format!("{} {}", mark.symbol(), mark.words(language)))
        .collect();
    let ruler: Vec<_> = (0..ticks)
        .step_by(5)
        .map(|tick| format!("{tick:<4}"))
        .collect();
    let mut text = vec![format!("   {}", ruler.join(" ").trim_end())];
    text.extend(lanes.iter().map(|lane| {
        let marks: String = lane.marks.iter().map(|mark| mark.symbol()).collect();
        format!("{}  {marks}", lane.candidate)
    }));
    text.push(format!("   {}\n", legend.join("   ")));
    text.join("\n")
}

/// For how many ticks after its row a slot is kept.
fn retained(row: &Row) -> u32 {
    match row.action {
        Action::Released => row.remaining.unwrap_or_default(),
        _ => 0,
    }
}
