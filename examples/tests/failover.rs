//! The example, played as people play it.

mod played;

use played::{number_after, play};

#[test]
fn h01_h02_each_mode_does_what_it_promises() {
    let told = play("failover");
    let (plain, rest) = told.split_once("--- replica-ack").expect("a second mode");
    let (replica_ack, quorum) = rest.split_once("--- quorum").expect("a third mode");

    let a = number_after("A leads with fencing token", plain);
    let b = number_after("B leads with fencing token", plain);
    assert!(a < b, "{plain}");
    for happened in [
        "two holders: A and B both hold a valid lease".to_owned(),
        format!("its fencing token {a} is older than {b}"),
        format!("A is stopped: lost the lease on `invoice-close` with fencing token {a}"),
    ] {
        assert!(plain.contains(&happened), "{happened}\n{plain}");
    }

    assert!(
        replica_ack.contains("0 of 1 replica acknowledged"),
        "{replica_ack}"
    );
    assert!(!replica_ack.contains("A leads"), "{replica_ack}");
    assert!(replica_ack.contains("B leads"), "{replica_ack}");

    assert!(
        quorum.contains("B is not elected: three of five say that A leads"),
        "{quorum}"
    );
    assert!(
        number_after("A leads with fencing token", quorum)
            < number_after("A ends; B leads with fencing token", quorum),
        "{quorum}"
    );
    assert_eq!(
        told.lines()
            .filter(|line| line.starts_with("failover: "))
            .count(),
        3
    );
}
