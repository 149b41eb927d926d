//! What people and scripts read: tables or JSON on standard output, complaints on standard error.
//!
//! It must not know where the values come from. Whatever it prints as text has its control characters escaped, since names, errors
//! and bodies come from strangers and a terminal obeys them.

mod sheet;
mod style;
mod table;
mod times;

pub use sheet::Sheet;
pub use style::{Tint, status_tint, stdout_is_coloured};
pub use table::{Align, Cell, Table};
pub use times::{local_beside, utc};

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

/// Told once; what comes later would fail for the same reason.
static CUT_SHORT: AtomicBool = AtomicBool::new(false);

/// Prints text and ends the line. A reader that has gone away (`| head`) is no failure.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
        && !CUT_SHORT.swap(true, Ordering::Relaxed)
    {
        complain(&format!("standard output cannot be written: {error}"));
    }
}

/// Whether something that was to be printed is missing, so that a command which printed it all the same does not count as done.
pub fn is_cut_short() -> bool {
    CUT_SHORT.load(Ordering::Relaxed)
}

pub fn print_json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(&text),
        Err(error) => complain(&format!("the answer cannot be shown as JSON: {error}")),
    }
}

/// One line on standard error: `error: …`.
pub fn complain(message: &str) {
    eprintln!("error: {}", plain(message));
}

/// A remark on standard error that is no failure.
pub fn remark(message: &str) {
    eprintln!("{}", plain(message));
}

/// The text without anything that a terminal would obey.
pub fn plain(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}

/// A number of seconds with its unit: `2 s`, `0.5 s`, `90 s`, `2 min`, `10 min 30 s`, `31 h 21 min`, `7 d`.
pub fn seconds(seconds: f64) -> String {
    let millis = (seconds * 1000.0).round() as u64;
    if millis < 120_000 || !millis.is_multiple_of(1000) {
        return format!("{} s", millis as f64 / 1000.0);
    }
    let seconds = millis / 1000;
    if seconds >= 2 * 86_400 && seconds.is_multiple_of(86_400) {
        return format!("{} d", seconds / 86_400);
    }
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let said = parts.iter().filter(|(count, _)| *count > 0).map(|(count, unit)| format!("{count} {unit}"));
    said.collect::<Vec<_>>().join(" ")
}

/// A number of bytes with its unit: exact below 1 KiB, else to one decimal.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_never_handed_control_characters() {
        assert_eq!(plain("a\u{1b}[31mb\r\n"), "a\\u{1b}[31mb\\r\\n");
        assert_eq!(plain("größer ✓"), "größer ✓");
    }

    #[test]
    fn numbers_carry_their_units() {
        let waits = [0.0, 0.5, 2.0, 90.0, 300.0, 630.0, 7200.0, 86_400.0, 112_860.0, 345_600.0];
        let said: Vec<String> = waits.into_iter().map(seconds).collect();
        assert_eq!(said, ["0 s", "0.5 s", "2 s", "90 s", "5 min", "10 min 30 s", "2 h", "24 h", "31 h 21 min", "4 d"]);
        assert_eq!([bytes(0), bytes(1023), bytes(1536), bytes(8 << 20)], ["0 B", "1023 B", "1.5 KiB", "8.0 MiB"]);
    }
}
