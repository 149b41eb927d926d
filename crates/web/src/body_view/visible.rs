//! Characters that are not what they look like, or that cannot be seen, as what they are: `\x00`, `U+202E`, `\xFF`.
//!
//! It must not know what a text is about.

use super::{Class, Line, Piece};

/// Adds the text to the line as far as there is room, hidden characters as pieces of their own.
pub fn add(line: &mut Line, class: Class, text: &str, room: &mut usize) {
    let mut plain = String::new();
    let mut letters = text.chars();
    for letter in letters.by_ref() {
        if *room == 0 {
            line.left_out += 1;
            break;
        }
        *room -= 1;
        match shown(letter) {
            None => plain.push(letter),
            Some(shown) => {
                put(line, class, &mut plain);
                line.pieces.push(Piece { class: Class::Hidden, text: shown });
            }
        }
    }
    put(line, class, &mut plain);
    line.left_out += letters.count();
}

fn put(line: &mut Line, class: Class, plain: &mut String) {
    if plain.is_empty() {
        return;
    }
    let text = std::mem::take(plain);
    match line.pieces.last_mut() {
        Some(last) if last.class == class => last.text.push_str(&text),
        _ => line.pieces.push(Piece { class, text }),
    }
}

/// What stands for a character that must not be shown as it is; `None`: it may.
fn shown(letter: char) -> Option<String> {
    let number = u32::from(letter);
    match letter {
        '\t' => None,
        // As bytes: many fonts have no picture for them.
        '\0'..='\u{1f}' | '\u{7f}' => Some(format!("\\x{number:02X}")),
        BYTES_FROM..=BYTES_TO => Some(format!("\\x{:02X}", number - u32::from(BYTES_FROM))),
        letter if is_hidden(letter) => Some(format!("U+{number:04X}")),
        _ => None,
    }
}

/// Private characters that stand for bytes that are no UTF-8, from a text that `decoded` made.
pub const BYTES_FROM: char = '\u{10fe00}';
pub const BYTES_TO: char = '\u{10feff}';

/// Without a shape, or one that changes how what is around it is read: further controls, formats (Unicode category Cf), separators of lines,
/// blanks of unusual width, fillers, variation selectors, private use, and what is no character.
const fn is_hidden(letter: char) -> bool {
    matches!(letter,
        '\u{80}'..='\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}'
        | '\u{2800}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}
