//! What a server tells of the scripts that it executes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;

/// Listens to `MONITOR` until the server is gone.
pub(crate) struct Witness {
    listening: JoinHandle<Vec<u64>>,
}

impl Witness {
    /// Returns when the server tells everything from now on.
    pub(crate) fn of(server: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(server).expect("the server runs");
        stream
            .write_all(b"MONITOR\r\n")
            .expect("the server listens");
        let mut lines = BufReader::new(stream).lines();
        let ok = lines.next().and_then(Result::ok);
        assert_eq!(ok.as_deref(), Some("+OK"));
        let listening = std::thread::spawn(move || {
            let lines = lines.map_while(Result::ok);
            lines.filter_map(|line| grant(&line)).collect()
        });
        Self { listening }
    }

    /// The fencing tokens that a server granted itself, in its order. It must be gone.
    pub(crate) fn grants(self) -> Vec<u64> {
        self.listening.join().expect("a witness does not panic")
    }
}

/// Reads `+1795990097.531042 [0 lua] "HSET" "leader:{x}:lease" "f" "<token>" "0" "<entry>"`, which a claim writes when it
/// grants a slot; a release writes an empty entry. What a replica is told to write does not come from its scripts.
fn grant(line: &str) -> Option<u64> {
    let (_, command) = line.split_once("[0 lua] \"HSET\" ")?;
    let args: Vec<&str> = command
        .split(' ')
        .map(|arg| arg.trim_matches('"'))
        .collect();
    let [_, "f", fence, _, entry] = args[..] else {
        return None;
    };
    (entry.get(48..64) == Some(fence)).then(|| fence.parse().expect("a token is a number"))
}

#[test]
fn a_grant_is_told_from_a_release() {
    let start = r#"+1.5 [0 lua] "HSET" "leader:{x}:lease" "f" "0000000000000017" "0""#;
    let entry = format!(
        "{}{}{}c1",
        "a".repeat(32),
        "9".repeat(16),
        "0000000000000017"
    );
    assert_eq!(grant(&format!(r#"{start} "{entry}""#)), Some(17));
    assert_eq!(grant(&format!(r#"{start} """#)), None);
    assert_eq!(
        grant(r#"+1.5 [0 127.0.0.1:9] "HSET" "k" "f" "1" "0" "x""#),
        None
    );
}
