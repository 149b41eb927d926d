//! The properties of HL7 and its frames on what a fuzzer takes long to find: streams and messages made of their own pieces.

use postrider_properties::{hl7, mllp};
use proptest::prelude::*;

fn pieces(of: &'static [&'static [u8]], most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(of), 0..most).prop_map(|pieces| pieces.concat())
}

const OF_STREAMS: &[&[u8]] = &[b"\x0b", b"\x1c", b"\r", b"\n", b" ", b"a", b"MSH|^~\\&|", b"\x1c\r", b"\x0b\x06\x1c\r"];
const OF_MESSAGES: &[&[u8]] = &[
    b"MSH|^~\\&|",
    b"MSH:;~\\&:",
    b"MSH",
    b"BHS|^~\\&|",
    b"FHS",
    b"MSA|AA|",
    b"ERR|",
    b"\r",
    b"\n",
    b"|",
    b"||||||||",
    b"^",
    b"\\F\\",
    b"\\X0D\\",
    b"\\",
    b"M1",
    b"AE",
    b"\xf6",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn streams_read_the_same_however_they_are_cut(cut: u8, stream in pieces(OF_STREAMS, 40)) {
        mllp::holds(&[&[cut], &stream[..]].concat());
    }

    #[test]
    fn messages_are_read_as_plain_splitting_reads_them(begins in any::<bool>(), rest in pieces(OF_MESSAGES, 40)) {
        let start: &[u8] = if begins { b"MSH|^~\\&|" } else { b"" };
        hl7::holds(&[start, &rest].concat());
    }
}
