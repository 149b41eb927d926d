//! XML as it comes, well-formed and not.

use super::*;

fn error(text: &str) -> XmlError {
    read(text).error.unwrap()
}

#[test]
fn names_texts_and_attributes_come_out_resolved() {
    let text = "\u{feff}<?xml version=\"1.0\"?>\n<!-- x --><s:a xmlns:s='urn:s' xmlns='urn:d' k='1 &amp; 2'>\
                t<b s:k='&#x41;'/> &lt;<![CDATA[<&]]>&gt; <s:c xmlns:s=''/></s:a>\n";
    let document = read(text.replace("<s:c xmlns:s=''/>", "<s:c xmlns:s='urn:t'/>").as_str());
    assert_eq!(document.error, None);
    let root = document.root().unwrap();
    assert!(root.is("urn:s", "a"));
    assert_eq!(root.text(), "t <<&> ", "entities and CDATA between texts make one text");
    assert_eq!(root.attribute("", "k"), Some("1 & 2"));
    let names: Vec<_> = root.children().map(|child| (child.namespace(), child.local())).collect();
    assert_eq!(names, [("urn:d", "b"), ("urn:t", "c")]);
    let b = root.children().next().unwrap();
    assert_eq!(b.attribute("urn:s", "k"), Some("A"));
    assert_eq!((b.resolve("s"), b.resolve(""), b.resolve("x")), (Some("urn:s"), Some("urn:d"), None));
}

#[test]
fn a_document_type_is_refused_and_nothing_of_it_is_taken() {
    let bomb = "<!DOCTYPE a [<!ENTITY x \"xxxx\"><!ENTITY y \"&x;&x;\">]><a>&y;</a>";
    for text in [bomb, "<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>", "<a><!DOCTYPE b></a>"] {
        let document = read(text);
        assert!(matches!(document.error, Some(XmlError::DocumentType | XmlError::Malformed(..))), "{text}");
        assert!(document.is_empty(), "{text}");
    }
    assert_eq!(error("<a>&y;</a>"), XmlError::Entity("y".to_owned()));
}

#[test]
fn everything_has_a_limit_with_a_name() {
    let deep = |levels: usize| format!("{}{}", "<a>".repeat(levels), "</a>".repeat(levels));
    assert_eq!(read(&deep(DEPTH_MAX)).error, None);
    assert_eq!(error(&deep(DEPTH_MAX + 1)), XmlError::TooDeep);
    let attributes = |n: usize| (0..n).map(|at| format!(" k{at}='1'")).collect::<String>();
    assert_eq!(read(&format!("<a{}/>", attributes(ATTRIBUTES_MAX))).error, None);
    assert_eq!(error(&format!("<a{}/>", attributes(ATTRIBUTES_MAX + 1))), XmlError::TooManyAttributes);
    assert_eq!(error(&format!("<{}/>", "a".repeat(NAME_BYTES_MAX + 1))), XmlError::LongName);
    assert_eq!(error(&format!("<a xmlns='{}'/>", "u".repeat(NAMESPACE_BYTES_MAX + 1))), XmlError::LongName);
    let declared = (0..200).map(|at| format!(" xmlns:p{at}='u'")).collect::<String>();
    let nested = format!("<a{declared}><a{declared}><a{declared}/></a></a>");
    assert_eq!(error(&nested), XmlError::TooManyDeclarations);
    let many = format!("<a>{}</a>", "<b/>".repeat(ELEMENTS_MAX));
    assert_eq!(error(&many), XmlError::TooManyElements);
}

#[test]
fn what_is_not_well_formed_gives_what_came_before_it() {
    for (text, elements) in [
        ("", 0),
        ("hello", 0),
        ("<a><b>1</b><c>", 3),
        ("<a><b>1</c></a>", 2),
        ("<a/><b/>", 1),
        ("<a/>x", 1),
        ("<a k='1' k='2'/>", 0),
        ("<p:a/>", 0),
        ("<a p:k='1'/>", 0),
        ("<a>&#0;</a>", 1),
        ("<a>&#xD800;</a>", 1),
        ("<a>&nbsp;</a>", 1),
        ("<a>\u{1}</a>", 1),
        ("<a><b", 1),
    ] {
        let document = read(text);
        assert!(document.error.is_some(), "{text}");
        assert_eq!(document.len(), elements, "{text}: {:?}", document.error);
    }
}

#[test]
fn what_is_escaped_comes_back() {
    let text = "a <b> & \"c\" 'd' \r\n\t ä € 𝄞";
    let mut out = String::from("<a k=\"");
    escape_into(&mut out, text);
    out.push_str("\">");
    escape_into(&mut out, text);
    out.push_str("</a>");
    let document = read(&out);
    let root = document.root().unwrap();
    assert_eq!((root.text().as_str(), root.attribute("", "k")), (text, Some(text)));
}

#[test]
fn names_are_those_of_xml() {
    for good in ["a", "_a", "Ä-1.b", "名前"] {
        assert!(is_name(good), "{good}");
    }
    for bad in ["", "1a", "-a", "a:b", "a b", "a>b", "a\"", "é\u{300}/"] {
        assert!(!is_name(bad), "{bad}");
    }
}
