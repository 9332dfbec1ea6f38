//! The command line.

use crate::schedule::CANDIDATES;

pub(crate) const HELP: &str = "\
A settlement that must run once a night, with five candidates whose clocks disagree.

Usage: settlement [--redis URL [--candidate N]]

  (nothing)       five candidates in this process, no server
  --redis URL     the same on Redis; redis://[[user]:password@]host[:port][/database]
  --candidate N   only candidate N, 1 to 5, on Redis: start one in each of five terminals within the same minute
  -h, --help      this text

Exit code: 0 when every night was settled once, 1 when not or when Redis failed, 2 when the arguments are wrong.
";

/// What the arguments ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Local,
    Redis { url: String },
    OneOnRedis { url: String, number: usize },
}

/// Reads the arguments, or says in one line what is wrong with them.
pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let mut args = args.into_iter();
    let (mut url, mut number) = (None, None);
    while let Some(arg) = args.next() {
        let (option, value) = match arg.split_once('=') {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (arg.as_str(), None),
        };
        match option {
            "-h" | "--help" => return Ok(Command::Help),
            "--redis" => url = Some(value_of(option, value, &mut args)?),
            "--candidate" => number = Some(candidate(&value_of(option, value, &mut args)?)?),
            _ if option.starts_with('-') => {
                return Err(format!("unknown option `{option}`; see --help"));
            }
            // Not repeated: it may be a URL with a password in it.
            _ => return Err("an argument stands without its option; see --help".to_owned()),
        }
    }
    match (url, number) {
        (None, None) => Ok(Command::Local),
        (Some(url), None) => Ok(Command::Redis { url }),
        (Some(url), Some(number)) => Ok(Command::OneOnRedis { url, number }),
        (None, Some(_)) => {
            Err("--candidate needs --redis URL: processes share no memory".to_owned())
        }
    }
}

fn value_of(
    option: &str,
    value: Option<String>,
    args: &mut impl Iterator<Item = String>,
) -> Result<String, String> {
    value
        .or_else(|| args.next())
        .filter(|value| !value.is_empty())
        .ok_or_else(|| format!("{option} needs a value; see --help"))
}

fn candidate(number: &str) -> Result<usize, String> {
    number
        .parse()
        .ok()
        .filter(|number| (1..=CANDIDATES).contains(number))
        .ok_or_else(|| format!("--candidate takes a number from 1 to {CANDIDATES}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_read() {
        let url = || "redis://h".to_owned();
        assert_eq!(parsed(""), Ok(Command::Local));
        assert_eq!(
            parsed("--redis redis://h"),
            Ok(Command::Redis { url: url() })
        );
        let one = Command::OneOnRedis {
            url: url(),
            number: 5,
        };
        assert_eq!(parsed("--candidate=5 --redis=redis://h"), Ok(one));
        assert_eq!(
            parsed("--candidate 9 --help"),
            Err("--candidate takes a number from 1 to 5".to_owned())
        );
        assert_eq!(parsed("-h"), Ok(Command::Help));
    }

    #[test]
    fn mistakes_are_one_line_without_the_password() {
        for line in [
            "--candidate",
            "--candidate 0",
            "--candidate 6",
            "--candidate 1",
            "--redis",
            "--redis=",
            "x",
            "redis://:secret@h",
            "--rediss=redis://:secret@h",
        ] {
            let mistake = parsed(line).unwrap_err();
            assert!(!mistake.contains('\n'), "{mistake}");
            assert!(!mistake.contains("secret"), "{mistake}");
        }
    }
}
