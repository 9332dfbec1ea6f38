use super::*;

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

fn list(replies: impl IntoIterator<Item = Reply>) -> Reply {
    Reply::List(replies.into_iter().collect())
}

fn number(number: i64) -> Reply {
    Reply::Number(number)
}

/// Answers that no script gives, as a proxy, another server or another version might.
fn strange() -> Vec<Reply> {
    vec![
        Reply::Nil,
        Reply::Strange("map"),
        number(1),
        text("granted"),
        text("OK"),
        list([]),
        list([Reply::Nil]),
        list([number(1)]),
        list([text("granted")]),
        list([text("granted"), number(0), number(5)]),
        list([text("granted:0:5")]),
        text("granted:"),
        text("granted:0"),
        text("granted:0:"),
        text("granted::5"),
        text("granted:-1:5"),
        text("granted:+1:5"),
        text("granted:0:-5"),
        text("granted:0: 5"),
        text("granted:4294967296:5"),
        text("granted:0:18446744073709551616"),
        text("granted:0:5:6"),
        text("granted 0:5"),
        list([text("taken"), number(0), number(5)]),
        list([text("taken"), number(-1), number(5), text("node")]),
        list([text("ended"), number(0)]),
        list([text("released"), Reply::Nil, text("NOPERM no")]),
        list([text("released"), number(1), Reply::Nil]),
        list([text("released"), number(1), number(0)]),
        text("released:0"),
        text("released:0:"),
        text("released:-1:5"),
        text("released:0:5:6"),
        list([text("expired"), number(1)]),
        list([text("holders"), text("node")]),
        list([
            text("holders"),
            list([number(0), number(1), number(2), number(3), text("node")]),
        ]),
        list([text("evicted"), text("1")]),
        list([text("foreign"), number(1)]),
        list([text("extended")]),
        list([text("extended"), number(0)]),
        list([text("extended"), number(2)]),
        list([text("extended"), text("1")]),
        list([text("extended"), number(1), number(1)]),
    ]
}

#[test]
fn a_claim_is_granted_taken_or_ended() {
    assert_eq!(
        claim(&text("granted:2:1759836153000000"), 3),
        Ok(ClaimReply::Granted {
            slot: 2,
            fence: FencingToken::new(1_759_836_153_000_000),
        })
    );
    assert_eq!(
        claim(
            &list([text("taken"), number(1500), number(7), text("node-b")]),
            3
        ),
        Ok(ClaimReply::Taken {
            retry_after: Duration::from_micros(1500),
            holder: Some(NodeId::new("node-b")),
            revision: Revision::new(7),
        })
    );
    assert_eq!(claim(&list([text("ended")]), 3), Ok(ClaimReply::Ended));
    assert_eq!(claim(&list([text("foreign")]), 3), Err(Oddity::Foreign));
}

#[test]
fn a_strange_answer_is_never_a_grant_and_never_a_panic() {
    for reply in strange() {
        assert!(
            matches!(claim(&reply, 3), Err(Oddity::Malformed(_))),
            "{reply}"
        );
        assert!(
            matches!(release(&reply), Err(Oddity::Malformed(_))),
            "{reply}"
        );
        assert!(
            matches!(inspect(&reply), Err(Oddity::Malformed(_))),
            "{reply}"
        );
        assert!(
            matches!(evict(&reply), Err(Oddity::Malformed(_))),
            "{reply}"
        );
        assert!(
            !matches!(extend(&reply, 1), Ok(each) if each.iter().any(Result::is_ok)),
            "{reply}"
        );
    }
}

#[test]
fn the_time_is_told_behind_an_answer() {
    let split = |answer: &str| match split_time(text(answer)) {
        (Reply::Text(answer), time) => (answer, time),
        other => panic!("{other:?}"),
    };
    assert_eq!(split("granted:0:5@7"), ("granted:0:5".to_owned(), Some(7)));
    for as_it_is in [
        "granted:0:5",
        "granted:0:5@",
        "granted:0:5@+7",
        "granted:0:5@7@8",
        "granted:0:5@0",
        "granted:0:5@18446744073709551616",
    ] {
        assert_eq!(split(as_it_is), (as_it_is.to_owned(), None));
    }
}

#[test]
fn a_release_may_have_told_nobody() {
    let released = release(&text("released:3:0000000000000009")).unwrap();
    assert_eq!(
        released,
        Released {
            reply: ReleaseReply::Released {
                revision: Revision::new(9),
                told: 3,
            },
            untold: None,
        }
    );
    let released = release(&list([text("released"), number(9), text("NOPERM no")])).unwrap();
    assert_eq!(released.untold.as_deref(), Some("NOPERM no"));
    for (word, reason) in [
        ("expired", LossReason::Expired),
        ("taken", LossReason::Taken),
        ("deleted", LossReason::Deleted),
    ] {
        let released = release(&list([text(word)])).unwrap();
        assert_eq!(released.reply, ReleaseReply::NotHeld(reason));
    }
}

#[test]
fn a_batch_is_answered_one_by_one() {
    let reply = list([
        text("extended"),
        number(1),
        number(2),
        text("taken"),
        number(3),
        text("!READONLY no"),
        number(4),
        text("foreign"),
        number(5),
        text("lengthened"),
    ]);
    let each = extend(&reply, 5).unwrap();
    assert_eq!(each[0], Ok(ExtendReply::Extended));
    assert_eq!(each[1], Ok(ExtendReply::NotHeld(LossReason::Taken)));
    assert_eq!(each[2], Err(Oddity::Refused("READONLY no".to_owned())));
    assert_eq!(each[3], Err(Oddity::Foreign));
    assert!(matches!(each[4], Err(Oddity::Malformed(_))));
    let all = list([text("extended"), number(2)]);
    assert_eq!(extend(&all, 2), Ok(vec![Ok(ExtendReply::Extended); 2]));
}

#[test]
fn a_batch_whose_answers_do_not_add_up_is_malformed() {
    let one = |count, place| {
        let answer = [
            text("extended"),
            number(count),
            number(place),
            text("taken"),
        ];
        list(answer)
    };
    assert!(extend(&one(1, 2), 2).is_ok());
    for (reply, count) in [
        (one(1, 2), 3),
        (one(1, 2), 1),
        (one(2, 2), 2),
        (one(1, 0), 2),
        (one(1, 3), 2),
        (one(1, -1), 2),
        (list([text("extended"), number(1), number(2)]), 2),
        (list([text("extended"), number(0), text("taken")]), 1),
        (list([text("extended")]), 1),
        (list([text("taken")]), 1),
    ] {
        let answers = extend(&reply, count);
        assert!(matches!(answers, Err(Oddity::Malformed(_))), "{reply}");
    }
    // One is told of twice: whether the other one was extended cannot be told, even where the number says so.
    for extended in [0, 1] {
        let twice = list([
            text("extended"),
            number(extended),
            number(1),
            text("taken"),
            number(1),
            text("expired"),
        ]);
        assert!(extend(&twice, 2).is_err(), "{twice}");
    }
}

#[test]
fn holders_are_read_back() {
    let reply = list([
        text("holders"),
        list([number(1), number(2000), number(7), number(0), text("a")]),
        list([number(0), number(9), number(6), number(1), text("b")]),
    ]);
    let holders = inspect(&reply).unwrap();
    assert_eq!(holders.len(), 2);
    assert_eq!(holders[0].slot(), 1);
    assert_eq!(holders[0].remaining(), Duration::from_millis(2));
    assert!(!holders[0].is_retained());
    assert!(holders[1].is_retained());
    assert_eq!(inspect(&list([text("holders")])), Ok(vec![]));
}

#[test]
fn a_revision_is_digits_or_nothing() {
    assert_eq!(revision(&Reply::Nil), Ok(None));
    assert_eq!(revision(&text("12")), Ok(Some(Revision::new(12))));
    assert_eq!(revision(&text("-1")), Err(Oddity::Foreign));
    assert_eq!(revision(&text("x")), Err(Oddity::Foreign));
    assert!(matches!(revision(&number(1)), Err(Oddity::Malformed(_))));
}

#[test]
fn an_answer_is_shown_short() {
    let long = list((0..1000).map(|_| text(&"x".repeat(1000))));
    assert!(long.to_string().len() < 200);
    assert_eq!(
        list([text("a"), number(1), Reply::Nil]).to_string(),
        r#"["a", 1, nil]"#
    );
}

#[test]
fn a_message_that_cannot_be_read_means_ask_again() {
    assert_eq!(
        hint(&text("1759836153000000:1500")),
        Hint::Released {
            revision: Revision::new(1_759_836_153_000_000),
            free_in: Duration::from_micros(1500),
        }
    );
    assert_eq!(hint(&text("changed")), Hint::Changed);
    for told in ["", ":", "7", "7:", ":7", "-7:0", "7:0:0", "seven:0", "{}"] {
        assert_eq!(hint(&text(told)), Hint::Missed, "{told:?}");
    }
    assert_eq!(hint(&Reply::Bytes(b"7:0\xff".to_vec())), Hint::Missed);
    assert_eq!(hint(&number(7)), Hint::Missed);
}

/// A record that somebody has written to by hand can make the script answer so.
#[test]
fn a_grant_beyond_the_slots_or_without_an_exact_number_is_none() {
    let granted = |slot: u32, fence: u64| claim(&text(&format!("granted:{slot}:{fence}")), 3);
    let most = (1 << 53) - 1;
    assert!(granted(2, most).is_ok());
    for (slot, fence) in [(3, 1), (1024, 1), (0, 0), (0, most + 1), (0, u64::MAX)] {
        let read = granted(slot, fence);
        assert!(matches!(read, Err(Oddity::Malformed(_))), "{read:?}");
    }
}

#[test]
fn a_holder_without_a_name_is_not_taken_for_this_process() {
    let taken = [text("taken"), number(1500), number(7), text(" ")];
    assert!(matches!(claim(&list(taken), 3), Err(Oddity::Malformed(_))));
    let holder = list([number(0), number(1), number(2), number(0), text("")]);
    assert!(inspect(&list([text("holders"), holder])).is_err());
}

#[test]
fn a_number_with_a_sign_is_none_of_ours() {
    assert_eq!(hint(&text("+7:+0")), Hint::Missed);
    assert_eq!(revision(&text("+7")), Err(Oddity::Foreign));
    let signed = [text("stale"), text("+7")];
    assert_eq!(fenced_set(&list(signed)), Err(Oddity::Foreign));
}
