//! The director of the chaos: `cargo xtask chaos` calls it.

use std::process::ExitCode;

use leader_chaos::{HELP, Options, run};

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let ["-h" | "--help"] = args.as_slice() {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let options = match Options::parse(&args) {
        Ok(options) => options,
        Err(what) => {
            eprintln!("chaos: {what}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match run(&options).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(what) => {
            eprintln!("chaos: {what}");
            ExitCode::FAILURE
        }
    }
}
