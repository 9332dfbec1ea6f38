//! The logs: one record a line, written at once, so that a process that is killed has written what it did.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fault::Kind;
use crate::job::Job;
use crate::topology::Topology;

/// A line of a log. Times are in microseconds of the clock that all processes share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub(crate) enum Record {
    /// The director: what is played. The first line of its log.
    Run {
        topology: Topology,
        seed: u64,
        workers: usize,
        jobs: Vec<Job>,
    },
    /// The director: a fault was in force.
    Fault {
        kind: Kind,
        target: usize,
        from: u64,
        to: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forgot: Option<Forgot>,
    },
    /// The director: this life of a worker is over. It was still alive at that time.
    Gone { worker: usize, life: u32, at: u64 },
    /// The director: its own heart stood still, and with it, perhaps, the machine.
    Stall { from: u64, to: u64 },
    /// The director: no fault from here on, and then the workers were killed.
    Over { at: u64 },
    /// The director: what a fenced value had in it when all workers were gone.
    Value { key: String, fence: u64 },
    /// A worker: whose log this is. The first line of its log.
    Life { worker: usize, life: u32, at: u64 },
    /// A worker: it could not connect, and tries again. For people.
    Unconnected { at: u64, why: String },
    /// A worker: it leads. `asked` is a time before it asked for this lease, where there is one.
    Begin {
        at: u64,
        until: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<u64>,
        name: String,
        slot: u32,
        fence: u64,
        guarded: bool,
    },
    /// A worker: it acts as leader; `until` is when its lease ends as it knows, none when it has no lease any more.
    Act {
        at: u64,
        until: Option<u64>,
        name: String,
        fence: u64,
    },
    /// A worker: its body has ended, and it has not let go of the lease yet.
    End { at: u64, name: String, fence: u64 },
    /// A worker: its body was dropped, or found its lease gone.
    Dropped {
        at: u64,
        name: String,
        fence: u64,
        why: String,
    },
    /// A worker: it is about to write to the fenced value at `key`.
    Sent {
        at: u64,
        write: u64,
        key: String,
        fence: u64,
    },
    /// A worker: the answer. `seen` is the token for which it was refused, none when it was accepted.
    Answered {
        at: u64,
        write: u64,
        seen: Option<u64>,
    },
}

/// What a store may have forgotten in a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Forgot {
    /// Grants and extensions of these names.
    pub(crate) names: Vec<String>,
    /// That were acknowledged before this time: from then on there was another primary.
    pub(crate) by: u64,
}

/// A log that is being written.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    file: Arc<File>,
}

impl Log {
    /// Begins a new one.
    ///
    /// # Errors
    ///
    /// The file is there already, or cannot be made.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)?;
        Ok(Self {
            file: Arc::new(file),
        })
    }

    /// Writes a line.
    ///
    /// # Panics
    ///
    /// When it cannot be written: what follows would be judged without it.
    pub(crate) fn write(&self, record: &Record) {
        let line = serde_json::to_string(record);
        let written = line.map_err(io::Error::from).and_then(|mut line| {
            line.push('\n');
            // One call for the whole line.
            (&*self.file).write_all(line.as_bytes())
        });
        if let Err(error) = written {
            panic!("the log cannot be written: {error}");
        }
    }
}

/// A record, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The file's name and the number of the line.
    pub(crate) place: String,
    /// What it says.
    pub(crate) record: Record,
}

/// Reads a log, a record at a time. A last line without its end is one that was being written when the process was
/// killed, and is left out.
///
/// # Errors
///
/// The file cannot be read, or another line is no record.
pub(crate) fn read(path: &Path, mut each: impl FnMut(Entry)) -> Result<(), String> {
    let complain = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| complain(&error))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let place = format!("{name}:{}", number + 1);
        let Some(line) = line.strip_suffix('\n') else {
            continue;
        };
        let record = serde_json::from_str(line);
        let record = record.map_err(|error| format!("{place} is no record ({error}): {line}"))?;
        each(Entry { place, record });
    }
    Ok(())
}

/// The logs in a folder, the director's first.
///
/// # Errors
///
/// The folder cannot be read.
pub(crate) fn logs_in(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut logs: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "jsonl"))
        .collect();
    logs.sort();
    Ok(logs)
}

/// The director's log, in the folder of a run.
#[must_use]
pub(crate) fn director_log(dir: &Path) -> PathBuf {
    dir.join("director.jsonl")
}

/// The log of one life of a worker.
#[must_use]
pub(crate) fn worker_log(dir: &Path, worker: usize, life: u32) -> PathBuf {
    dir.join(format!("worker-{worker}-{life:04}.jsonl"))
}
