//! The soak as a command: `cargo xtask soak --minutes 10`.

use std::fs;
use std::process::ExitCode;
use std::time::Duration;

use leader_benches::soak::{self, Leak, Plan};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const USAGE: &str = "usage: soak [--minutes N | --seconds N] [--leases N] [--every MILLISECONDS] [--json FILE] [--write FILE]";

/// What is asked for.
struct Order {
    plan: Plan,
    json: Option<String>,
    write: Option<String>,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = read(&args).and_then(|order| play(&order, &args));
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("soak: not everything held; see the table");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("soak: {why}");
            ExitCode::FAILURE
        }
    }
}

fn read(args: &[String]) -> Result<Order, String> {
    let mut order = Order {
        plan: Plan {
            leases: 5_000,
            time: Duration::from_secs(600),
            every: Duration::from_secs(5),
            leak: None,
        },
        json: None,
        write: None,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let value = args
            .next()
            .ok_or_else(|| format!("`{arg}` needs a value\n{USAGE}"))?;
        let number = || {
            value
                .parse::<u64>()
                .map_err(|_| format!("`{arg} {value}` is no number"))
        };
        match arg.as_str() {
            "--minutes" => order.plan.time = Duration::from_secs(number()? * 60),
            "--seconds" => order.plan.time = Duration::from_secs(number()?),
            "--every" => order.plan.every = Duration::from_millis(number()?.max(1)),
            "--leases" => order.plan.leases = usize::try_from(number()?).unwrap_or(usize::MAX),
            "--json" => order.json = Some(value.clone()),
            "--write" => order.write = Some(value.clone()),
            // To see it caught: not for people.
            "--leak" => {
                order.plan.leak = Some(match value.as_str() {
                    "task" => Leak::Task,
                    "memory" => Leak::Memory,
                    other => return Err(format!("nothing leaks `{other}`")),
                });
            }
            other => return Err(format!("what is `{other}`?\n{USAGE}")),
        }
    }
    Ok(order)
}

/// Whether everything held.
fn play(order: &Order, args: &[String]) -> Result<bool, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let heap = || ALLOCATOR.current_usage() as u64;
    let soaked = runtime.block_on(soak::run(&order.plan, heap));
    println!("\n{}", soak::table(&soaked));
    if let Some(file) = &order.json {
        let json = soak::json(&soaked).map_err(|error| error.to_string())?;
        write(file, &json)?;
    }
    if let Some(file) = &order.write {
        let said = args.iter().filter(|arg| *arg != file);
        let said: Vec<&str> = said.map(String::as_str).collect();
        let command = format!("cargo xtask soak {}", said.join(" "));
        write(file, &soak::markdown(&soaked, &command, ""))?;
    }
    Ok(soaked.holds())
}

fn write(file: &str, text: &str) -> Result<(), String> {
    fs::write(file, text).map_err(|error| format!("{file} cannot be written: {error}"))?;
    println!("written to {file}");
    Ok(())
}
