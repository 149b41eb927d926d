//! The end of a certificate's validity, read from its DER (RFC 5280, section 4.1).
//!
//! Only the way there is read: whether the certificate is good was judged when it was shown. It must not know of sockets.

use postrider_core::Timestamp;

const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `notAfter`; `None` for what is no certificate.
pub(crate) fn ends_at(der: &[u8]) -> Option<Timestamp> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (signed, _) = expect(certificate, SEQUENCE)?;
    let mut rest = signed;
    if rest.first() == Some(&VERSION) {
        rest = element(rest)?.2;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        rest = element(rest)?.2;
    }
    let (validity, _) = expect(rest, SEQUENCE)?;
    let (_, _, after_begin) = element(validity)?;
    let (tag, end, _) = element(after_begin)?;
    time(tag, std::str::from_utf8(end).ok()?)
}

fn expect(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, inside, rest) = element(der)?;
    (found == tag).then_some((inside, rest))
}

/// Tag, content, and what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0usize, |length, byte| (length << 8) | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (inside, rest) = rest.split_at_checked(length)?;
    Some((*tag, inside, rest))
}

/// `YYMMDDHHMMSSZ` of 1950 to 2049, or `YYYYMMDDHHMMSSZ`.
fn time(tag: u8, text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix('Z').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    let whole = match (tag, digits.len()) {
        (UTC_TIME, 12) => format!("{}{digits}", if digits < "50" { "20" } else { "19" }),
        (GENERALIZED_TIME, 14) => digits.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| &whole[from..to];
    Timestamp::parse_rfc3339(&format!(
        "{}-{}-{}T{}:{}:{}Z",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_end_is_read_in_both_of_its_forms() {
        for (year, text) in [(2031, "2031-03-12T12:05:34Z"), (2107, "2107-03-12T12:05:34Z")] {
            let mut params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
            params.not_after = rcgen::date_time_ymd(year, 3, 12) + std::time::Duration::from_secs(43_534);
            let made = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
            assert_eq!(ends_at(made.der()), Timestamp::parse_rfc3339(text), "{year}");
            for cut in 0..60 {
                assert_eq!(ends_at(&made.der()[..cut]), None);
            }
        }
        assert_eq!(time(UTC_TIME, "500101000000Z"), Timestamp::parse_rfc3339("1950-01-01T00:00:00Z"));
        assert_eq!((time(UTC_TIME, "5001010000Z"), time(GENERALIZED_TIME, "2050é101000000Z")), (None, None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(bytes: Vec<u8>) {
            let _ = ends_at(&bytes);
        }
    }
}
