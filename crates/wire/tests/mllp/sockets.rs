//! Sockets: kept open, one message at a time, closed when they cannot be trusted; and what goes over them.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::NoAnswerKind::NoAck;
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::cases::{Case, acknowledged, adt, unanswered};
use crate::receiver::{Receiver, control_id};

const AMPLE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn one_socket_carries_one_message_after_the_other() {
    let receiver = Receiver::saying("AA").await;
    let case = Case::to(receiver.address, json!({}));
    for id in 0..20 {
        assert_eq!(case.code(adt(&format!("M{id}"))).await, "AA");
    }
    assert_eq!(receiver.sockets(), 1);
    let closing = Case::to(receiver.address, json!({"keep_open": false}));
    for id in 0..3 {
        assert_eq!(closing.code(adt(&format!("M{id}"))).await, "AA");
    }
    assert_eq!(receiver.sockets(), 1 + 3);
}

// The report that cost messages: the late acknowledgment of the first was taken for the second's, and the second was lost.
#[tokio::test]
async fn m01_m02_a_late_acknowledgment_is_never_taken_for_the_next_messages() {
    let (given_up, hears) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (says, told) = (given_up.clone(), hears.clone());
    let receiver = Receiver::start(move |mut talk| {
        let (given_up, hears) = (given_up.clone(), hears.clone());
        async move {
            let message = talk.message().await.unwrap();
            if talk.socket == 1 {
                given_up.notified().await;
                talk.ack("AA", &control_id(&message)).await;
                hears.notify_one();
                assert_eq!(talk.message().await, None, "no second message comes on this socket");
            } else {
                talk.ack("AR", &control_id(&message)).await;
            }
        }
    })
    .await;
    let case = Case::to(receiver.address, json!({"recv_timeout": 100}));
    unanswered(case.send(adt("M1")).await, NoAck);
    says.notify_one();
    told.notified().await;
    // The same number on purpose: a socket kept open would take the late one for it.
    assert_eq!(case.code(adt("M1")).await, "AR");
    assert_eq!(receiver.sockets(), 2);
}

#[tokio::test]
async fn m42_one_message_is_in_flight_at_a_time_however_many_wait() {
    let receiver = Receiver::start(|mut talk| async move {
        while let Some(message) = talk.message().await {
            assert!(talk.is_quiet_for(30).await, "a second message before the first was acknowledged");
            talk.ack("AA", &control_id(&message)).await;
        }
    })
    .await;
    let case = Arc::new(Case::to(receiver.address, json!({})));
    let sending: Vec<_> = (0..6)
        .map(|id| {
            let case = case.clone();
            tokio::spawn(async move { case.code(adt(&format!("M{id}"))).await })
        })
        .collect();
    for sent in sending {
        assert_eq!(sent.await.unwrap(), "AA");
    }
    assert_eq!(receiver.sockets(), 1);
}

#[tokio::test]
async fn m13_m14_a_socket_that_its_receiver_closed_or_spoke_on_is_not_written_to() {
    for farewell in [&b""[..], b"\x0bMSH|", b"bye"] {
        let (ended, mut has_ended) = mpsc::unbounded_channel();
        let receiver = Receiver::start(move |mut talk| {
            let ended = ended.clone();
            async move {
                let message = talk.message().await.unwrap();
                talk.ack("AA", &control_id(&message)).await;
                if talk.socket == 1 {
                    // The acknowledgment is read before the farewell comes.
                    assert!(talk.is_quiet_for(50).await);
                    talk.write(farewell).await;
                    if farewell.is_empty() {
                        drop(talk);
                        ended.send(()).unwrap();
                    } else {
                        ended.send(()).unwrap();
                        assert_eq!(talk.message().await, None, "nothing is written to it");
                    }
                }
            }
        })
        .await;
        let case = Case::to(receiver.address, json!({}));
        assert_eq!(case.code(adt("M1")).await, "AA");
        has_ended.recv().await.unwrap();
        assert_eq!(case.code(adt("M2")).await, "AA");
        assert_eq!(receiver.sockets(), 2, "{farewell:?}");
    }
}

#[tokio::test]
async fn m26_white_space_after_an_acknowledgment_keeps_the_socket() {
    let receiver = Receiver::start(|mut talk| async move {
        while let Some(message) = talk.message().await {
            let mut bytes = crate::receiver::framed(&crate::receiver::ack("AA", &control_id(&message)));
            bytes.extend_from_slice(b"\n\r\n");
            talk.write(&bytes).await;
        }
    })
    .await;
    let case = Case::to(receiver.address, json!({}));
    for id in 0..5 {
        assert_eq!(case.code(adt(&format!("M{id}"))).await, "AA");
    }
    assert_eq!(receiver.sockets(), 1);
}

#[tokio::test]
async fn m38_a_receiver_that_needs_a_pause_gets_it() {
    let receiver = Receiver::start(|mut talk| async move {
        while let Some(message) = talk.message().await {
            talk.ack("AA", &control_id(&message)).await;
            assert!(talk.is_quiet_for(200).await, "the next message came too soon");
        }
    })
    .await;
    let case = Case::to(receiver.address, json!({"min_gap_ms": 400}));
    for id in 0..3 {
        assert_eq!(case.code(adt(&format!("M{id}"))).await, "AA");
    }
}

#[tokio::test]
async fn m15_a_socket_on_which_nothing_goes_on_is_closed() {
    let (ended, mut has_ended) = mpsc::unbounded_channel();
    let receiver = Receiver::start(move |mut talk| {
        let ended = ended.clone();
        async move {
            while let Some(message) = talk.message().await {
                talk.ack("AA", &control_id(&message)).await;
            }
            ended.send(()).unwrap();
        }
    })
    .await;
    let case = Case::to(receiver.address, json!({"idle_close_seconds": 1}));
    assert_eq!(case.code(adt("M1")).await, "AA");
    tokio::time::timeout(AMPLE, has_ended.recv()).await.unwrap().unwrap();
    assert_eq!(case.code(adt("M2")).await, "AA");
    assert_eq!(receiver.sockets(), 2);
}

// proves: oracle 8
#[tokio::test]
async fn m28_m30_bytes_go_as_they_are_unless_the_connection_declares_otherwise() {
    let odd = b"MSH|^~\\&|A|B|C|D|1||ADT|M1|P|2.5||||||8859/1\nPID|1||Gr\xf6\xdfe\x00\nNTE|last".to_vec();
    for (keys, wanted) in [
        (json!({}), odd.clone()),
        (
            json!({"segment_ends": "cr"}),
            b"MSH|^~\\&|A|B|C|D|1||ADT|M1|P|2.5||||||8859/1\rPID|1||Gr\xf6\xdfe\x00\rNTE|last\r".to_vec(),
        ),
    ] {
        let (came, mut has_come) = mpsc::unbounded_channel();
        let receiver = Receiver::start(move |mut talk| {
            let came = came.clone();
            async move {
                let message = talk.message().await.unwrap();
                came.send(message).unwrap();
                talk.ack("AA", "M1").await;
            }
        })
        .await;
        assert_eq!(Case::to(receiver.address, keys).code(odd.clone()).await, "AA");
        assert_eq!(has_come.recv().await.unwrap(), wanted);
    }
}

// A field report: a message of 1.6 MB took a quarter of an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m36_fifty_megabytes_go_out_and_are_acknowledged_in_linear_time() {
    let receiver = Receiver::start(|mut talk| async move {
        use tokio::io::AsyncReadExt as _;
        let (mut bytes, mut piece, mut last) = (0usize, vec![0; 1 << 20], 0);
        while let Ok(read @ 1..) = talk.tcp.read(&mut piece).await {
            bytes += read;
            let ends = piece[..read].ends_with(b"\x1c\r") || (read == 1 && last == 0x1c);
            last = piece[read - 1];
            if ends {
                talk.write(&crate::receiver::framed(&format!("MSH|^~\\&|\rMSA|AA|M1|{bytes} bytes\r"))).await;
            }
        }
    })
    .await;
    let mut message = adt("M1").into_bytes();
    while message.len() < 50 << 20 {
        message.extend_from_slice(b"OBX|1|ED|PDF^report||^application^pdf^Base64^");
        message.extend(std::iter::repeat_n(b'A', 1 << 20));
        message.push(b'\r');
    }
    let length = message.len();
    let case = Case::to(receiver.address, json!({"max_msg_size": 64 << 20}));
    let (_, ack) = acknowledged(tokio::time::timeout(AMPLE, case.send(message)).await.unwrap());
    assert_eq!(ack.text.unwrap(), format!("{} bytes", length + 3));
}
