//! The checker can fail: honest books pass, and each rule finds the one lie that was told to it.

use crate::books::{Act, Answer, Asked, Books, Deed, Letter, Listed, Receipt, Told, Try};
use crate::checker::findings;

fn asked(connection: &'static str, number: u64, at: u64, told: Told) -> Asked {
    Asked { connection, key: format!("{connection}#{number}"), asked: at, known: at + 1, told }
}

fn receipt(connection: &str, number: u64, id: &str, life: u32, tick: u64, status: u16) -> Receipt {
    let (connection, key) = (connection.to_owned(), format!("{connection}#{number}"));
    Receipt { connection, id: id.to_owned(), key, edited: false, life, tick, status }
}

fn listed(connection: &'static str, id: &str, status: &str, statuses: &[u16]) -> Listed {
    let one = |(at, status): (usize, &u16)| Try { number: at as u64 + 1, status: Some(*status), interrupted: false };
    let tries: Vec<Try> = statuses.iter().enumerate().map(one).collect();
    let attempts = tries.len() as u64;
    Listed { id: id.to_owned(), connection, status: status.to_owned(), attempts, tries, has_note: true }
}

fn act(id: &str, deed: Deed, at: u64, life: u32) -> Act {
    Act { id: id.to_owned(), deed, asked: at, known: at + 1, life, answer: Answer::Done }
}

/// Two on `healthy` (the first in flight at a kill), a dead letter on `kept`, a forwarded one, a discarded and an edited one.
fn honest() -> Books {
    let queued = |id: &str| Told::Queued(id.to_owned());
    Books {
        asked: vec![
            asked("healthy", 0, 10, queued("msg_a")),
            asked("healthy", 1, 20, queued("msg_b")),
            asked("kept", 3, 30, queued("msg_c")),
            asked("forwarded", 3, 40, queued("msg_d")),
            asked("operated", 0, 50, queued("msg_e")),
            asked("operated", 1, 60, queued("msg_f")),
            asked("direct", 0, 70, Told::Delivered("msg_g".to_owned())),
            asked("healthy", 2, 80, Told::Nothing),
        ],
        receipts: vec![
            receipt("healthy", 0, "msg_a", 1, 13, 200),
            receipt("healthy", 0, "msg_a", 2, 23, 200),
            receipt("healthy", 1, "msg_b", 2, 24, 200),
            receipt("kept", 3, "msg_c", 2, 33, 500),
            receipt("forwarded", 3, "msg_d", 2, 43, 500),
            Receipt { edited: true, ..receipt("operated", 1, "msg_f", 2, 66, 200) },
            Receipt { tick: 70, ..receipt("direct", 0, "msg_g", 2, 70, 200) },
        ],
        acts: vec![act("msg_e", Deed::Discard, 52, 2), act("msg_f", Deed::Edit, 62, 2)],
        listed: vec![
            listed("healthy", "msg_a", "SUCCESS", &[200]),
            listed("healthy", "msg_b", "SUCCESS", &[200]),
            listed("kept", "msg_c", "DLQ", &[500]),
            listed("forwarded", "msg_d", "FORWARDED", &[500]),
            listed("operated", "msg_e", "DISCARDED", &[]),
            listed("operated", "msg_f", "SUCCESS", &[200]),
            listed("direct", "msg_g", "SUCCESS", &[200]),
        ],
        letters: vec![Letter { id: "evt_d".to_owned(), key: "forwarded#3".to_owned(), has_note: true }],
        ..Books::default()
    }
}

#[test]
fn honest_books_pass() {
    assert_eq!(findings(&honest()), Vec::<String>::new());
}

#[test]
fn each_lie_is_found() {
    type Lie = (&'static str, fn(&mut Books));
    let lies: [Lie; 27] = [
        ("no answer that may not be", |b| b.complaints.push("503".to_owned())),
        ("is listed 0 times", |b| drop(b.listed.remove(0))),
        ("is listed 2 times", |b| b.listed.push(b.listed[0].clone())),
        ("nobody was told of", |b| b.listed.push(listed("kept", "msg_x", "DLQ", &[]))),
        ("never asked for", |b| b.receipts.push(receipt("healthy", 9, "msg_x", 2, 90, 200))),
        ("under two ids", |b| b.receipts.push(receipt("healthy", 1, "msg_x", 3, 90, 200))),
        ("was told for", |b| b.asked.push(asked("healthy", 3, 90, Told::Queued("msg_a".to_owned())))),
        ("is PENDING", |b| b.listed[0].status = "PENDING".to_owned()),
        ("is SUCCESS, not one of", |b| b.listed[2].status = "SUCCESS".to_owned()),
        ("is DLQ, not one of", |b| b.listed[0].status = "DLQ".to_owned()),
        ("counts per status", |b| b.listed[2].status = "SUCCESS".to_owned()),
        ("without a note of why", |b| b.listed[2].has_note = false),
        ("is SUCCESS, not one of {}", |b| drop(b.receipts.remove(2))),
        ("the caller of direct#0", |b| b.listed[6].status = "DLQ".to_owned()),
        ("before it was so", |b| b.receipts[6].tick = 99),
        ("before its predecessor", |b| b.receipts.swap(0, 2)),
        ("no kill between", |b| b.receipts[1].life = 1),
        ("at most 17 can be", |b| {
            for n in 100..118 {
                b.receipts.push(receipt("healthy", n, &format!("msg_{n}"), 1, 100, 200));
                b.receipts.push(receipt("healthy", n, &format!("msg_{n}"), 2, 100, 200));
            }
        }),
        ("after its discard", |b| b.receipts.push(receipt("operated", 0, "msg_e", 2, 90, 200))),
        ("unedited after its edit", |b| b.receipts[5].edited = false),
        ("edited without an edit", |b| b.receipts[0].edited = true),
        ("never received again", |b| b.acts.push(act("msg_c", Deed::Retry, 90, 2))),
        ("numbered [2]", |b| b.listed[0].tries[0].number = 2),
        ("2 attempts with 200, 1 received", |b| b.listed[1] = listed("healthy", "msg_b", "SUCCESS", &[200, 200])),
        ("on the topic 0 times", |b| b.letters.clear()),
        ("its delivery is Some(\"DLQ\")", |b| b.listed[3].status = "DLQ".to_owned()),
        ("on the topic as evt_x", |b| b.letters[0].id = "evt_x".to_owned()),
    ];
    for (expected, lie) in lies {
        let mut books = honest();
        lie(&mut books);
        let found = findings(&books);
        assert!(found.iter().any(|finding| finding.contains(expected)), "`{expected}` is not among {found:#?}");
    }
}

/// What an earlier life had sent before its kill may still arrive; what the acknowledging life sends may not.
#[test]
fn what_was_in_flight_at_the_kill_is_no_breach() {
    let mut books = honest();
    books.receipts.push(receipt("operated", 0, "msg_e", 1, 90, 200));
    assert!(!findings(&books).iter().any(|finding| finding.contains("after its discard")));
}

/// Cut off three times before it was ever received, dead-lettered for that, retried to the tail.
#[test]
fn order_excuses_only_what_left_the_queue_unseen() {
    let interrupted = |number| Try { number, status: None, interrupted: true };
    for (interruptions, excused) in [(2, false), (3, true)] {
        let mut books = honest();
        books.receipts.swap(0, 2);
        let mut tries: Vec<Try> = (1..=interruptions).map(interrupted).collect();
        tries.push(Try { number: interruptions + 1, status: Some(200), interrupted: false });
        books.listed[0] = Listed { attempts: interruptions + 1, tries, ..books.listed[0].clone() };
        let found = findings(&books).iter().any(|finding| finding.contains("before its predecessor"));
        assert_eq!(found, !excused, "{interruptions}");
    }
}
