//! What `leader` costs, beside what it stands on and what else there is: `cargo xtask bench`.
//!
//! ```text
//! leader-benches [--write FILE] [P1 P3 ..]   measures these figures, or all, and prints a table
//! leader-benches --play P3 ARGS..            a second process of a figure, which the first one starts
//! ```

mod bare;
mod figure;
mod ground;
mod p1;
#[cfg(feature = "peers")]
mod p2;
mod p3;
mod p4;
mod p5;
mod p6;
mod p7;
mod p8;
mod p9;
mod rounds;
mod surroundings;
mod table;

use std::process::ExitCode;

use figure::Figure;

/// In the order of the table.
const FIGURES: &[Figure] = &[
    p1::FIGURE,
    #[cfg(feature = "peers")]
    p2::FIGURE,
    p3::FIGURE,
    p4::FIGURE,
    p5::FIGURE,
    p6::FIGURE,
    p7::FIGURE,
    p8::FIGURE,
    p9::FIGURE,
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["--play", id, rest @ ..] => find(id).and_then(|figure| {
            let play = figure.play.ok_or("it has no second process")?;
            play(rest)
        }),
        ["--write", file, ids @ ..] => measure(ids).and_then(|table| {
            std::fs::write(file, table.document())?;
            println!("written to {file}");
            Ok(())
        }),
        ids => measure(ids).map(drop),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("leader-benches: {error}");
            ExitCode::FAILURE
        }
    }
}

fn find(id: &str) -> figure::Outcome<&'static Figure> {
    let figure = FIGURES.iter().find(|figure| figure.id == id);
    let ids: Vec<&str> = FIGURES.iter().map(|figure| figure.id).collect();
    figure.ok_or_else(|| format!("there is no figure `{id}`; there are {}", ids.join(", ")).into())
}

/// Measures one figure after the other, and shows each as soon as it is there: the whole takes minutes.
fn measure(ids: &[&str]) -> figure::Outcome<table::Table> {
    let chosen: Vec<&Figure> = if ids.is_empty() {
        FIGURES.iter().collect()
    } else {
        ids.iter().map(|id| find(id)).collect::<Result<_, _>>()?
    };
    let mut table = table::Table::default();
    for figure in chosen {
        eprintln!("measuring {}: {}", figure.id, figure.what);
        let readings = (figure.measure)().map_err(|error| format!("{}: {error}", figure.id))?;
        for reading in &readings {
            eprintln!("    {reading}");
        }
        table.add(figure, readings);
    }
    println!("{table}");
    Ok(table)
}
