//! A run of a service: the stored request as it arrived, with what the server knows about it in headers of its own (Z41, D42).
//!
//! It must not know which channel is run when, nor what an answer leads to.

use std::fmt::Write as _;
use std::sync::Arc;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Uri};
use http_body_util::Full;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use postrider_core::connection::{Connection, DataFormat, QUEUE_RESPONSE_HOOK, Target};
use postrider_core::message::{HeaderList, is_ours};
use postrider_core::{Secret, SettingError, verdict};

use super::Outgoing;
use super::link::OutgoingRequest;
use super::request::{Unsendable, continue_trace, hop_names, is_of_one_hop, text_value};
use super::route::Route;

/// What a request that a channel accepted was let in for: the name of the security definition. Written by us alone.
pub const AUTHENTICATED: &str = "x-postrider-authenticated";
/// The source that a webhook came in at, whether its signature was verified, and its query. Written by us alone as well.
pub const SOURCE: &str = "x-postrider-source";
pub const VERIFIED: &str = "x-postrider-verified";
pub const QUERY: &str = "x-postrider-query";
/// What intake writes and a service is to see; all else of ours is written anew for each run.
const OF_INTAKE: [&str; 4] = [AUTHENTICATED, SOURCE, VERIFIED, QUERY];

const CID: HeaderName = HeaderName::from_static("x-postrider-cid");
const MSG_ID: HeaderName = HeaderName::from_static("x-postrider-msg-id");
const ATTEMPT: HeaderName = HeaderName::from_static("x-postrider-attempt");
const CHANNEL: HeaderName = HeaderName::from_static("x-postrider-channel");
const PROJECT: HeaderName = HeaderName::from_static("x-postrider-project");
const PATH_PARAMS: HeaderName = HeaderName::from_static("x-postrider-path-params");
const DATA_FORMAT: HeaderName = HeaderName::from_static("x-postrider-data-format");
const METHOD: HeaderName = HeaderName::from_static("x-postrider-method");
const HOOK: HeaderName = HeaderName::from_static("x-postrider-hook");
const TOKEN: HeaderName = HeaderName::from_static("x-postrider-token");

/// All but the unreserved characters of RFC 3986, section 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where a request is run, and what for.
#[derive(Clone, Debug)]
pub struct ServiceRun {
    /// The service, of kind service.
    pub at: Arc<Connection>,
    pub project: String,
    pub ask: Ask,
    /// Whether the request is stored; else it has no id that anybody could look for.
    pub is_stored: bool,
    /// What opens a host that this process started.
    pub token: Option<Secret>,
}

/// What a service is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Run,
    /// To write the acknowledgment (Z44).
    QueueResponse,
    /// Its host, which services it has; the path is that of the list.
    Announce,
}

impl ServiceRun {
    pub(super) const fn is_beside_runs(&self) -> bool {
        matches!(self.ask, Ask::QueueResponse | Ask::Announce)
    }
}

/// Our own words in a host's answer are for the server and not for the caller.
pub fn without_ours(headers: &HeaderList) -> HeaderList {
    let pairs = headers.iter().filter(|(name, _)| !is_ours(name));
    let pairs: Vec<(String, String)> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    HeaderList::try_from(pairs).unwrap_or_default()
}

/// Whether the answer says that the code came to its end, or failed; else it is the host's own, or a server's that knows nothing of us.
pub fn is_of_the_code(headers: &HeaderList) -> bool {
    headers.get(verdict::RUN_HEADER).is_some()
}

/// # Errors
/// What no request over HTTP can have.
pub(super) fn check(head: &postrider_core::message::RequestHead) -> Result<(), SettingError> {
    let allowed = "a path with its query that an address can have, at most 65,534 bytes";
    Uri::try_from(if head.path.is_empty() { "/" } else { &head.path })
        .map(drop)
        .map_err(|_| SettingError::new("path", &head.path, allowed))
}

pub(super) fn build(route: &Route, run: &ServiceRun, outgoing: &Outgoing) -> Result<OutgoingRequest, Unsendable> {
    let Target::Service(service) = &run.at.spec.target else { return Err(Unsendable::Kind) };
    let head = &outgoing.head;
    let base = match run.ask {
        Ask::Announce => "",
        Ask::Run | Ask::QueueResponse => service.url.target().trim_end_matches('/'),
    };
    let target = format!("{base}{}", head.path);
    let mut request = Request::new(Full::new(outgoing.body.clone()));
    let target = if target.is_empty() { "/".to_owned() } else { target };
    *request.uri_mut() = Uri::try_from(target).map_err(|_| Unsendable::Address)?;
    *request.method_mut() = match run.ask {
        Ask::QueueResponse => Method::POST,
        Ask::Run | Ask::Announce => super::request::method(head.method.as_str())?,
    };
    *request.headers_mut() = headers(route, run, outgoing)?;
    Ok(request)
}

fn headers(route: &Route, run: &ServiceRun, outgoing: &Outgoing) -> Result<HeaderMap, Unsendable> {
    let head = &outgoing.head;
    let mut map = HeaderMap::with_capacity(head.headers.len() + 12);
    let named_as_hop = head.headers.get("connection").map(|_| hop_names(outgoing));
    for (name, value) in head.headers.iter() {
        let unsendable = || Unsendable::Header(name.to_owned());
        let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable())?;
        let of_ours = is_ours(field.as_str()) && !OF_INTAKE.contains(&field.as_str());
        if of_ours || is_of_one_hop(&field) || named_as_hop.as_ref().is_some_and(|hops| hops.contains(&field)) {
            continue;
        }
        map.append(field, HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unsendable())?);
    }
    map.insert(HOST, route.origin.host_header.clone());
    map.insert(CONTENT_LENGTH, HeaderValue::from(outgoing.body.len()));
    map.insert(CID, HeaderValue::from_str(outgoing.cid.as_str()).map_err(|_| Unsendable::Header(CID.to_string()))?);
    map.insert(ATTEMPT, HeaderValue::from(outgoing.attempt.max(1)));
    map.insert(PROJECT, text_value(encoded(&run.project), &PROJECT)?);
    if run.is_stored {
        map.insert(MSG_ID, text_value(outgoing.delivery_id.to_string(), &MSG_ID)?);
    }
    if run.ask == Ask::QueueResponse {
        map.insert(HOOK, HeaderValue::from_static(QUEUE_RESPONSE_HOOK));
        map.insert(METHOD, text_value(head.method.to_string(), &METHOD)?);
    }
    if let Some(token) = &run.token {
        let mut token = text_value(token.expose().to_owned(), &TOKEN)?;
        token.set_sensitive(true);
        map.insert(TOKEN, token);
    }
    of_channel(&mut map, outgoing)?;
    continue_trace(&mut map, outgoing)?;
    Ok(map)
}

fn of_channel(map: &mut HeaderMap, outgoing: &Outgoing) -> Result<(), Unsendable> {
    let Target::Channel(channel) = &outgoing.connection.spec.target else {
        // A message of a topic: it has no content type of its own unless its publisher gave one.
        map.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        return Ok(());
    };
    map.insert(CHANNEL, text_value(encoded(&outgoing.connection.name), &CHANNEL)?);
    if !outgoing.head.params.is_empty() {
        map.insert(PATH_PARAMS, text_value(form(&outgoing.head.params), &PATH_PARAMS)?);
    }
    let format = match channel.data_format {
        DataFormat::Json | DataFormat::Fhir => "json",
        DataFormat::Form => "form",
        DataFormat::Xml | DataFormat::Soap => "xml",
        DataFormat::Text | DataFormat::Hl7 => "text",
    };
    map.insert(DATA_FORMAT, HeaderValue::from_static(format));
    Ok(())
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

fn form(pairs: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        let between = if text.is_empty() { "" } else { "&" };
        let (name, value) = (utf8_percent_encode(name, RESERVED), utf8_percent_encode(value, RESERVED));
        let _ = write!(text, "{between}{name}={value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z41_what_placeholders_stood_for_is_form_encoded() {
        let pairs = [("id", "17"), ("name", "a b&c=d/ü")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(form(&pairs), "id=17&name=a%20b%26c%3Dd%2F%C3%BC");
    }

    #[test]
    fn our_words_are_not_passed_on() {
        let pairs = [("X-Postrider-Run", "ok"), ("x-postrider-error", "KeyError"), ("X-Lab", "1")];
        let pairs: Vec<_> = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let headers = HeaderList::try_from(pairs).unwrap();
        assert!(is_of_the_code(&headers));
        assert_eq!(without_ours(&headers).iter().collect::<Vec<_>>(), [("X-Lab", "1")]);
    }
}
