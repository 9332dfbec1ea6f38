//! The table as it is written: rows of a promise, what it says, and what shows it.

/// A row whose first cell is a guarantee (`G1`) or a scenario (`a01`).
pub(crate) struct Row {
    pub(crate) promise: String,
    pub(crate) says: String,
    pub(crate) shown_by: Vec<Proof>,
}

/// What shows a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// `package::binary::function`; the function may end with `*`.
    Test {
        package: String,
        binary: String,
        function: String,
    },
    /// `cargo xtask ..`.
    Chore(String),
    /// Neither.
    Unreadable(String),
}

/// All rows, in their order.
pub(crate) fn rows(table: &str) -> Vec<Row> {
    table.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let cells = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = cells.split('|').map(str::trim);
    let (promise, says) = (cells.next()?, cells.next().unwrap_or_default());
    is_promise(promise).then(|| Row {
        promise: promise.to_owned(),
        says: says.to_owned(),
        shown_by: proofs(cells.next().unwrap_or_default()),
    })
}

/// A letter and a number.
fn is_promise(cell: &str) -> bool {
    let number = cell.strip_prefix(|c: char| c.is_ascii_alphabetic());
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// What stands between backticks.
fn proofs(cell: &str) -> Vec<Proof> {
    cell.split('`').skip(1).step_by(2).map(proof).collect()
}

fn proof(words: &str) -> Proof {
    if let Some(chore) = words.strip_prefix("cargo xtask ") {
        return Proof::Chore(chore.to_owned());
    }
    match words.split("::").collect::<Vec<_>>().as_slice() {
        [package, binary, function] => Proof::Test {
            package: (*package).to_owned(),
            binary: (*binary).to_owned(),
            function: (*function).to_owned(),
        },
        _ => Proof::Unreadable(words.to_owned()),
    }
}
