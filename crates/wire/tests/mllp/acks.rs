//! Which acknowledgment is taken, and what it says.

use postrider_core::NoAnswerKind::NoAck;
use serde_json::json;

use crate::cases::{Case, acknowledged, adt};
use crate::receiver::{Receiver, ack, control_id, framed};

// proves: Z32
#[tokio::test]
async fn z32_every_code_comes_back_with_its_text_and_the_whole_message() {
    for code in ["AA", "AE", "AR", "CA", "CE", "CR"] {
        let said = format!(
            "{}ERR|||207^Application error^HL70357|E|||PID-3 unknown|Patient is not known here\r",
            ack(code, "M1")
        );
        let receiver = Receiver::writing(framed(&said)).await;
        let (answer, read) = acknowledged(Case::to(receiver.address, json!({})).send(adt("M1")).await);
        assert_eq!((read.code.as_str(), read.text.as_deref()), (code, Some("Patient is not known here")));
        assert_eq!((answer.status, &answer.body[..], answer.incomplete), (None, said.as_bytes(), false));
    }
}

#[tokio::test]
async fn m03_m10_others_and_unreadable_acknowledgments_are_passed_over_until_ours_comes() {
    for stray in
        [ack("AE", "M0"), "MSH|^~\\&|\rPID|1\r".to_owned(), "rubbish".to_owned(), "\u{6}".to_owned(), ack("AE", "")]
    {
        let bytes = [framed(&stray), framed(&ack("AA", "M1"))].concat();
        let receiver = Receiver::writing(bytes).await;
        let case = Case::to(receiver.address, json!({}));
        assert_eq!(case.code(adt("M1")).await, "AA", "{stray:?}");
    }
}

#[tokio::test]
async fn m04_an_acknowledgment_of_another_message_is_none_unless_the_connection_says_so() {
    for id in ["M0", ""] {
        let receiver = Receiver::writing(framed(&ack("AA", id))).await;
        let strict = Case::to(receiver.address, json!({"recv_timeout": 200}));
        let told = strict.unanswered(NoAck).await;
        assert!(
            told.contains("no acknowledgment within 0.2 s; 1 other messages came")
                || told.contains("it is of another message"),
            "{told}"
        );
        let lenient = Case::to(receiver.address, json!({"ack_match": "warn"}));
        assert_eq!(lenient.code(adt("M1")).await, "AA");
    }
}

#[tokio::test]
async fn m09_in_enhanced_mode_the_application_has_the_last_word_where_the_message_asks_for_it() {
    let asks =
        |commit: &str, application: &str| format!("MSH|^~\\&|A|B|C|D|1||ADT|M1|P|2.5|||{commit}|{application}\r");
    let both = [framed(&ack("CA", "M1")), framed(&ack("AE", "M1"))].concat();
    let receiver = Receiver::writing(both).await;
    for (commit, application, keys, code) in [
        ("AL", "AL", json!({}), "AE"),
        ("AL", "AL", json!({"application_ack": "other"}), "CA"),
        ("AL", "NE", json!({}), "CA"),
        ("AL", "ER", json!({}), "CA"),
        ("", "", json!({}), "CA"),
    ] {
        assert_eq!(
            Case::to(receiver.address, keys).code(asks(commit, application)).await,
            code,
            "{commit} {application}"
        );
    }
    // Committed, and then silence.
    let mute = Receiver::writing(framed(&ack("CA", "M1"))).await;
    let case = Case::to(mute.address, json!({"recv_timeout": 200}));
    let told = crate::cases::unanswered(case.send(asks("AL", "AL")).await, NoAck);
    assert!(told.contains("committed (CA), and the application did not answer"), "{told}");
}

#[tokio::test]
async fn m23_the_frame_of_an_acknowledgment_may_lack_its_last_byte() {
    for (bytes, closes) in [(&b"\x1c"[..], false), (b"\x1c", true), (b"\x1c\n", false)] {
        let receiver = Receiver::start(move |mut talk| async move {
            while let Some(message) = talk.message().await {
                let said = ack("AA", &control_id(&message));
                talk.write(&[b"\x0b", said.as_bytes(), bytes].concat()).await;
                if closes {
                    return;
                }
            }
        })
        .await;
        let case = Case::to(receiver.address, json!({}));
        assert_eq!((case.code(adt("M1")).await, case.code(adt("M2")).await), ("AA".into(), "AA".into()), "{bytes:?}");
    }
}

#[tokio::test]
async fn m12_m27_what_is_no_acknowledgment_is_told_and_never_a_success() {
    for (bytes, why) in [
        (framed("MSH|^~\\&|\rMSA|OK|M1\r"), "its MSA-1 is `OK`"),
        (framed("MSH|^~\\&|\rPID|1\r"), "it has no MSA segment"),
        (framed("ACK"), "it is no HL7"),
        (framed("\u{6}"), "it is no HL7"),
        (ack("AA", "M1").into_bytes(), "bytes came without the start of a message"),
        (framed(&ack("AA", "M1"))[..20].to_vec(), "bytes of a message came without its end"),
        (b"\x0bMSH|^~\\&|\x1cMSA|AA|M1\r\x1c\r".to_vec(), "the byte that ends a message is inside of one"),
    ] {
        let receiver = Receiver::writing(bytes).await;
        let told = Case::to(receiver.address, json!({"recv_timeout": 300})).unanswered(NoAck).await;
        assert!(told.contains(why), "{told}");
    }
}

#[tokio::test]
async fn m40_a_commit_block_is_no_acknowledgment_and_hides_none() {
    for block in ["\u{6}", "\u{15}"] {
        let both = [framed(block), framed(&ack("AA", "M1"))].concat();
        let receiver = Receiver::writing(both).await;
        let (_, read) = acknowledged(Case::to(receiver.address, json!({})).send(adt("M1")).await);
        assert_eq!(read.code.as_str(), "AA", "the block is passed over");
        let alone = Receiver::writing(framed(block)).await;
        let told = Case::to(alone.address, json!({"recv_timeout": 300})).unanswered(NoAck).await;
        assert!(told.contains("it is no HL7"), "{told}");
    }
}

#[tokio::test]
async fn a_message_that_asks_for_no_acknowledgment_and_gets_none_says_so() {
    let mute = Receiver::writing("").await;
    let case = Case::to(mute.address, json!({"recv_timeout": 100}));
    let reply = case.send("MSH|^~\\&|A|B|C|D|1||ADT|M1|P|2.5|||NE|NE\r").await;
    let told = crate::cases::unanswered(reply, NoAck);
    assert!(told.contains("asks for none (MSH-15 and MSH-16 are NE)"), "{told}");
}
