//! Batches: one frame out, and what its messages come to.

use postrider_core::NoAnswerKind::NoAck;
use serde_json::json;

use crate::cases::{Case, acknowledged, adt, unanswered};
use crate::receiver::{Receiver, ack, framed};

fn batch() -> String {
    format!("BHS|^~\\&|HIS|GH|LIS|GH|20260312||||B1\r{}{}BTS|2\r", adt("M1"), adt("M2"))
}

async fn answered_with(bytes: Vec<u8>) -> Result<(String, usize), String> {
    let receiver = Receiver::writing(bytes).await;
    let case = Case::to(receiver.address, json!({"recv_timeout": 300}));
    match case.send(batch()).await {
        reply @ postrider_core::Reply::Answered(_) => {
            let (_, read) = acknowledged(reply);
            Ok((read.code.to_string(), read.items.len()))
        }
        reply => Err(unanswered(reply, NoAck)),
    }
}

#[tokio::test]
async fn m34_a_batch_is_answered_by_a_batch_by_its_number_or_message_by_message() {
    let in_envelope = |codes: [&str; 2]| {
        let of = "BHS|^~\\&|LIS||||20260312||||B9|B1\r";
        framed(&format!("{of}{}{}BTS|2\r", ack(codes[0], "M1"), ack(codes[1], "M2")))
    };
    assert_eq!(answered_with(in_envelope(["AA", "AA"])).await, Ok(("AA".into(), 2)));
    assert_eq!(answered_with(in_envelope(["AA", "AE"])).await, Ok(("AE".into(), 2)));
    assert_eq!(answered_with(in_envelope(["AA", "AR"])).await, Ok(("AE".into(), 2)), "nothing accepted is sent again");
    assert_eq!(answered_with(in_envelope(["AR", "AR"])).await, Ok(("AR".into(), 2)));
    assert_eq!(answered_with(framed(&ack("CA", "B1"))).await, Ok(("CA".into(), 0)));
    let one_by_one = [framed(&ack("AA", "M2")), framed(&ack("AA", "M1"))].concat();
    assert_eq!(answered_with(one_by_one).await, Ok(("AA".into(), 2)));
}

#[tokio::test]
async fn m34_a_receiver_that_saw_only_the_first_message_has_not_taken_the_batch() {
    let told = answered_with(framed(&ack("AA", "M1"))).await.unwrap_err();
    assert!(told.contains("1 of the 2 messages of the batch were acknowledged"), "{told}");
}
