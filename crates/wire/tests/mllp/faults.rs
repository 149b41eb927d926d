//! Receivers that are down, hang, lie, reset and flood.

use postrider_core::NoAnswerKind::{NoAck, NotAllowed, Timeout, Unreachable, Unsendable};
use serde_json::json;
use tokio::net::TcpListener;

use crate::cases::{Case, adt, unanswered};
use crate::receiver::{Receiver, ack, control_id, framed};

// proves: Z01
#[tokio::test]
async fn z01_a_receiver_that_is_down_is_unreachable() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let told = Case::to(address, json!({})).unanswered(Unreachable).await;
    assert!(told.contains(&format!("cannot connect to {address}")), "{told}");
    let told = Case::at("lis.invalid:2575", json!({})).unanswered(Unreachable).await;
    assert!(told.contains("lis.invalid cannot be resolved"), "{told}");
}

#[tokio::test]
async fn r14_cloud_metadata_is_not_dialled_over_mllp_either() {
    Case::at("169.254.169.254:80", json!({})).unanswered(NotAllowed).await;
}

#[tokio::test]
async fn m13_a_socket_closed_before_the_acknowledgment_is_a_failure() {
    let receiver = Receiver::start(|mut talk| async move {
        talk.message().await;
    })
    .await;
    let told = Case::to(receiver.address, json!({})).unanswered(Unreachable).await;
    assert!(told.contains("connection closed before an acknowledgment"), "{told}");
}

#[tokio::test]
async fn a_reset_in_the_middle_of_an_acknowledgment_is_a_failure() {
    let receiver = Receiver::start(|mut talk| async move {
        talk.message().await;
        talk.write(&framed(&ack("AA", "M1"))[..40]).await;
        talk.reset();
    })
    .await;
    let told = Case::to(receiver.address, json!({})).unanswered(Unreachable).await;
    assert!(told.contains("before an acknowledgment"), "{told}");
}

#[tokio::test]
async fn m16_m18_connecting_writing_and_waiting_each_have_their_own_time() {
    let mute = Receiver::writing("").await;
    let told =
        Case::to(mute.address, json!({"recv_timeout": 100, "connect_timeout_ms": 60000})).unanswered(NoAck).await;
    assert!(told.contains("no acknowledgment within"), "{told}");
    // Takes nothing from the socket.
    let deaf = Receiver::start(|talk| async move {
        std::future::pending::<()>().await;
        drop(talk);
    })
    .await;
    let keys = json!({"write_timeout_ms": 200, "max_msg_size": 64 << 20});
    let long = adt("M1") + &"OBX|".repeat(8 << 20);
    let told = unanswered(Case::to(deaf.address, keys).send(long).await, Timeout);
    assert!(told.contains("did not take the whole message within"), "{told}");
    // A full backlog: the connection is never accepted.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while let Ok(Ok(tcp)) =
        tokio::time::timeout(std::time::Duration::from_millis(300), tokio::net::TcpStream::connect(address)).await
    {
        held.push(tcp);
    }
    let told = Case::to(address, json!({"connect_timeout_ms": 200})).unanswered(Timeout).await;
    assert!(told.contains("the connection was not accepted"), "{told}");
}

#[tokio::test]
async fn a_flood_is_cut_off_and_the_next_message_goes_through() {
    for (first, more, why) in [
        (&b""[..], &b"connected "[..], "outside of a message"),
        (b"\x0b", b"MSH|^~\\&|", "a message of more than 1000 bytes"),
    ] {
        let receiver = Receiver::start(move |mut talk| async move {
            let Some(message) = talk.message().await else { return };
            if talk.socket > 1 {
                talk.ack("AA", &control_id(&message)).await;
                return;
            }
            use tokio::io::AsyncWriteExt as _;
            talk.write(first).await;
            while talk.tcp.write_all(more).await.is_ok() {}
        })
        .await;
        let case = Case::to(receiver.address, json!({"max_msg_size": 1000}));
        let told = case.unanswered(NoAck).await;
        assert!(told.contains(why), "{told}");
        assert_eq!(case.code(adt("M2")).await, "AA");
    }
}

// An early refusal: the receiver says AE after the header and closes without reading on.
#[tokio::test]
async fn an_acknowledgment_given_before_the_whole_message_was_read_still_counts() {
    let receiver = Receiver::start(|mut talk| async move {
        use tokio::io::AsyncReadExt as _;
        let mut piece = vec![0; 4096];
        let _ = talk.tcp.read(&mut piece).await;
        talk.ack("AE", "M1").await;
    })
    .await;
    let long = adt("M1") + &"OBX|1|TX|text\r".repeat(1 << 20);
    let case = Case::to(receiver.address, json!({"max_msg_size": 64 << 20}));
    match case.send(long).await {
        reply @ postrider_core::Reply::Answered(_) => {
            assert_eq!(crate::cases::acknowledged(reply).1.code.as_str(), "AE")
        }
        // The kernel may throw the answer away with the reset; then it is a failure and never a success.
        reply => drop(unanswered(reply, Unreachable)),
    }
}

#[tokio::test]
async fn what_cannot_be_framed_is_not_sent() {
    let receiver = Receiver::saying("AA").await;
    let case = Case::to(receiver.address, json!({}));
    unanswered(case.send("MSH|^~\\&|A|B|C|D|1||ADT|M1|P\rOBX|\u{1c}\r").await, Unsendable);
    unanswered(case.send("hello").await, Unsendable);
    assert_eq!(receiver.sockets(), 0);
}
