//! Bytes in hexadecimal, sixteen a line, with what of them is ASCII. It must not know what they mean.

use super::{Class, Limits, Lines};

const PER_LINE: usize = 16;

pub fn lines(bytes: &[u8], limits: Limits) -> Lines {
    let mut lines = Lines::new(limits);
    for (number, row) in bytes.chunks(PER_LINE).enumerate() {
        if !lines.has_room() {
            break;
        }
        let offset = format!("{:08x}  ", number * PER_LINE);
        let mut digits = String::with_capacity(PER_LINE * 3 + 2);
        for at in 0..PER_LINE {
            match row.get(at) {
                Some(byte) => digits.push_str(&format!("{byte:02x} ")),
                None => digits.push_str("   "),
            }
            if at == 7 {
                digits.push(' ');
            }
        }
        let letters: String = row
            .iter()
            .map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' })
            .collect();
        lines.push(0, [(Class::Note, offset.as_str()), (Class::Plain, &digits), (Class::Text, &format!(" {letters}"))]);
    }
    lines
}
