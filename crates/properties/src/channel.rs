//! What comes in at a channel: its address against the path of a request, the envelope of SOAP, the answer to a message of HL7.

use postrider_core::channel_path::{ChannelPath, RESERVED, is_reserved, segments_of};
use postrider_core::soap::SoapVersion;
use postrider_wire::codec::hl7::{Disposition, acknowledge, check};
use postrider_wire::codec::soap::{channel, xml};

/// The input is a line with the channel's address, a line with the path of a request, and then a body.
pub fn holds(data: &[u8]) {
    let mut parts = data.splitn(3, |byte| *byte == b'\n');
    let [address, path, body] = [(); 3].map(|()| parts.next().unwrap_or_default());
    if let (Some(address), Some(path)) = (crate::text_of(address), crate::text_of(path)) {
        addresses(address, path);
    }
    envelopes(body);
    for disposition in [Disposition::Taken, Disposition::Unfit("why"), Disposition::NotNow("why")] {
        let ack = acknowledge(body, disposition, "P1", "20260312120534");
        assert!(ack.is_some() || check(body).is_ok(), "what is no message is always told so");
    }
}

fn addresses(address: &str, path: &str) {
    let Ok(channel) = ChannelPath::parse(address) else { return };
    assert!(channel.as_str() == address && address.starts_with('/'));
    assert!(!RESERVED.iter().any(|own| address == format!("/{own}") || address.starts_with(&format!("/{own}/"))));
    let Some(segments) = segments_of(path) else { return };
    let matched = channel.match_segments(&segments);
    assert_eq!(matched.is_some(), fits(address, path), "{address} {path}");
    let Some(params) = matched else { return };
    assert!(!is_reserved(path), "{address} {path}");
    assert_eq!(params.len(), address.matches('{').count());
    for (name, value) in params {
        assert!(address.contains(&format!("{{{name}}}")) && !["", ".", ".."].contains(&value.as_str()));
    }
}

/// The same by plain splitting and counting.
fn fits(address: &str, path: &str) -> bool {
    let (ours, theirs): (Vec<&str>, Vec<&str>) = (address.split('/').collect(), path.split('/').collect());
    ours.len() == theirs.len()
        && ours.iter().zip(&theirs).skip(1).all(|(ours, theirs)| {
            let given = decoded(theirs);
            match ours.starts_with('{') {
                true => !matches!(given.as_slice(), b"" | b"." | b".."),
                false => decoded(ours) == given,
            }
        })
}

fn decoded(segment: &str) -> Vec<u8> {
    let bytes = segment.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        let escaped = hex.filter(|_| bytes[at] == b'%').filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        match escaped.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

fn envelopes(body: &[u8]) {
    for version in [SoapVersion::V11, SoapVersion::V12] {
        let Ok(asked) = channel::read(version, Some("text/xml"), body) else { continue };
        assert_eq!(asked.version, version);
        let told = channel::acknowledgment(&asked, "20260312-120534-7301-7f2c0e51a");
        assert_eq!(xml::read(&told).error, None, "{told}");
    }
}
