//! The processor time of a process, as the system counts it.

use std::fs;
use std::io;
use std::time::Duration;

/// How long all threads of `pid` have run so far, in the program and in the system, to 10 ms or so.
///
/// # Errors
///
/// When there is no such process, or the system has no `/proc`.
pub fn used(pid: u32) -> io::Result<Duration> {
    read(&format!("/proc/{pid}/stat"), 14)
}

/// As [`used`], of all children of this process that have ended, and theirs.
///
/// # Errors
///
/// When the system has no `/proc`.
pub fn used_by_children() -> io::Result<Duration> {
    read("/proc/self/stat", 16)
}

/// The sum of this field and the next, which are times.
fn read(file: &str, field: usize) -> io::Result<Duration> {
    let stat = fs::read_to_string(file)?;
    // The second field is the program's name, which stands in brackets and may have anything in it.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields);
    let fields = fields
        .unwrap_or_default()
        .split_whitespace()
        .skip(field - 3);
    let ticks: Vec<u64> = fields.take(2).flat_map(str::parse).collect();
    let [user, system] = ticks[..] else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let nanos = (user + system) * 1_000_000_000 / rustix::param::clock_ticks_per_second();
    Ok(Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn work_is_counted() {
        let pid = std::process::id();
        let (before, begun) = (used(pid).unwrap(), Instant::now());
        while used(pid).unwrap() < before + Duration::from_millis(50) {
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
    }
}
