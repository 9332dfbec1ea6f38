//! The scenarios, each as its whole table.

use leader_workbench::ticks::{Language, Scenario, play, table};

/// The table of a scenario without its chart.
fn rows_of(name: &str) -> String {
    let (rows, _) = played(name);
    rows
}

fn chart_of(name: &str) -> String {
    let (_, chart) = played(name);
    chart
}

fn played(name: &str) -> (String, String) {
    let plan = Scenario::named(name).expect("a scenario").plan();
    let rows = play(plan.clone()).expect("the plan is played");
    let text = table(&plan, &rows, Language::English);
    let (rows, chart) = text.split_once("\n\n").expect("a table and a chart");
    (format!("{rows}\n"), chart.to_owned())
}

#[test]
fn contention() {
    let expected = "\
tick  candidate  action    fencing token  remaining  result
   0  a          elected               1         10  the lease ends at 10
   1  b          waits                 -          9  a has the slot
   3  b          skipped               -          7  a has the slot
   8  a          released              1          0  the slot is free
   9  c          elected         9000000         10  the lease ends at 19
  17  c          released        9000000          0  the slot is free
";
    assert_eq!(rows_of("contention"), expected);
}

#[test]
fn expiry_and_re_election_with_a_stale_owner() {
    let expected = "\
tick  candidate  action           fencing token  remaining  result
   0  a          elected                      1          6  the lease ends at 6
   6  a          lost                         1          0  the lease has ended
   6  b          elected                6000000          6  the lease ends at 12
  10  c          waits                        -          2  b has the slot
  12  b          lost                   6000000          0  the lease has ended
  12  c          elected               12005000          6  the lease ends at 18
  12  a          release refused              1          -  stale: c leads, and keeps its lease
  18  c          lost                  12005000          0  the lease has ended
  18  b          release refused        6000000          -  stale: the lease had ended
  24  c          release refused       12005000          -  stale: the lease had ended
";
    assert_eq!(rows_of("expiry"), expected);
}

#[test]
fn extension() {
    let expected = "\
tick  candidate  action    fencing token  remaining  result
   0  a          elected               1          6  the lease ends at 6
   1  b          waits                 -          5  a has the slot
   2  a          extended              1          6  the lease ends at 8
   3  b          skipped               -          5  a has the slot
   4  a          extended              1          6  the lease ends at 10
   6  a          extended              1          6  the lease ends at 12
   7  c          waits                 -          5  a has the slot
   8  a          extended              1          6  the lease ends at 14
   9  c          skipped               -          5  a has the slot
  10  a          extended              1          6  the lease ends at 16
  12  a          released              1          0  the slot is free
";
    assert_eq!(rows_of("extension"), expected);
}

#[test]
fn capacity_and_saturation_with_slots() {
    let expected = "\
tick  candidate  action    slot  fencing token  remaining  result
   0  a          elected      0              1         10  the lease ends at 10
   1  b          elected      1        1000000         10  the lease ends at 11
   2  c          waits        -              -          8  a has the slot
   4  d          waits        -              -          6  a has the slot
   5  c          skipped      -              -          5  a has the slot
   6  a          released     0              1          0  the slot is free
   6  d          elected      0        5994001         10  the lease ends at 16
   7  b          released     1        1000000          0  the slot is free
   8  e          elected      1        8000000         10  the lease ends at 18
  12  d          released     0        5994001          0  the slot is free
  14  e          released     1        8000000          0  the slot is free
";
    assert_eq!(rows_of("slots"), expected);
}

#[test]
fn the_paused_leader_and_the_fencing_token() {
    let expected = "\
tick  candidate  action           fencing token  remaining  result
   0  a          elected                      1          6  the lease ends at 6
   0  a          writes                       1          6  accepted by the resource
   1  b          waits                        -          5  a has the slot
   2  a          extended                     1          6  the lease ends at 8
   3  a          frozen                       -          -  none of its tasks runs
   8  b          elected                8002000          6  the lease ends at 14
   8  b          writes                 8002000          6  accepted by the resource
  10  b          extended               8002000          6  the lease ends at 16
  12  a          thawed                       -          -  goes on where it was
  12  a          lost                         1          0  the lease has ended
  12  a          write refused                1          -  stale: 1 is older than 8002000
  12  a          release refused              1          -  stale: b leads, and keeps its lease
  12  b          extended               8002000          6  the lease ends at 18
  14  b          extended               8002000          6  the lease ends at 20
  16  b          extended               8002000          6  the lease ends at 22
  16  b          writes                 8002000          6  accepted by the resource
  16  b          released               8002000          0  the slot is free
";
    assert_eq!(rows_of("pause"), expected);
}

#[test]
fn min_lease() {
    let expected = "\
tick  candidate  action    fencing token  remaining  result
   0  a          elected               1         10  the lease ends at 10
   1  a          released              1          3  the minimum lease keeps the slot until 4
   1  b          skipped               -          3  a has the slot
   3  c          skipped               -          1  a has the slot
  10  a          elected        10000000         10  the lease ends at 20
  11  a          released       10000000          3  the minimum lease keeps the slot until 14
";
    assert_eq!(rows_of("min-lease"), expected);
}

#[test]
fn the_chart_has_a_lane_for_each_candidate() {
    let expected = [
        "   0    5    10   15   20",
        "a  ######!!!!!!.............",
        "b  ......######!!!!!!.......",
        "c  ..........~~######!!!!!!.",
        "   ~ waits   # leads   ! works without a lease   . nothing",
    ];
    assert!(chart_of("expiry").lines().eq(expected));
    let kept = chart_of("min-lease");
    assert!(kept.contains("\na  #===......#===.\nb  .x"), "{kept}");
    let frozen = chart_of("pause");
    assert!(
        frozen.contains("\na  ###zzzzzzzzz.....\nb  .~~~~~~~########."),
        "{frozen}"
    );
}

#[test]
fn a_korean_table_is_aligned_by_the_width_of_its_letters() {
    let plan = Scenario::named("contention").expect("a scenario").plan();
    let rows = play(plan.clone()).expect("the plan is played");
    let text = table(&plan, &rows, Language::Korean);
    let expected = "\
틱  후보  동작    펜싱 토큰  남음  결과
 0  a     선출            1    10  리스는 10에 끝난다
 1  b     대기            -     9  a가 슬롯을 가졌다
 3  b     건너뜀          -     7  a가 슬롯을 가졌다
";
    assert!(text.starts_with(expected), "{text}");
}
