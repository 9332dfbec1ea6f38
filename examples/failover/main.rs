//! The classic accident, played on real servers: a primary grants a lease and dies before its replica has it, the replica
//! is promoted, and grants the same lease again. Once in each mode, and each says what it costs.
//!
//! ```text
//! cargo run --example failover                     all modes; starts the servers it needs, and stops them
//! cargo run --example failover -- quorum           one of them: plain, replica-ack, quorum
//! ```
//!
//! | file | what it has |
//! |---|---|
//! | `plain.rs` | one server with a replica: two holders, and what becomes of the first |
//! | `replica_ack.rs` | the same, where a grant counts only once the replica has it |
//! | `quorum.rs` | five servers, none of which decides alone, and two of them forget |
//! | `site.rs` | a primary, a replica that lags, and an address that moves to the new primary |

mod plain;
mod quorum;
mod replica_ack;
mod site;

use std::error::Error;
use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use leader_core::LeaseOptions;

const HELP: &str = "\
A primary grants a lease, dies before its replica has it, and the replica grants it again.

Usage: failover [plain | replica-ack | quorum]

It starts Redis servers of its own (`redis-server` or `valkey-server` must be on the PATH). Without an argument it plays
the accident in each mode.

Exit code: 0 when each mode did what it promises, 1 when not.
";

/// What is led.
pub(crate) const NAME: &str = "invoice-close";

/// Longer than the default: a machine with half a dozen servers on it may be slow, and that is not the accident.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_secs(2);

/// What a mode ends with: one line for the summary, or what went wrong.
pub(crate) type Played = Result<String, Box<dyn Error>>;

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let modes = match args.as_slice() {
        [] => &["plain", "replica-ack", "quorum"][..],
        modes @ ["plain" | "replica-ack" | "quorum"] => modes,
        ["-h" | "--help"] => {
            tell(format_args!("{}", HELP.trim_end()));
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("failover: wrong arguments; see --help");
            return ExitCode::from(2);
        }
    };
    let mut summary = Vec::new();
    for mode in modes {
        tell(format_args!("--- {mode}"));
        let played = match *mode {
            "plain" => plain::play().await,
            "replica-ack" => replica_ack::play().await,
            _ => quorum::play().await,
        };
        match played {
            Ok(line) => summary.push(format!("failover: {mode}: {line}")),
            Err(error) => {
                eprintln!("failover: {mode}: wrong: {error}");
                return ExitCode::FAILURE;
            }
        }
        tell(format_args!(""));
    }
    for line in summary {
        tell(format_args!("{line}"));
    }
    ExitCode::SUCCESS
}

/// A lease whose first extension, after a third of it, comes after the accident, also on a machine that is busy.
pub(crate) fn options(wait: Duration) -> Result<LeaseOptions, Box<dyn Error>> {
    let options = LeaseOptions::builder()
        .wait(wait)
        .lease(Duration::from_secs(12))
        .auto_extend(true)
        .build()?;
    Ok(options)
}

/// Prints a line. That nobody reads it any more (`| head`) is no reason to stop.
pub(crate) fn tell(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
