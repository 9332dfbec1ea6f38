//! The whole story of a leader that comes back too late, with real processes, a real Redis and a real PostgreSQL.
//!
//! A leads, and has worked out what to write, when it is frozen (SIGSTOP) for longer than its lease. B is elected and
//! writes. A wakes and writes, too, not knowing that its time is over, and the table refuses it; a fenced key in Redis as
//! well.
//!
//! ```text
//! cargo run --example fenced_postgres --features postgres     starts the servers it needs, and stops them
//! ```
//!
//! | file | what it has |
//! |---|---|
//! | `accounts.rs` | what a service would have: the fenced table, an `UPDATE` and an `INSERT` that refuse a stale leader |
//! | `candidate.rs` | the process that stands and writes; A and B are two of it |
//! | `story.rs` | what happens to them, and whether it ended well |

mod accounts;
mod candidate;
mod story;

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

const HELP: &str = "\
A leader is frozen, another leads and writes, the first one wakes and writes too: PostgreSQL refuses it.

Usage: fenced_postgres

It starts a Redis and a PostgreSQL of its own, which must be installed (`redis-server`, `postgresql`).

Exit code: 0 when the stale writes were refused and the successor's rows stand, 1 when not.
";

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let ended = match args.as_slice() {
        [] => story::play().await,
        // How the story starts its two processes.
        ["candidate", name, redis, postgres] => candidate::stand(name, redis, postgres).await,
        ["-h" | "--help"] => {
            tell(format_args!("{}", HELP.trim_end()));
            Ok(())
        }
        _ => {
            eprintln!("fenced_postgres: wrong arguments; see --help");
            return ExitCode::from(2);
        }
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fenced_postgres: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a line. That nobody reads it any more (`| head`) is no reason to stop.
pub(crate) fn tell(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
