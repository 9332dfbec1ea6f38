//! The example, played as people play it.

mod played;

use played::{number_after, play};

#[test]
fn g03_the_frozen_leaders_writes_are_refused_with_both_numbers() {
    let told = play("fenced_postgres");
    let fence_of = |who| number_after(&format!("{who} leads with fencing token"), &told);
    let (a, b) = (fence_of("A"), fence_of("B"));
    assert!(a < b, "{told}");
    for write in ["deposit to account 7", "open account 8", "sign in Redis"] {
        let refused = format!(
            "A cannot {write}: the write was refused: its fencing token {a} is older than {b}"
        );
        assert!(told.contains(&refused), "{refused}\n{told}");
    }
    let lost = format!("lost the lease on `accounts` with fencing token {a}");
    assert!(told.contains(&lost), "{told}");
    let verdict = format!("account 7 has 150, account 8 has 100, signed by B, under {b}");
    assert!(told.contains(&verdict), "{told}");
}
