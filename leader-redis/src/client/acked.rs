//! Writes, and behind them the wait until replicas have acknowledged them.
//!
//! A server that is told to wait does so for what was written on *the same connection*, and answers at once on a
//! connection that has written nothing: as if all was well. So both go in one pipeline, which the client library writes
//! to one connection or fails; it connects anew only between pipelines, and sends nothing a second time.

use std::time::Duration;

use fred::error::Error;
use fred::interfaces::ClientLike;
use fred::types::{ClusterHash, CustomCommand, Value};

use super::settings::options;
use super::{Call, Connection, Visit, slot_of};
use crate::fault::Failure;
use crate::reply::Reply;
use crate::script::Script;

/// Whose acknowledgement is waited for, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) replicas: u32,
    pub(crate) limit: Duration,
    pub(crate) place: Place,
}

/// Where a replica has to have what it acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Memory,
    /// Then the server itself has to have it there as well.
    Disk,
}

impl Wait {
    fn command(self) -> (&'static str, Vec<Value>) {
        // Zero would be for ever.
        let millis = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        let limit = Value::from(millis.max(1).to_string());
        let replicas = Value::from(self.replicas);
        match self.place {
            Place::Memory => ("WAIT", vec![replicas, limit]),
            Place::Disk => ("WAITAOF", vec![Value::Integer(1), replicas, limit]),
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Acked {
    /// The scripts' answers, one for each call.
    pub(crate) answers: Vec<Result<Reply, Failure>>,
    /// The answer to the wait.
    pub(crate) waited: Result<Reply, Failure>,
}

impl Acked {
    /// Before the first call or between two of them.
    fn script_was_forgotten(&self) -> bool {
        let mut answers = self.answers.iter();
        answers.any(|answer| matches!(answer, Err(failure) if failure.is_unknown_script()))
    }
}

impl Connection {
    /// Runs a script once for each call, then waits. A call may be run twice, where the server forgets scripts meanwhile.
    pub(crate) async fn run_and_wait(
        &self,
        script: &'static Script,
        calls: &[Call],
        wait: Wait,
    ) -> Acked {
        let (by_digest, by_source) = (("EVALSHA", script.digest()), ("EVAL", script.source()));
        let acked = self.pipeline(by_digest, by_digest, calls, wait).await;
        if acked.script_was_forgotten() {
            // What was waited for is then nothing, or what was written before. What was run is run again.
            return self.pipeline(by_source, by_digest, calls, wait).await;
        }
        acked
    }

    async fn pipeline(
        &self,
        first: (&'static str, &'static str),
        others: (&'static str, &'static str),
        calls: &[Call],
        wait: Wait,
    ) -> Acked {
        if let Err(failure) = self.refuse_if_lost() {
            return Acked {
                answers: vec![Err(failure.clone()); calls.len()],
                waited: Err(failure),
            };
        }
        let pipeline = self.client.pipeline();
        let options = options(self.terms.limit);
        let queue = pipeline.with_options(&options);
        let how = std::iter::once(first).chain(std::iter::repeat(others));
        let scripts = calls
            .iter()
            .zip(how)
            .map(|(call, (name, script))| (name, slot_of(call.key()), call.of(script)));
        let slot = calls.first().map_or(0, |call| slot_of(call.key()));
        let (name, args) = wait.command();
        let mut refused = None;
        for (name, slot, args) in scripts.chain([(name, slot, args)]) {
            let command = CustomCommand::new_static(name, ClusterHash::Custom(slot), false);
            if let Err(error) = queue.custom::<Value, Value>(command, args).await {
                refused = Some(error);
            }
        }
        let answers = async { Ok(pipeline.try_all::<Value>().await) };
        let mut results = match refused {
            Some(error) => vec![Err(error)],
            None => self
                .unless_given_up(answers)
                .await
                .unwrap_or_else(|error| vec![Err(error)]),
        };
        if results.len() != calls.len() + 1 {
            // It failed as a whole.
            let error = results.into_iter().find_map(Result::err);
            let failure = match error {
                Some(error) => self.failure(&error),
                None => Failure::Malformed("a pipeline was left unanswered".to_owned()),
            };
            self.note(&Err(failure.clone()));
            return Acked {
                answers: vec![Err(failure.clone()); calls.len()],
                waited: Err(failure),
            };
        }
        let mut read = |result: Result<Value, Error>| {
            let answer = result
                .map(Reply::from)
                .map_err(|error| self.failure(&error));
            self.note(&answer);
            answer
        };
        let waited = results.pop().map_or(Err(Failure::NotSent(None)), &mut read);
        Acked {
            answers: results.into_iter().map(read).collect(),
            waited,
        }
    }

    /// Whether the server has the command at all, allows it, and can do it; waits for nobody.
    pub(crate) async fn can_wait(&self, place: Place) -> Result<(), Failure> {
        let nobody = Wait {
            replicas: 0,
            limit: Duration::from_millis(1),
            place,
        };
        let (name, args) = nobody.command();
        match self
            .send(name, &[], args, Visit::Owner, self.terms.limit)
            .await
        {
            Err(failure) if failure.is_unknown_command() => Err(Failure::Client(format!(
                "the server has no `{name}`; it came with Redis 7.2, and all of Valkey have it"
            ))),
            answer => answer.map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody can ask a real server to forget in the middle of a pipeline.
    #[test]
    fn h04_a_script_that_is_forgotten_between_two_calls_is_noticed() {
        let forgotten = || Err(Failure::Refused("NOSCRIPT No matching script.".to_owned()));
        let acked = |answers| Acked {
            answers,
            waited: Ok(Reply::Number(1)),
        };
        assert!(acked(vec![forgotten(), forgotten()]).script_was_forgotten());
        assert!(acked(vec![Ok(Reply::Nil), forgotten()]).script_was_forgotten());
        assert!(!acked(vec![Ok(Reply::Nil), Ok(Reply::Nil)]).script_was_forgotten());
    }
}
