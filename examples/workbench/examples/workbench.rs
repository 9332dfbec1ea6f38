//! One lock, one valid leader, and a page to watch it on.
//!
//! ```text
//! cargo run --example workbench                                      then open the address that it prints
//! cargo run --example workbench -- --redis redis://127.0.0.1:6379    leases on a server
//! cargo run --example workbench -- --quorum                          on five stores, of which three decide
//! ```

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;

use leader_workbench::{Place, Workbench};
use tokio::net::TcpListener;

const HELP: &str = "\
A page on which candidates compete for a lock, and a person freezes, kills and cuts off whoever leads.

Usage: workbench [--redis URL]... [--quorum] [--name NAME] [--listen ADDRESS]

  --redis URL       keep leases on this Redis or Valkey instead of in memory; with --quorum, three times or more
  --quorum          let a majority decide: of five stores in memory, or of the servers given
  --name NAME       what is led; invoice-close if not given
  --listen ADDRESS  where to listen; 127.0.0.1:8017 if not given. Whoever reaches it can do everything on the page
";

struct Args {
    place: Place,
    name: String,
    listen: SocketAddr,
}

fn main() -> ExitCode {
    let args = match read(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("workbench: {error}; see --help");
            return ExitCode::from(2);
        }
    };
    match run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workbench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(mut args: impl Iterator<Item = String>) -> Result<Option<Args>, String> {
    let (mut urls, mut quorum) = (Vec::new(), false);
    let mut name = "invoice-close".to_owned();
    let mut listen = "127.0.0.1:8017".to_owned();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--redis" => urls.push(value()?),
            "--name" => name = value()?,
            "--listen" => listen = value()?,
            "--quorum" => quorum = true,
            "-h" | "--help" => return Ok(None),
            _ => return Err(format!("{arg} is not an option")),
        }
    }
    let place = match (urls.len(), quorum) {
        (0, false) => Place::Memory(1),
        (0, true) => Place::Memory(5),
        (1, false) | (3.., true) => Place::Redis(urls),
        (_, true) => return Err("a quorum takes three servers or more".to_owned()),
        (_, false) => return Err("several servers are a quorum: add --quorum".to_owned()),
    };
    let listen = listen
        .parse()
        .map_err(|_| format!("{listen} is not an address with a port"))?;
    Ok(Some(Args {
        place,
        name,
        listen,
    }))
}

#[tokio::main]
async fn run(args: Args) -> Result<(), Box<dyn Error>> {
    let workbench = Workbench::new(&args.name, args.place)?;
    let listener = TcpListener::bind(args.listen).await;
    let listener =
        listener.map_err(|error| format!("cannot listen on {}: {error}", args.listen))?;
    println!(
        "workbench: open http://{}/ (Ctrl-C ends it)",
        listener.local_addr()?
    );
    let interrupted = async {
        let _ = tokio::signal::ctrl_c().await;
        println!("workbench: handing over");
    };
    workbench.serve(listener, interrupted).await?;
    println!("workbench: ended");
    Ok(())
}
