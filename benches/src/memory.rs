//! The memory of a process, as the system counts it.

use std::fs;
use std::io;

/// Bytes of `pid` that are in memory now: its heap, its stacks, and its program.
///
/// # Errors
///
/// When there is no such process, or the system has no `/proc`.
pub fn resident(pid: u32) -> io::Result<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm"))?;
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let pages: u64 = pages.ok_or(io::ErrorKind::InvalidData)?;
    Ok(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_to_is_resident() {
        let before = resident(std::process::id()).unwrap();
        let written = vec![1_u8; 32 << 20];
        let after = resident(std::process::id()).unwrap();
        assert!(after > before + (24 << 20), "{before} {after}");
        assert_eq!(written.last(), Some(&1));
    }
}
