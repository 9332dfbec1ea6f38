//! Plays seeds, and says what it went through.
fn main() -> std::process::ExitCode {
    leader_sim::cli::main(&std::env::args().skip(1).collect::<Vec<_>>())
}
