//! The second process of tests that freeze and kill one.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    println!("ready");
    io::stdout().flush()?;
    // The test's end of the pipe is closed when the test ends, however it ends.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
