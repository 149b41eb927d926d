//! The reader of HL7 version 2: it finds what plain splitting finds, loses no byte, and its acknowledgments name the message they are of.

use postrider_core::ack::{Ack, AckCode};
use postrider_wire::codec::hl7::{AckHead, acknowledgment, build_ack, outline, segments, shown};

/// The input is the message.
pub fn holds(data: &[u8]) {
    let lines: Vec<&[u8]> = data.split(|byte| [b'\r', b'\n'].contains(byte)).filter(|line| !line.is_empty()).collect();
    let begins = lines.first().is_some_and(|line| is_header(line));
    let Ok(read) = segments(data) else {
        assert!(!begins || !has_usual_delimiters(lines[0]), "refused");
        let ack = build_ack(data, AckCode::Ar, HEAD);
        assert_eq!(acknowledgment(&ack).expect("our own can be read").items.len(), 1);
        return;
    };
    assert!(begins);
    let found: Vec<_> = read.collect();
    // Lossless: nothing but the ends of segments is left out.
    assert_eq!(found.iter().map(|segment| segment.bytes()).collect::<Vec<_>>(), lines);
    for segment in &found {
        let separator = segment.delimiters().field;
        let parts: Vec<&[u8]> = segment.bytes().split(|byte| *byte == separator).collect();
        assert_eq!(segment.name(), parts[0]);
        for number in 1..parts.len() + 2 {
            let wanted: &[u8] = match (is_header(segment.bytes()), number) {
                (true, 1) => &segment.bytes()[3..segment.bytes().len().min(4)],
                (true, number) => parts.get(number - 1).copied().unwrap_or_default(),
                (false, number) => parts.get(number).copied().unwrap_or_default(),
            };
            assert_eq!(segment.field(number), wanted, "{number}");
        }
        let text = shown(segment.bytes(), segment.delimiters(), b"").unwrap_or_default();
        assert!(text.chars().count() <= 201 && !text.chars().any(char::is_control));
    }
    let outlined = outline(data).expect("it was read above");
    let headers = found.iter().filter(|segment| segment.is("MSH"));
    assert_eq!(outlined.control_ids, headers.map(|header| header.field(10)).collect::<Vec<_>>());
    an_ack_names_its_message(data, &found[0]);
    if let Ok(acks) = acknowledgment(data) {
        let codes: Vec<AckCode> = acks.items.iter().map(|(_, item)| item.code).collect();
        let items = acks.items.into_iter().map(|(_, item)| item).collect();
        assert_eq!(Ack::of_batch(items).is_some(), !codes.is_empty());
    }
}

const HEAD: AckHead<'_> = AckHead { control_id: "PR7", time: "20260312120534", text: Some("a|b^c~d\\e&f") };

fn an_ack_names_its_message(message: &[u8], first: &postrider_wire::codec::hl7::Segment<'_>) {
    let ack = build_ack(message, AckCode::Ca, HEAD);
    let read = acknowledgment(&ack).expect("our own can be read");
    let [(id, item)] = &read.items[..] else { panic!("{} acknowledgments", read.items.len()) };
    assert_eq!(item.code, AckCode::Ca);
    if first.is("MSH") {
        assert_eq!(*id, first.field(10));
        let header = segments(&ack).expect("our own").next().expect("a header");
        assert_eq!(
            (header.field(3), header.field(5)),
            (first.field(5), first.field(3)),
            "sender and receiver change places"
        );
    }
}

fn is_header(line: &[u8]) -> bool {
    line.starts_with(b"MSH") || line.starts_with(b"BHS") || line.starts_with(b"FHS")
}

fn has_usual_delimiters(line: &[u8]) -> bool {
    line[3..].starts_with(b"|^~\\&|")
}
