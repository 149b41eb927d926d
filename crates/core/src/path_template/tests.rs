//! Templates and what fills them.

use percent_encoding::percent_decode_str;
use proptest::prelude::*;

use super::*;

fn template(text: &str) -> PathTemplate {
    PathTemplate::parse(text).unwrap()
}

fn params(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn fill(text: &str, pairs: &[(&str, &str)], extra: &str) -> Result<String, FillError> {
    template(text).fill(&params(pairs), extra)
}

#[test]
fn placeholders_are_filled_and_the_rest_is_the_query() {
    type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str, &'static str);
    let cases: &[Case] = &[
        ("", &[], "", "/"),
        ("/", &[], "", "/"),
        ("/a", &[], "", "/a"),
        ("/a/", &[], "", "/a/"),
        ("/v2/claims/{id}", &[("id", "7")], "", "/v2/claims/7"),
        ("/v2/claims/{id}", &[("id", "a/b c?d#e%")], "", "/v2/claims/a%2Fb%20c%3Fd%23e%25"),
        ("/{a}-{b}.json", &[("b", "2"), ("a", "1")], "", "/1-2.json"),
        ("/a", &[("z", "1"), ("y", "ä &=+")], "", "/a?z=1&y=%C3%A4%20%26%3D%2B"),
        ("/{id}", &[("q", "x"), ("id", "1"), ("id", "2")], "", "/1?q=x&id=2"),
        ("", &[("q", "")], "", "/?q="),
        ("/{a}", &[("a", "~-._")], "", "/~-._"),
        ("/a", &[], "b", "/a/b"),
        ("/a/", &[], "/b/", "/a/b/"),
        ("/a//", &[], "//b", "/a/b"),
        ("", &[], "b/c", "/b/c"),
        ("/a", &[], "/", "/a/"),
        ("/a", &[], "?x=1", "/a?x=1"),
        ("/a", &[("y", "2")], "b?x=1", "/a/b?x=1&y=2"),
        ("/a", &[("y", "2")], "b?x=1&", "/a/b?x=1&y=2"),
        ("/a", &[], "b?f[x]=1&r=?/", "/a/b?f[x]=1&r=?/"),
        ("/a", &[], "b%20c/d:e", "/a/b%20c/d:e"),
    ];
    for (text, given, extra, path) in cases {
        assert_eq!(fill(text, given, extra).as_deref(), Ok(*path), "{text} {extra}");
    }
}

#[test]
fn what_no_address_can_hold_is_an_error() {
    // "/a?q=" has five bytes.
    assert!(fill("/a", &[("q", &"x".repeat(65_529))], "").is_ok());
    assert_eq!(fill("/a", &[("q", &"x".repeat(65_530))], ""), Err(FillError::TargetTooLong { bytes: 65_535 }));
}

#[test]
fn a_placeholder_without_a_value_is_an_error() {
    assert_eq!(fill("/a/{id}", &[], ""), Err(FillError::Missing { name: "id".to_owned() }));
    assert_eq!(fill("/a/{id}", &[("ID", "1")], ""), Err(FillError::Missing { name: "id".to_owned() }));
    assert_eq!(fill("/a/{id}/b", &[("id", "")], ""), Err(FillError::Empty { name: "id".to_owned() }));
    assert_eq!(fill("/a/x{id}", &[("id", "")], "").as_deref(), Ok("/a/x"));
    let message = fill("/a/{id}", &[], "").unwrap_err().to_string();
    assert_eq!(message, "the path needs `id`: no such param was given");
}

#[test]
fn no_value_leads_out_of_the_path() {
    for value in [".", ".."] {
        let refused = fill("/a/{id}/b", &[("id", value)], "");
        assert_eq!(refused, Err(FillError::DotSegment { segment: value.to_owned() }));
    }
    assert!(fill("/a/{x}{y}", &[("x", "."), ("y", ".")], "").is_err(), "two values together");
    assert_eq!(fill("/a/{id}", &[("id", "../../b")], "").as_deref(), Ok("/a/..%2F..%2Fb"));
    assert_eq!(fill("/a/{id}", &[("id", "...")], "").as_deref(), Ok("/a/..."));
    assert_eq!(fill("/a/{id}", &[("id", "%2e%2e")], "").as_deref(), Ok("/a/%252e%252e"));
}

#[test]
fn no_path_of_a_request_leads_out_either() {
    for extra in ["..", "../b", "b/..", "b/../c", "/..", "%2e%2e/b", ".%2E", "..%2fb", "x%5C..%5cb", ".", "b/./c"] {
        assert!(matches!(fill("/a", &[], extra), Err(FillError::DotSegment { .. })), "{extra}");
    }
    for (extra, found) in [("b c", ' '), ("b\r\nX: y", '\r'), ("b#c", '#'), ("b\\c", '\\'), ("ä", 'ä'), ("b?c d", ' ')]
    {
        assert_eq!(fill("/a", &[], extra), Err(FillError::BadCharacter { found }), "{extra:?}");
    }
    assert_eq!(fill("/a", &[], "b?x=\0"), Err(FillError::BadCharacter { found: '\0' }));
    assert_eq!(fill("/a", &[], "%zz"), Err(FillError::BadEscape));
    assert_eq!(fill("/a", &[], &"x".repeat(4097)), Err(FillError::TooLong { bytes: 4097 }));
    assert_eq!(fill("/a", &[], "...").as_deref(), Ok("/a/..."));
}

#[test]
fn texts_that_are_no_template_are_refused() {
    use TemplateError as E;
    let cases = [
        ("a", E::NoSlash),
        ("{id}", E::NoSlash),
        ("/{", E::UnbalancedBraces),
        ("/}", E::UnbalancedBraces),
        ("/{a", E::UnbalancedBraces),
        ("/a}", E::UnbalancedBraces),
        ("/{{a}}", E::UnbalancedBraces),
        ("/{a{b}}", E::UnbalancedBraces),
        ("/{}", E::BadPlaceholder { name: String::new() }),
        ("/{a b}", E::BadPlaceholder { name: "a b".to_owned() }),
        ("/{a/b}", E::BadPlaceholder { name: "a/b".to_owned() }),
        ("/{a}/{a}", E::Twice { name: "a".to_owned() }),
        ("/a?b", E::BadCharacter { found: '?' }),
        ("/a#b", E::BadCharacter { found: '#' }),
        ("/a b", E::BadCharacter { found: ' ' }),
        ("/a\n", E::BadCharacter { found: '\n' }),
        ("/ä", E::BadCharacter { found: 'ä' }),
        ("/%2", E::BadEscape),
        ("/a/../b", E::DotSegment { segment: "..".to_owned() }),
        ("/%2e%2E", E::DotSegment { segment: "%2e%2E".to_owned() }),
    ];
    for (text, error) in cases {
        assert_eq!(PathTemplate::parse(text), Err(error), "{text:?}");
    }
    assert_eq!(PathTemplate::parse(&format!("/{}", "x".repeat(4096))), Err(E::TooLong { bytes: 4097 }));
    let message = PathTemplate::parse("/{}").unwrap_err().to_string();
    assert_eq!(message, "`{}` is no placeholder: its name has 1 to 64 letters, digits, `_`, `-` or dots");
}

#[test]
fn a_template_is_stored_as_it_was_written_and_checked_when_read() {
    let stored = serde_json::to_string(&template("/a/{id}")).unwrap();
    assert_eq!(stored, "\"/a/{id}\"");
    assert_eq!(serde_json::from_str::<PathTemplate>(&stored).unwrap(), template("/a/{id}"));
    assert!(serde_json::from_str::<PathTemplate>("\"/a/{\"").is_err());
    assert_eq!(template("/{b}/{a}").placeholders().collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!(template(""), PathTemplate::default());
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

proptest! {
    #[test]
    fn values_never_change_the_number_of_segments_and_decode_to_themselves(a: String, b in "[./%{}\\\\a?#]{0,6}", c: String) {
        let given = params(&[("a", &a), ("b", &b), ("c", &c)]);
        match template("/x/{a}/{b}/y-{c}").fill(&given, "") {
            Ok(path) => {
                let clean = path.bytes().all(|byte| byte.is_ascii_graphic()) && !path.contains(['?', '#', '{', '\\']);
                prop_assert!(clean, "{path}");
                let segments: Vec<&str> = path.split('/').collect();
                prop_assert_eq!(segments.len(), 5);
                prop_assert_eq!([segments[0], segments[1]], ["", "x"]);
                prop_assert_eq!([decoded(segments[2]), decoded(segments[3]), decoded(segments[4])], [a, b, format!("y-{c}")]);
            }
            Err(FillError::Empty { .. }) => prop_assert!(a.is_empty() || b.is_empty()),
            Err(FillError::DotSegment { .. }) => {
                prop_assert!([".", ".."].contains(&a.as_str()) || [".", ".."].contains(&b.as_str()));
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn params_left_over_read_back_in_their_order(pairs in prop::collection::vec((any::<String>(), any::<String>()), 1..6)) {
        let path = template("/x").fill(&pairs, "").unwrap();
        let query = path.strip_prefix("/x?").unwrap();
        let read: Vec<(String, String)> = query
            .split('&')
            .map(|pair| pair.split_once('=').map(|(name, value)| (decoded(name), decoded(value))).unwrap())
            .collect();
        prop_assert_eq!(read, pairs);
    }

    #[test]
    fn any_path_of_a_request_stays_below_the_templates(extra in "[a./%25eEfF?#\\\\ -]{0,12}") {
        if let Ok(path) = template("/x/y").fill(&[], &extra) {
            let (path, _) = path.split_once('?').unwrap_or((&path, ""));
            prop_assert!(path == "/x/y" || path.starts_with("/x/y/"));
            prop_assert!(!decoded_bytes(path).split(|b| *b == b'/').any(|s| s == b".."));
        }
    }

    #[test]
    fn any_text_is_a_template_or_refused(text in "[/a{}.%2?# \\PC]{0,12}") {
        if let Ok(read) = PathTemplate::parse(&text) {
            prop_assert_eq!(read.as_str(), text.as_str());
            let given: Vec<(String, String)> = read.placeholders().map(|name| (name.to_owned(), "v".to_owned())).collect();
            let path = read.fill(&given, "").unwrap();
            prop_assert_eq!(path.split('/').count(), text.split('/').count().max(2));
        }
    }
}

fn decoded_bytes(text: &str) -> Vec<u8> {
    percent_decode_str(text).collect()
}
