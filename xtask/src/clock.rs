//! `libfaketime`, by which one test sets the wall clock of a process of its own.

use crate::command::say;
use crate::packages;
use std::path::Path;

/// Where the platforms' packages put it; the test looks in the same places.
const LIBRARIES: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
    "/opt/homebrew/lib/faketime/libfaketime.1.dylib",
    "/usr/local/lib/faketime/libfaketime.1.dylib",
];

/// Finds it or installs it. Without it that one test fails and says so; the others do not need it.
pub(crate) fn ensure() {
    let named = std::env::var_os("LEADER_TEST_LIBFAKETIME").is_some();
    if named || LIBRARIES.iter().any(|library| Path::new(library).exists()) {
        return;
    }
    say("one test sets the wall clock of a process with libfaketime, which is not here");
    if let Err(why) = packages::install(&["faketime", "libfaketime"]) {
        say(&format!(
            "it cannot be installed ({why}); that test will fail"
        ));
    }
}
