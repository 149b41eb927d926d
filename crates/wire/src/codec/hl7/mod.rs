//! A reader of HL7 version 2 that looks and never changes: every value is a piece of the message's own bytes.
//!
//! Delimiters are those of the message (MSH-1 and MSH-2, and of a batch BHS and FHS). Segments end with CR; LF and CR LF are taken too. It must
//! not know of frames or sockets, and takes time in proportion to the message's length.

mod ack;
mod answer;
mod build;
mod outline;
mod text;

pub use ack::{Acknowledgment, NotAnAck, acknowledgment};
pub use answer::{Disposition, acknowledge, check, has_control_ids};
pub use build::{AckHead, build_ack};
pub use outline::{AckWish, Outline, outline};
pub use text::shown;

/// The bytes are no message of HL7 version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHl7 {
    #[error("it is empty")]
    Empty,
    #[error("it does not begin with MSH, BHS or FHS")]
    Start,
    #[error("the field separator or the encoding characters of its first segment cannot be used")]
    Delimiters,
}

/// What separates the parts of a message. What MSH-2 leaves out is not separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delimiters {
    pub field: u8,
    pub component: Option<u8>,
    pub repetition: Option<u8>,
    pub escape: Option<u8>,
    pub subcomponent: Option<u8>,
}

#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    bytes: &'a [u8],
    delimiters: Delimiters,
}

/// The segments of a message, or of a batch of them, in their order; empty ones are left out.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    rest: &'a [u8],
    delimiters: Delimiters,
}

/// Begins to read.
///
/// # Errors
/// `NotHl7`.
pub fn segments(message: &[u8]) -> Result<Segments<'_>, NotHl7> {
    if message.iter().all(|byte| is_end(*byte)) {
        return Err(NotHl7::Empty);
    }
    let start = message.iter().position(|byte| !is_end(*byte)).unwrap_or_default();
    let rest = &message[start..];
    if !is_header(rest) {
        return Err(NotHl7::Start);
    }
    let delimiters = Delimiters::read(first_segment(rest)).ok_or(NotHl7::Delimiters)?;
    Ok(Segments { rest, delimiters })
}

impl Delimiters {
    /// Of a segment that begins a message, a batch or a file.
    fn read(segment: &[u8]) -> Option<Self> {
        let field = *segment.get(3)?;
        let behind = &segment[4..];
        let encoding = memchr::memchr(field, behind).map_or(behind, |end| &behind[..end]);
        let usable = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric();
        // Version 2.7 has a fifth, for text that was cut.
        if !usable(field) || encoding.len() > 5 || !encoding.iter().all(|byte| usable(*byte)) {
            return None;
        }
        let all = [encoding, &[field]].concat();
        let twice = all.iter().enumerate().any(|(at, byte)| all[..at].contains(byte));
        let nth = |at: usize| encoding.get(at).copied();
        (!twice).then(|| Delimiters {
            field,
            component: nth(0),
            repetition: nth(1),
            escape: nth(2),
            subcomponent: nth(3),
        })
    }

    pub fn component<'a>(&self, field: &'a [u8], number: usize) -> &'a [u8] {
        nth(field, self.component, number)
    }

    pub fn subcomponent<'a>(&self, component: &'a [u8], number: usize) -> &'a [u8] {
        nth(component, self.subcomponent, number)
    }

    pub fn repetition<'a>(&self, field: &'a [u8], number: usize) -> &'a [u8] {
        nth(field, self.repetition, number)
    }
}

impl<'a> Segment<'a> {
    /// Three letters; whatever stands there in a segment that is broken.
    pub fn name(&self) -> &'a [u8] {
        nth(self.bytes, Some(self.delimiters.field), 1)
    }

    pub fn is(&self, name: &str) -> bool {
        self.name() == name.as_bytes()
    }

    /// A field by its number in the standard, from 1; empty where there is none. MSH-1 is the separator itself, so what stands behind it is
    /// MSH-2.
    pub fn field(&self, number: usize) -> &'a [u8] {
        let shift = usize::from(is_header(self.bytes));
        match number {
            0 => self.name(),
            1 if shift == 1 => self.bytes.get(3..4).unwrap_or_default(),
            number => nth(self.bytes, Some(self.delimiters.field), number + 1 - shift),
        }
    }

    pub fn delimiters(&self) -> Delimiters {
        self.delimiters
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let bytes = first_segment(self.rest);
            self.rest = self.rest.get(bytes.len() + 1..).unwrap_or_default();
            if bytes.is_empty() {
                continue;
            }
            // Each message of a batch may have its own; one whose cannot be read is taken by the others'.
            if is_header(bytes)
                && let Some(delimiters) = Delimiters::read(bytes)
            {
                self.delimiters = delimiters;
            }
            return Some(Segment { bytes, delimiters: self.delimiters });
        }
    }
}

fn first_segment(bytes: &[u8]) -> &[u8] {
    memchr::memchr2(b'\r', b'\n', bytes).map_or(bytes, |end| &bytes[..end])
}

fn is_header(segment: &[u8]) -> bool {
    [b"MSH", b"BHS", b"FHS"].iter().any(|name| segment.starts_with(*name))
}

const fn is_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Part `number`, from 1, of what `separator` divides.
fn nth(bytes: &[u8], separator: Option<u8>, number: usize) -> &[u8] {
    let Some(separator) = separator else { return if number == 1 { bytes } else { &[] } };
    let mut rest = bytes;
    for _ in 1..number {
        match memchr::memchr(separator, rest) {
            Some(end) => rest = &rest[end + 1..],
            None => return &[],
        }
    }
    memchr::memchr(separator, rest).map_or(rest, |end| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(message: &[u8]) -> Vec<Segment<'_>> {
        segments(message).unwrap().collect()
    }

    #[test]
    fn fields_have_the_numbers_of_the_standard() {
        let read = all(b"MSH|^~\\&|LAB|GH|LIS|GH2|20260312||ADT^A01|MSG1|P|2.5\rPID|1||7^^^MRN||Doe^J\r");
        let [msh, pid] = read[..] else { panic!("{read:?}") };
        assert_eq!((msh.field(1), msh.field(2), msh.field(3)), (&b"|"[..], &b"^~\\&"[..], &b"LAB"[..]));
        assert_eq!((msh.field(10), msh.field(12), msh.field(18)), (&b"MSG1"[..], &b"2.5"[..], &b""[..]));
        assert_eq!((pid.name(), pid.field(1), pid.field(3)), (&b"PID"[..], &b"1"[..], &b"7^^^MRN"[..]));
        assert_eq!(pid.delimiters().component(pid.field(3), 4), b"MRN");
        assert_eq!(pid.delimiters().component(pid.field(3), 5), b"");
    }

    // Field reports: a fifth encoding character, acknowledgments with delimiters of their own, LF or CR LF at the ends of segments.
    #[test]
    fn m11_m29_m33_delimiters_and_ends_are_those_of_the_message() {
        for (message, field, component) in [
            (&b"MSH|^~\\&#|A\rMSA|AA|1"[..], b'|', b'^'),
            (b"MSH:;~\\&:A\nMSA:AA:1\n", b':', b';'),
            (b"\r\nMSH|^~\\&|A\r\n\r\nMSA|AA|1\r\n", b'|', b'^'),
        ] {
            let read = all(message);
            assert_eq!(read.len(), 2, "{message:?}");
            let Delimiters { field: read_field, component: read_component, .. } = read[0].delimiters();
            assert_eq!((read_field, read_component), (field, Some(component)));
            assert_eq!((read[1].field(1), read[1].field(2)), (&b"AA"[..], &b"1"[..]));
        }
    }

    #[test]
    fn what_is_no_hl7_is_told() {
        for (bytes, why) in [
            (&b""[..], NotHl7::Empty),
            (b"\r\n", NotHl7::Empty),
            (b"PID|1", NotHl7::Start),
            (b"\xef\xbb\xbfMSH|^~\\&|", NotHl7::Start),
            (b"M\0S\0H\0|\0", NotHl7::Start),
            (b"<xml/>", NotHl7::Start),
            (b"MSH", NotHl7::Delimiters),
            (b"MSHA^~\\&A", NotHl7::Delimiters),
            (b"MSH|^^\\&|", NotHl7::Delimiters),
            (b"MSH|^~\\&#!|", NotHl7::Delimiters),
            (b"MSH |^~\\&|", NotHl7::Delimiters),
        ] {
            assert_eq!(segments(bytes).err(), Some(why), "{bytes:?}");
        }
    }

    #[test]
    fn each_message_of_a_batch_has_its_own_delimiters() {
        let read = all(b"BHS|^~\\&|A\rMSH:;~\\&:A\rPID:1;2\rBTS|1\r");
        let fields: Vec<u8> = read.iter().map(|segment| segment.delimiters().field).collect();
        // A trailer says nothing of its own, so it is taken by those before it.
        assert_eq!(fields, b"|:::");
        assert_eq!((read[2].field(1), read[3].bytes()), (&b"1;2"[..], &b"BTS|1"[..]));
    }
}
