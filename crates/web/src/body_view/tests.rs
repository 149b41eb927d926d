//! Bodies of each kind as they are shown, and hostile ones. The pictures are compared as text, line by line.

use super::*;
use proptest::prelude::*;

const SMALL: Limits = Limits { lines_max: 50, line_chars_max: 100 };

fn shown(view: &View) -> Vec<String> {
    view.lines.iter().map(|line| format!("{}{}", "  ".repeat(line.depth), line.text())).collect()
}

fn of(bytes: &[u8]) -> View {
    pretty(Kind::of(None, bytes), bytes, SMALL)
}

#[test]
fn i09_a_kind_is_told_by_what_is_said_and_by_how_it_begins() {
    for (said, bytes, kind) in [
        (None, &b""[..], Kind::Empty),
        (None, b"  {\"a\":1}", Kind::Json),
        (None, b"\xef\xbb\xbf[1]", Kind::Json),
        (Some("application/fhir+json; charset=utf-8"), b"12", Kind::Json),
        (Some("text/plain"), b"<a/>", Kind::Xml),
        (Some("text/xml"), b"hello", Kind::Xml),
        (Some("application/json"), b"MSH|^~\\&|A\rPID|1", Kind::Hl7),
        (None, b"MSHX", Kind::Text),
        (Some("Application/X-WWW-Form-Urlencoded"), b"a=1", Kind::Form),
        (None, b"hello", Kind::Text),
        (Some("application/json"), b"\x00\x01\x02\x03\xff\xfe", Kind::Binary),
        (None, "grüße".as_bytes(), Kind::Text),
    ] {
        assert_eq!(Kind::of(said, bytes), kind, "{said:?} {bytes:?}");
    }
}

#[test]
fn i09_json_keeps_its_digits_its_order_and_its_escapes() {
    let body = br#"{"z":1.10,"a":[],"n":123456789012345678901234567890,"e":1E+2,"o":{"z":{},"k":"\u00e9\/","b":[true,null,-0.0]}}"#;
    assert_eq!(
        shown(&of(body)),
        [
            "{",
            r#"  "z": 1.10,"#,
            r#"  "a": [],"#,
            r#"  "n": 123456789012345678901234567890,"#,
            r#"  "e": 1E+2,"#,
            r#"  "o": {"#,
            r#"    "z": {},"#,
            r#"    "k": "\u00e9\/","#,
            r#"    "b": ["#,
            "      true,",
            "      null,",
            "      -0.0",
            "    ]",
            "  }",
            "}",
        ]
    );
    assert_eq!(of(body).remark, None);
}

#[test]
fn i09_what_is_no_json_is_shown_as_text_with_the_reason() {
    let view = of(b"{\"a\": 1,\n oops}");
    assert_eq!(shown(&view), ["{\"a\": 1,", " oops}"]);
    assert!(view.remark.unwrap().starts_with("not valid JSON: "));
    let deep = "[".repeat(100_000);
    assert!(of(deep.as_bytes()).remark.is_some());
}

#[test]
fn i09_xml_is_indented_and_nothing_in_it_is_resolved() {
    let body =
        b"<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\"> <!ENTITY y \"&x;&x;\">]>\n\
        <a b='1>2'><c>&x;</c><d/><e></e><f>one<g>two</g></f><![CDATA[<h>]]><!-- <i> --></a>";
    assert_eq!(
        shown(&of(body)),
        [
            "<?xml version=\"1.0\"?>",
            "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\"> <!ENTITY y \"&x;&x;\">]>",
            "<a b='1>2'>",
            "  <c>&x;</c>",
            "  <d/>",
            "  <e></e>",
            "  <f>",
            "    one",
            "    <g>two</g>",
            "  </f>",
            "  <![CDATA[<h>]]>",
            "  <!-- <i> -->",
            "</a>",
        ]
    );
}

#[test]
fn i09_what_is_no_xml_is_shown_as_text_with_the_reason() {
    for body in ["<a><b></a>", "<a>", "</a>", "<a", "<!-- never", "<a b='>", "<html><br></html>"] {
        let view = of(body.as_bytes());
        assert_eq!(shown(&view), [body], "{body}");
        assert!(view.remark.unwrap().starts_with("not well-formed XML: "), "{body}");
    }
}

#[test]
fn i09_hl7_shows_segments_fields_and_components_by_name() {
    let body = b"\x0bMSH|^~\\&|ADT|HOSP|||20260312||ADT^A01|4711|P|2.5\rPID|1||12345^^^MRN~678^^^SSN||Doe^Jane||19741225\rZZZ|x\r\x1c\r";
    assert_eq!(
        shown(&of(&body[1..])),
        [
            "MSH  Message header",
            "  MSH-1  Field separator  |",
            "  MSH-2  Encoding characters  ^~\\&",
            "  MSH-3  Sending application  ADT",
            "  MSH-4  Sending facility  HOSP",
            "  MSH-7  Date and time of message  20260312",
            "  MSH-9  Message type",
            "    MSH-9.1  ADT",
            "    MSH-9.2  A01",
            "  MSH-10  Message control id  4711",
            "  MSH-11  Processing id  P",
            "  MSH-12  Version id  2.5",
            "PID  Patient identification",
            "  PID-1  Set id  1",
            "  PID-3[1]  Patient identifier list",
            "    PID-3[1].1  12345",
            "    PID-3[1].4  MRN",
            "  PID-3[2]  Patient identifier list",
            "    PID-3[2].1  678",
            "    PID-3[2].4  SSN",
            "  PID-5  Patient name",
            "    PID-5.1  Doe",
            "    PID-5.2  Jane",
            "  PID-7  Date of birth  19741225",
            "ZZZ",
            "  ZZZ-1  x",
        ]
    );
    assert_eq!(shown(&pretty(Kind::Hl7, body, SMALL)), shown(&of(&body[1..])), "with its frame");
}

#[test]
fn i09_hl7_in_latin_letters_is_read_as_it_says() {
    let of_set = |set: &str| {
        let mut body = format!("MSH|^~\\&|A|B|C|D|1||ADT|1|P|2.5||||||{set}\rPID|||||").into_bytes();
        body.push(0xfc);
        shown(&pretty(Kind::Hl7, &body, SMALL)).pop().unwrap()
    };
    assert!(of_set("8859/1").ends_with("  ü"));
    assert!(of_set("UNICODE UTF-8").ends_with("  \\xFC"));
}

#[test]
fn i09_forms_and_bytes_have_lines_of_their_own() {
    assert_eq!(
        shown(&pretty(Kind::Form, b"a=1+2&b%3D=%3Cx%3E&c&&d=%ff", SMALL)),
        ["a = 1 2", "b= = <x>", "c = ", "d = \\xFF"]
    );
    let view = of(b"\x00\x01AB \xff\xfe\x00\x00\x00\x00\x00\x00\x00\x00\x00Z");
    assert_eq!(
        shown(&view),
        [
            "00000000  00 01 41 42 20 ff fe 00  00 00 00 00 00 00 00 00  ..AB ...........",
            "00000010  5a                                                Z",
        ]
    );
}

#[test]
fn i09_what_cannot_be_seen_is_made_visible() {
    let view = of("a\u{202e}b\u{0}c\u{200b}d\u{feff}\te\u{7f}".as_bytes());
    assert_eq!(shown(&view), ["aU+202Eb\\x00cU+200BdU+FEFF\te\\x7F"]);
    let hidden: Vec<&str> =
        view.lines[0].pieces.iter().filter(|piece| piece.class == Class::Hidden).map(|piece| &*piece.text).collect();
    assert_eq!(hidden, ["U+202E", "\\x00", "U+200B", "U+FEFF", "\\x7F"]);
    assert_eq!(shown(&raw(Kind::Text, b"gr\xfc\xdfe", SMALL)), ["gr\\xFC\\xDFe"]);
}

#[test]
fn i09_markup_stays_text() {
    let body = b"{\"x\":\"<script>alert(1)</script>\"}";
    assert_eq!(shown(&of(body))[1].trim(), r#""x": "<script>alert(1)</script>""#);
}

#[test]
fn i09_long_lines_and_many_lines_are_cut_and_say_so() {
    let long = vec![b'x'; 10 << 20];
    let view = of(&long);
    assert_eq!((view.lines.len(), view.lines[0].text().len(), view.is_cut), (1, 100, false));
    assert_eq!(view.lines[0].left_out, (10 << 20) - 100);
    let many = b"line\n".repeat(100_000);
    let view = of(&many);
    assert_eq!((view.lines.len(), view.is_cut), (50, true));
    let just = b"line\r\n".repeat(50);
    assert!(!of(&just).is_cut);
    let array = format!("[{}]", vec!["1"; 100_000].join(","));
    let view = of(array.as_bytes());
    assert_eq!((view.lines.len(), view.is_cut, view.remark), (50, true, None));
    let elements = format!("<a>{}</a>", "<b>1</b>".repeat(100_000));
    let view = of(elements.as_bytes());
    assert_eq!((view.lines.len(), view.is_cut, view.remark), (50, true, None));
}

fn all_kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![Kind::Empty, Kind::Json, Kind::Xml, Kind::Hl7, Kind::Form, Kind::Text, Kind::Binary])
}

/// What a body is made of here: what the readers look for, and whatever else there is.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "<",
        ">",
        "</",
        "/>",
        "<!",
        "-->",
        "<![CDATA[",
        "]]>",
        "\"",
        "'",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\\",
        "MSH|^~\\&|",
        "|",
        "^",
        "~",
        "\r",
        "\n",
        "&",
        "=",
        "%",
        "%f",
        "a",
        "1",
        "true",
        " ",
        "\u{202e}",
        "\u{0}",
        "ü",
        "\u{10ffff}",
    ]);
    let bytes =
        prop_oneof![9 => word.prop_map(|word| word.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 1..4)];
    prop::collection::vec(bytes, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn i09_whatever_a_body_is_a_bounded_number_of_bounded_lines_comes_out(kind in all_kinds(), body in body()) {
        for view in [pretty(kind, &body, SMALL), raw(kind, &body, SMALL), pretty(Kind::of(None, &body), &body, SMALL)] {
            prop_assert!(view.lines.len() <= SMALL.lines_max);
            for line in &view.lines {
                prop_assert!(line.depth <= Limits::DEPTH_MAX);
                for piece in &line.pieces {
                    for letter in piece.text.chars() {
                        prop_assert!(letter == '\t' || !letter.is_control(), "{letter:?}");
                        prop_assert!(!('\u{202a}'..='\u{202e}').contains(&letter) && letter < '\u{e0000}', "{letter:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn i09_pretty_json_is_the_same_json(value in json_value()) {
        let text = value.to_string();
        let view = pretty(Kind::Json, text.as_bytes(), Limits { lines_max: 100_000, line_chars_max: 100_000 });
        prop_assert_eq!(view.remark, None);
        let all: String = view.lines.iter().map(Line::text).collect();
        prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&all).unwrap(), value);
    }
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[ -~äß]{0,12}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::btree_map("[a-z\"\\\\]{0,6}", inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}
