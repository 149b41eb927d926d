//! A body as a text to edit in a browser, and back to the bytes that it should be.
//!
//! A browser knows one end of line only, and HL7 v2 has another: the ends of the body as it was are kept, so that an edit changes what was edited
//! and nothing else. Pure. It must not know of forms.

/// `edit_bytes_max`: longer bodies are downloaded and handed in by the API.
pub const EDIT_BYTES_MAX: usize = 1 << 20;

/// How the lines of a body end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// Also where there is one line only.
    Lf,
    CrLf,
    /// As in HL7 v2.
    Cr,
}

impl Ends {
    const fn as_str(self) -> &'static str {
        match self {
            Ends::Lf => "\n",
            Ends::CrLf => "\r\n",
            Ends::Cr => "\r",
        }
    }
}

/// Why a body cannot be edited in a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotEditable {
    #[error("It is too long to edit here.")]
    TooLong,
    #[error("It is no text: some of its bytes are no UTF-8.")]
    NoText,
    #[error("It has control characters that a browser would not keep.")]
    Controls,
    #[error("Its lines end in different ways, which a browser would not keep.")]
    MixedEnds,
}

/// The text, with `\n` at each end of line, and how its lines end.
///
/// # Errors
/// A browser would not give it back as it was.
pub fn editable(body: &[u8]) -> Result<(String, Ends), NotEditable> {
    if body.len() > EDIT_BYTES_MAX {
        return Err(NotEditable::TooLong);
    }
    let text = std::str::from_utf8(body).map_err(|_| NotEditable::NoText)?;
    if text.chars().any(|letter| letter.is_control() && !matches!(letter, '\t' | '\n' | '\r')) {
        return Err(NotEditable::Controls);
    }
    let both = text.matches("\r\n").count();
    let (returns, feeds) = (text.matches('\r').count() - both, text.matches('\n').count() - both);
    let ends = match (both, returns, feeds) {
        (0, 0, _) => Ends::Lf,
        (_, 0, 0) => Ends::CrLf,
        (0, _, 0) => Ends::Cr,
        _ => return Err(NotEditable::MixedEnds),
    };
    Ok((text.replace(ends.as_str(), "\n"), ends))
}

/// The bytes of an edited text, its lines ended as they were before.
pub fn restored(text: &str, ends: Ends) -> Vec<u8> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.replace('\n', ends.as_str()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn z23_an_edit_keeps_the_ends_of_lines() {
        for (body, ends) in [
            ("MSH|^~\\&|A\rPID|1\r", Ends::Cr),
            ("a\r\nb\r\n", Ends::CrLf),
            ("a\nb", Ends::Lf),
            ("one", Ends::Lf),
            ("", Ends::Lf),
        ] {
            let (text, found) = editable(body.as_bytes()).unwrap();
            assert_eq!((found, text.contains('\r')), (ends, false), "{body:?}");
            // As a browser sends it.
            let sent = text.replace('\n', "\r\n");
            assert_eq!(restored(&sent, ends), body.as_bytes());
        }
        assert_eq!(restored("MSH|^~\\&|A\r\nPID|2\r\n", Ends::Cr), b"MSH|^~\\&|A\rPID|2\r");
    }

    #[test]
    fn z23_what_a_browser_would_change_is_not_edited_there() {
        assert_eq!(editable(b"a\r\nb\nc"), Err(NotEditable::MixedEnds));
        assert_eq!(editable(b"a\rb\nc"), Err(NotEditable::MixedEnds));
        assert_eq!(editable(b"\x0bMSH|"), Err(NotEditable::Controls));
        assert_eq!(editable(b"a\0b"), Err(NotEditable::Controls));
        assert_eq!(editable(b"gr\xfc\xdfe"), Err(NotEditable::NoText));
        assert_eq!(editable(&vec![b'x'; EDIT_BYTES_MAX + 1]), Err(NotEditable::TooLong));
    }

    proptest! {
        #[test]
        fn z23_what_nobody_touched_comes_back_as_it_was(body in "[a-zß|\t\r\n]{0,40}") {
            if let Ok((text, ends)) = editable(body.as_bytes()) {
                prop_assert_eq!(restored(&text, ends), body.as_bytes());
                prop_assert_eq!(restored(&text.replace('\n', "\r\n"), ends), body.into_bytes());
            }
        }
    }
}
