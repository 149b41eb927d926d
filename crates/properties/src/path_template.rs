//! Path templates: whatever fills them, the path stays where its operator put it, and it is fit for a request line.

use postrider_core::path_template::PathTemplate;

/// The input is a template, a request's own path, and params on the lines after them: `name=value`.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let mut lines = text.split('\n');
    let template = crate::unescaped(lines.next().unwrap_or_default());
    let extra = crate::unescaped(lines.next().unwrap_or_default());
    let params: Vec<(String, String)> = lines
        .map(|line| line.split_once('=').unwrap_or((line, "")))
        .map(|(name, value)| (crate::unescaped(name), crate::unescaped(value)))
        .collect();
    let Ok(read) = PathTemplate::parse(&template) else { return };
    assert_eq!(read.as_str(), template);
    let Ok(filled) = read.fill(&params, &extra) else {
        a_refusal_has_a_cause(&template, &params, &extra);
        return;
    };
    fits_a_request_line(&filled);
    let (path, query) = filled.split_once('?').map_or((filled.as_str(), None), |(path, query)| (path, Some(query)));
    assert_eq!(without_dot_segments(path), path, "a server would take it for another path");
    keeps_its_segments(&template, &params, &extra, path);
    let names: Vec<String> = read.placeholders().map(str::to_owned).collect();
    query_holds_the_rest(&names, params, &extra, query.unwrap_or_default());
}

/// Nothing is refused that is whole: plain values for all placeholders, and no path of the request's own.
fn a_refusal_has_a_cause(template: &str, params: &[(String, String)], extra: &str) {
    let is_plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
    let names = template.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name);
    let mut all_plain = true;
    for name in names {
        all_plain &= params.iter().find(|(param, _)| param == name).is_some_and(|(_, value)| is_plain(value));
    }
    // Plain values can still complete a literal to a segment of dots' escape, such as `/%2{a}`: no template has a broken escape.
    assert!(!all_plain || !extra.is_empty(), "{template:?} with {params:?} was refused without a cause");
}

fn fits_a_request_line(filled: &str) {
    assert!(filled.starts_with('/'), "{filled:?}");
    assert!(filled.bytes().all(|byte| (0x21..=0x7e).contains(&byte) && byte != b'#'), "{filled:?}");
    assert!(filled.parse::<http::uri::PathAndQuery>().is_ok(), "{filled:?}");
    let uri: http::Uri =
        format!("http://host.example{filled}").parse().unwrap_or_else(|error| panic!("{filled}: {error}"));
    assert_eq!(uri.authority().map(http::uri::Authority::as_str), Some("host.example"), "{filled:?}");
}

/// Segment by segment what the template says, each decoding to the text with its values put in.
fn keeps_its_segments(template: &str, params: &[(String, String)], extra: &str, path: &str) {
    let extra_path = extra.split('?').next().unwrap_or_default();
    // With a path of the request's own, slashes at the end of the template fold into the one between the two.
    let kept = if extra_path.is_empty() { template } else { template.trim_end_matches('/') };
    let written: Vec<&str> = kept.split('/').collect();
    let segments: Vec<&str> = path.split('/').collect();
    if extra_path.is_empty() {
        assert_eq!(segments.len(), written.len().max(2), "{path:?} of {template:?}");
    } else {
        let behind: Vec<&str> = extra_path.trim_start_matches('/').split('/').collect();
        assert_eq!(&segments[written.len()..], behind.as_slice(), "{path:?} of {template:?} and {extra:?}");
    }
    for (segment, written) in segments.iter().zip(written) {
        let expected = with_values(written, params);
        assert_eq!(decoded(segment), expected, "{path:?} of {template:?}");
        assert!(!matches!(decoded(segment).as_slice(), b"." | b".."), "{path:?}");
    }
}

/// The bytes of a template's segment: escapes decoded outside of placeholders, values put in as they are.
fn with_values(written: &str, params: &[(String, String)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = written;
    while let Some((literal, from_name)) = rest.split_once('{') {
        let (name, after) = from_name.split_once('}').expect("braces are balanced in what was read");
        bytes.extend(decoded(literal));
        let value = params.iter().find(|(param, _)| param == name).map(|(_, value)| value.as_bytes());
        bytes.extend(value.expect("without its value it would have been refused"));
        rest = after;
    }
    bytes.extend(decoded(rest));
    bytes
}

fn query_holds_the_rest(names: &[String], mut params: Vec<(String, String)>, extra: &str, query: &str) {
    for name in names {
        let used = params.iter().position(|(param, _)| param == name).expect("it was filled");
        params.remove(used);
    }
    let own = extra.split_once('?').map_or("", |(_, query)| query);
    let rest = query.strip_prefix(own).unwrap_or_else(|| panic!("{query:?} does not begin with {own:?}"));
    let rest = if own.is_empty() || own.ends_with('&') { rest } else { rest.strip_prefix('&').unwrap_or(rest) };
    let read: Vec<(Vec<u8>, Vec<u8>)> = rest
        .split_terminator('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect();
    let expected: Vec<(Vec<u8>, Vec<u8>)> =
        params.into_iter().map(|(name, value)| (name.into_bytes(), value.into_bytes())).collect();
    assert_eq!(read, expected, "{query:?}");
}

/// RFC 3986, section 5.2.4, as a server would apply it once it has decoded escaped dots (section 6.2.2.2).
fn without_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match decoded(segment).as_slice() {
            b"." => {}
            b".." => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

fn decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match code.filter(|code| !code.contains('+')).and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded
}
