//! Running programs, in sight of who called us.

use serde_json::Value;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a chore ends with; the error is for people.
pub(crate) type Done<T = ()> = Result<T, String>;

/// Says something of our own, so that it is told from what the programs say.
pub(crate) fn say(text: &str) {
    println!("xtask: {text}");
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    // As cargo says it now. What it said when this was built is another work tree's where two share a target directory.
    let own = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let own = own.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    own.parent().map(Path::to_owned).unwrap_or_default()
}

/// Where cargo puts what it builds of the workspace at `root`.
pub(crate) fn target(root: &Path) -> Done<PathBuf> {
    let mut command: Command = cargo(&["metadata", "--format-version", "1", "--no-deps"]);
    command.current_dir(root);
    let metadata: Value =
        serde_json::from_str(&output(&mut command)?).map_err(|error| error.to_string())?;
    let target = metadata["target_directory"].as_str();
    target
        .map(PathBuf::from)
        .ok_or_else(|| "cargo does not say where it builds".to_owned())
}

/// A `cargo` of the toolchain that runs us, at the workspace's root.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    // `cargo xtask` sets these for us. A build script that looks at them would run again on each change between
    // `cargo xtask …` and plain `cargo …`.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
        {
            command.env_remove(&name);
        }
    }
    command
}

/// Shows the command and runs it.
pub(crate) fn run(command: &mut Command) -> Done {
    let shown = show(command);
    println!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` ended with {status}")),
        Err(error) => Err(format!("`{shown}` cannot be started: {error}")),
    }
}

/// Runs the command in silence and gives its standard output.
pub(crate) fn output(command: &mut Command) -> Done<String> {
    let output = command.stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| format!("`{}` cannot be started: {error}", show(command)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "`{}` ended with {}: {}",
        show(command),
        output.status,
        complaint.trim()
    ))
}

/// Whether the command can be run and succeeds, in silence.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    output(command).is_ok()
}

/// All files of this name on the PATH, the first found first.
pub(crate) fn on_path(program: &str) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|dir| dir.join(program))
        .filter(|file| file.is_file())
        .collect()
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy()
        .into_owned();
    let args = command
        .get_args()
        .map(|arg| arg.to_string_lossy().into_owned());
    std::iter::once(name)
        .chain(args)
        .collect::<Vec<_>>()
        .join(" ")
}
