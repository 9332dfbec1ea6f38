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
    place
        .check()
        .map_err(|reason| format!("--redis: {reason}"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn given(args: &[&str]) -> Result<Option<Args>, String> {
        read(args.iter().map(|arg| (*arg).to_owned()))
    }

    #[test]
    fn it_listens_on_the_loopback_only_unless_told_otherwise() {
        let args = given(&[]).unwrap().unwrap();
        assert!(args.listen.ip().is_loopback());
        let args = given(&["--listen", "0.0.0.0:80"]).unwrap().unwrap();
        assert!(!args.listen.ip().is_loopback());
    }

    #[test]
    fn the_place_follows_from_the_options() {
        let place = |args: &[&str]| given(args).map(|args| args.unwrap().place);
        assert_eq!(place(&[]), Ok(Place::Memory(1)));
        assert_eq!(place(&["--quorum"]), Ok(Place::Memory(5)));
        let one = ["--redis", "redis://a"];
        assert_eq!(place(&one), Ok(Place::Redis(vec!["redis://a".to_owned()])));
        let three = [one, ["--redis", "redis://b"], ["--redis", "redis://c"]].concat();
        assert!(place(&three).is_err_and(|error| error.contains("--quorum")));
        assert!(place(&[&three[..], &["--quorum"]].concat()).is_ok());
        assert!(place(&[&one[..], &["--quorum"]].concat()).is_err());
        for wrong in [&["--redis"][..], &["--listen", "here"], &["more"]] {
            assert!(given(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_url_that_is_none_is_refused_without_its_password() {
        for url in [
            "nonsense",
            "redis://",
            "redis://me:secret@a:x",
            "http://me:secret@a",
        ] {
            let Err(error) = given(&["--redis", url]) else {
                panic!("{url} was taken");
            };
            assert!(error.starts_with("--redis: "), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let urls = [
            "--redis",
            "redis://a",
            "--redis",
            "b",
            "--redis",
            "redis://c",
        ];
        let refused = given(&[&urls[..], &["--quorum"]].concat());
        assert!(refused.is_err_and(|error| error.starts_with("--redis: server 2: ")));
    }

    #[test]
    fn one_server_given_twice_is_refused() {
        let urls = ["redis://a", "redis://b", "redis://A:6379"];
        let args = urls.iter().flat_map(|url| ["--redis", *url]);
        let args: Vec<&str> = args.chain(["--quorum"]).collect();
        let refused = given(&args);
        assert!(refused.is_err_and(|error| error.contains("twice")));
    }
}
