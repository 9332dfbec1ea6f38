//! What the logs tell, put together: tenures, writes, faults.

use std::collections::HashMap;
use std::path::Path;

use crate::fault::Kind;
use crate::job::Job;
use crate::record::{Entry, Forgot, Record, logs_in, read};
use crate::topology::Topology;

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    pub(crate) topology: Topology,
    pub(crate) seed: u64,
    pub(crate) workers: usize,
    pub(crate) jobs: Vec<Job>,
    /// By their begin.
    pub(crate) tenures: Vec<Tenure>,
    pub(crate) writes: Vec<Write>,
    /// By their begin.
    pub(crate) faults: Vec<Fault>,
    /// Times in which the director's heart stood still.
    pub(crate) stalls: Vec<(u64, u64)>,
    /// What the fenced values had in them in the end.
    pub(crate) values: Vec<(String, u64)>,
    /// The time of the first line, and of the end of the last lull.
    pub(crate) from: u64,
    pub(crate) over: u64,
}

/// One grant, as its holder has lived it.
#[derive(Clone, Debug)]
pub(crate) struct Tenure {
    pub(crate) worker: usize,
    pub(crate) life: u32,
    pub(crate) name: String,
    pub(crate) slot: u32,
    pub(crate) fence: u64,
    pub(crate) guarded: bool,
    pub(crate) asked: Option<u64>,
    pub(crate) begin: u64,
    /// When it last found its lease valid.
    pub(crate) last_act: u64,
    /// The latest deadline that it has seen.
    pub(crate) until: u64,
    /// How often it was at work and found its lease gone.
    pub(crate) late: usize,
    pub(crate) close: Close,
    /// Until when its holder believed in it.
    pub(crate) end: u64,
    /// Where it begins, where it was at work last, and where it ends.
    pub(crate) places: [String; 3],
}

/// How a tenure ended, by its holder's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// There is no word of it.
    Open,
    /// The body ended.
    Ended(u64),
    /// The body was dropped, or found its lease gone.
    Dropped(u64, String),
}

/// A write to a fenced value.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) key: String,
    pub(crate) fence: u64,
    pub(crate) sent: u64,
    pub(crate) answer: Option<Answer>,
    pub(crate) places: [String; 2],
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) at: u64,
    /// For which token it was refused.
    pub(crate) seen: Option<u64>,
}

/// A fault that was in force.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) forgot: Option<Forgot>,
    pub(crate) place: String,
}

impl Tenure {
    /// The lines that show it.
    #[must_use]
    pub(crate) fn lines(&self) -> Vec<String> {
        let [begin, act, close] = &self.places;
        let line = format!(
            "{begin} worker {} leads {}#{} under {} from {}; valid at {} ({act}), its deadline {}; {} {close}",
            self.worker,
            self.name,
            self.slot,
            self.fence,
            self.begin,
            self.last_act,
            self.until,
            match &self.close {
                Close::Open => "then silence".to_owned(),
                Close::Ended(at) => format!("ended at {at}"),
                Close::Dropped(at, why) => format!("dropped at {at}, {why}"),
            }
        );
        vec![line.trim_end().to_owned()]
    }

    /// See the crate's first page.
    fn believed_until(&self, gone: Option<u64>) -> u64 {
        let by_deadline = self.last_act.max(self.until);
        match &self.close {
            Close::Ended(at) => *at,
            Close::Dropped(_, why) if why == "expired" || why == "max_tenure" => by_deadline,
            Close::Dropped(..) => self.last_act,
            Close::Open => gone.map_or(by_deadline, |gone| self.last_act.max(self.until.min(gone))),
        }
    }
}

/// A tenure is known by its worker, that worker's life, its name, and its token.
type Who = (usize, u32, String, u64);

#[derive(Default)]
struct Reader {
    run: Option<(Topology, u64, usize, Vec<Job>)>,
    tenures: HashMap<Who, Tenure>,
    /// The same grant twice in one log.
    again: Vec<Tenure>,
    writes: HashMap<(usize, u32, u64), Write>,
    faults: Vec<Fault>,
    stalls: Vec<(u64, u64)>,
    values: Vec<(String, u64)>,
    gone: HashMap<(usize, u32), u64>,
    from: Option<u64>,
    over: Option<u64>,
}

impl Story {
    /// Reads all logs in a folder.
    ///
    /// # Errors
    ///
    /// A log cannot be read, or there is no run in them.
    pub(crate) fn read(dir: &Path) -> Result<Self, String> {
        let mut reader = Reader::default();
        for path in logs_in(dir)? {
            let (mut life, mut trouble) = (None, None);
            read(&path, |entry| {
                if let Err(what) = reader.take(entry, &mut life) {
                    trouble.get_or_insert(what);
                }
            })?;
            if let Some(what) = trouble {
                return Err(what);
            }
        }
        reader.story(dir)
    }
}

impl Reader {
    fn take(&mut self, entry: Entry, life: &mut Option<(usize, u32)>) -> Result<(), String> {
        let Entry { place, record } = entry;
        match record {
            Record::Run {
                topology,
                seed,
                workers,
                jobs,
            } => {
                self.run = Some((topology, seed, workers, jobs));
            }
            Record::Fault {
                kind,
                from,
                to,
                forgot,
                ..
            } => {
                self.faults.push(Fault {
                    kind,
                    from,
                    to,
                    forgot,
                    place,
                });
            }
            Record::Gone { worker, life, at } => _ = self.gone.insert((worker, life), at),
            Record::Stall { from, to } => self.stalls.push((from, to)),
            Record::Over { at } => self.over = Some(at),
            Record::Value { key, fence } => self.values.push((key, fence)),
            Record::Life {
                worker,
                life: number,
                at,
            } => {
                *life = Some((worker, number));
                self.from = Some(self.from.map_or(at, |from| from.min(at)));
            }
            of_a_worker => {
                let Some(life) = *life else {
                    return Err(format!("{place}: nobody has said whose log this is"));
                };
                return self.take_of(life, of_a_worker, place);
            }
        }
        Ok(())
    }

    fn take_of(&mut self, life: (usize, u32), record: Record, place: String) -> Result<(), String> {
        match record {
            Record::Begin {
                at,
                until,
                asked,
                name,
                slot,
                fence,
                guarded,
            } => {
                let tenure = Tenure {
                    worker: life.0,
                    life: life.1,
                    name: name.clone(),
                    slot,
                    fence,
                    guarded,
                    asked,
                    begin: at,
                    last_act: at,
                    until,
                    late: 0,
                    close: Close::Open,
                    end: at,
                    places: [place, String::new(), String::new()],
                };
                let earlier = self.tenures.insert((life.0, life.1, name, fence), tenure);
                self.again.extend(earlier);
            }
            Record::Act {
                at,
                until,
                name,
                fence,
            } => {
                let tenure = self.known(life, name, fence, &place)?;
                if let Some(until) = until {
                    tenure.last_act = tenure.last_act.max(at);
                    tenure.until = tenure.until.max(until);
                    tenure.places[1] = place;
                } else {
                    tenure.late += 1;
                    tenure.places[2] = place;
                }
            }
            Record::End { at, name, fence } => {
                let tenure = self.known(life, name, fence, &place)?;
                tenure.close = Close::Ended(at);
                tenure.places[2] = place;
            }
            Record::Dropped {
                at,
                name,
                fence,
                why,
            } => {
                let tenure = self.known(life, name, fence, &place)?;
                tenure.close = Close::Dropped(at, why);
                tenure.places[2] = place;
            }
            Record::Sent {
                at,
                write,
                key,
                fence,
            } => {
                let places = [place, String::new()];
                let write_of = Write {
                    key,
                    fence,
                    sent: at,
                    answer: None,
                    places,
                };
                self.writes.insert((life.0, life.1, write), write_of);
            }
            Record::Answered { at, write, seen } => {
                let known = self.writes.get_mut(&(life.0, life.1, write));
                let known = known.ok_or_else(|| format!("{place}: a write that nobody sent"))?;
                known.answer = Some(Answer { at, seen });
                known.places[1] = place;
            }
            Record::Unconnected { .. } => {}
            other => return Err(format!("{place}: {other:?} is not a worker's to say")),
        }
        Ok(())
    }

    fn known(
        &mut self,
        life: (usize, u32),
        name: String,
        fence: u64,
        place: &str,
    ) -> Result<&mut Tenure, String> {
        let tenure = self.tenures.get_mut(&(life.0, life.1, name, fence));
        tenure.ok_or_else(|| format!("{place}: a tenure that never began"))
    }

    fn story(self, dir: &Path) -> Result<Story, String> {
        let missing = |what| format!("no {what} in the logs of {}", dir.display());
        let (topology, seed, workers, jobs) = self.run.ok_or_else(|| missing("run"))?;
        let mut tenures: Vec<Tenure> = self.tenures.into_values().chain(self.again).collect();
        for tenure in &mut tenures {
            let gone = self.gone.get(&(tenure.worker, tenure.life));
            tenure.end = tenure.believed_until(gone.copied());
        }
        tenures.sort_by_key(|tenure| (tenure.begin, tenure.fence));
        let mut writes: Vec<Write> = self.writes.into_values().collect();
        writes.sort_by_key(|write| write.sent);
        let mut faults = self.faults;
        faults.sort_by_key(|fault| fault.from);
        Ok(Story {
            topology,
            seed,
            workers,
            jobs,
            tenures,
            writes,
            faults,
            stalls: self.stalls,
            values: self.values,
            from: self.from.ok_or_else(|| missing("worker"))?,
            over: self.over.ok_or_else(|| missing("end"))?,
        })
    }
}
