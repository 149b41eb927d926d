//! Header blocks of WS-Addressing 1.0, each declaring what it uses.
//!
//! This module must not know how ids are made.

use super::xml::escape_into;

pub const WSA_NS: &str = "http://www.w3.org/2005/08/addressing";
const ANONYMOUS: &str = "http://www.w3.org/2005/08/addressing/anonymous";

pub struct Addressing<'a> {
    pub action: &'a str,
    pub to: &'a str,
    /// Empty for the anonymous address: the answer comes back the way that the request went.
    pub reply_to: &'a str,
    /// The same for every attempt of one delivery.
    pub message_id: &'a str,
}

/// `wsa:Action`, `wsa:To`, `wsa:MessageID` and `wsa:ReplyTo`.
pub fn blocks(addressing: &Addressing<'_>) -> String {
    let mut out = String::new();
    let mut block = |name: &str, text: &str, inner: bool| {
        out.push_str(&format!("<wsa:{name} xmlns:wsa=\"{WSA_NS}\">"));
        if inner {
            out.push_str("<wsa:Address>");
        }
        escape_into(&mut out, text);
        if inner {
            out.push_str("</wsa:Address>");
        }
        out.push_str(&format!("</wsa:{name}>"));
    };
    block("Action", addressing.action, false);
    block("To", addressing.to, false);
    block("MessageID", addressing.message_id, false);
    block("ReplyTo", if addressing.reply_to.is_empty() { ANONYMOUS } else { addressing.reply_to }, true);
    out
}

#[cfg(test)]
mod tests {
    use super::super::xml;
    use super::*;

    #[test]
    fn s16_the_blocks_say_what_to_whom_and_under_which_id() {
        let wanted = Addressing { action: "urn:a&b", to: "http://x/?a=1&b", reply_to: "", message_id: "urn:uuid:1" };
        let text = format!("<h>{}</h>", blocks(&wanted));
        let document = xml::read(&text);
        let root = document.root().unwrap();
        let of = |name: &str| root.child(WSA_NS, name).unwrap();
        assert_eq!((of("Action").text(), of("To").text()), ("urn:a&b".to_owned(), "http://x/?a=1&b".to_owned()));
        assert_eq!(of("MessageID").text(), "urn:uuid:1");
        assert_eq!(of("ReplyTo").child(WSA_NS, "Address").unwrap().text(), ANONYMOUS);
    }
}
