//! What a soak has shown, for people and for programs.

use std::fmt::Write as _;

use super::Soaked;
use super::sample::Sample;

/// One column of the table of samples: its head, and what stands below.
type Column = (&'static str, fn(&Sample) -> String);

const COLUMNS: &[Column] = &[
    ("seconds", |s| format!("{:.0}", s.seconds)),
    ("heap KiB", |s| kib(s.heap)),
    ("resident KiB", |s| kib(s.resident)),
    ("tasks", |s| s.tasks.to_string()),
    ("connections", |s| s.connections.to_string()),
    ("subscriptions", |s| s.subscriptions.to_string()),
    ("keys", |s| s.keys.to_string()),
    ("of names that came once", |s| s.once.to_string()),
    ("server KiB", |s| kib(s.server_memory)),
    ("commands/s", |s| s.commands_per_second.to_string()),
    ("late ms", |s| s.late.to_string()),
    ("lost", |s| s.lost.to_string()),
];

/// So many samples stand in the document: the whole is in the JSON.
const SHOWN: usize = 21;

fn kib(bytes: u64) -> String {
    (bytes / 1024).to_string()
}

fn row(cell: impl Fn(&Column) -> String) -> String {
    let cells = COLUMNS.iter().map(|column| {
        let width = column.0.len().max(5);
        format!("{:>width$}", cell(column))
    });
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

pub(super) fn header() -> String {
    let rule = COLUMNS
        .iter()
        .map(|(head, _)| "-".repeat(head.len().max(5) + 1) + ":");
    let rule = rule.collect::<Vec<_>>().join("|");
    format!("{}\n|{rule}|", row(|(head, _)| (*head).to_owned()))
}

pub(super) fn line(sample: &Sample) -> String {
    row(|(_, read)| read(sample))
}

/// What had to hold, what happened, and what it cost, in Markdown.
#[must_use]
pub fn table(soaked: &Soaked) -> String {
    let mut text = String::from(
        "| what | in the beginning | in the end | at most | holds |\n|---|---:|---:|---:|---|\n",
    );
    for check in &soaked.checks {
        let holds = if check.holds { "yes" } else { "**no**" };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {holds} |",
            check.what, check.first, check.last, check.bound
        );
    }
    text.push_str("\n| happened | times |\n|---|---:|\n");
    for (what, count) in &soaked.counts {
        let _ = writeln!(text, "| {what} | {count} |");
    }
    let [ours, the_servers] = soaked.cores.map(|cores| cores * 100.0);
    let _ = writeln!(
        text,
        "\n{} leases were held within {:.1} s and then for {:.0} s, at {} bytes of heap each, with the task that holds it. \
         Of a core, this process took {ours:.1} %, and the server {the_servers:.1} %.",
        soaked.leases, soaked.seconds_to_hold, soaked.seconds, soaked.heap_per_lease,
    );
    text
}

/// The document that stands in the repository; `surroundings` says where and when that was.
#[must_use]
pub fn markdown(soaked: &Soaked, command: &str, surroundings: &str) -> String {
    let step = soaked.samples.len().div_ceil(SHOWN).max(1);
    let shown = soaked.samples.iter().rev().step_by(step);
    let mut lines: Vec<String> = shown.map(line).collect();
    lines.reverse();
    format!(
        "# Soak\n\n\
         Written by `{command}`; not edited by hand.\n\n\
         One process holds {leases} leases of ten seconds, which it extends by itself, while others come and go beside them: runs that \
         start and end, waiters that are cancelled, bodies that panic, attempts and bodies that are dropped, and names that come once \
         and never again. Nothing may be lost, and nothing may grow. Judged is the middle of the last third of the samples against \
         the middle of the first, after a minute. A name that comes once keeps its key for a day, as that remembers its last fencing \
         token: keys are counted without those. Commands are the server's own count, which has those that scripts call. \
         **late** is by how much a task of this process ran late at worst: how busy the machine was.\n\n\
         {surroundings}- server: {server}\n\n\
         {table}\n\
         {header}\n{lines}\n",
        leases = soaked.leases,
        server = soaked.server,
        table = table(soaked),
        header = header(),
        lines = lines.join("\n"),
    )
}

/// All of it, for programs.
///
/// # Errors
///
/// Never, as all of it is text and numbers.
pub fn json(soaked: &Soaked) -> serde_json::Result<String> {
    serde_json::to_string_pretty(soaked)
}
