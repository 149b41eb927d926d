//! An interaction by its name, and the request of HTTP that it is (FHIR R4, section 3.1.0).
//!
//! Nothing is guessed: what an interaction needs and has not is refused, and so is what it has no use for. It must not know what a body holds
//! beside what its outline says.

use super::{below, is_id, is_type, outline};
use crate::connection::FhirTarget;
use crate::message::Method;
use crate::retry_after::RetryAfter;
use crate::setting::SettingError;

/// The names, in the order in which a refusal tells them. `$…` is an operation of the server.
pub const OPERATIONS: [&str; 13] = [
    "create",
    "save",
    "read",
    "vread",
    "update",
    "patch",
    "delete",
    "search",
    "history",
    "batch",
    "transaction",
    "capabilities",
    "page",
];

/// What a caller names beside headers and body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FhirCall {
    pub operation: String,
    /// GET or POST, where an interaction has both forms.
    pub method: Option<Method>,
    /// Where the body does not say it.
    pub resource_type: Option<String>,
    pub id: Option<String>,
    pub version_id: Option<String>,
    /// The link of a page.
    pub url: Option<String>,
    pub params: Vec<(String, String)>,
    pub if_none_exist: Option<String>,
    /// A version, or a tag of one.
    pub if_match: Option<String>,
    pub if_none_match: Option<String>,
    pub if_modified_since: Option<String>,
    /// What the answer is to hold: `minimal`, `representation` or `OperationOutcome`; or a whole `Prefer`.
    pub prefer: Option<String>,
}

/// The same as a request of HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FhirRequest {
    pub method: Method,
    /// Behind the connection's address.
    pub path: String,
    /// The query; or the body, as a form, where `is_form` says so.
    pub params: Vec<(String, String)>,
    pub headers: Vec<(&'static str, String)>,
    pub is_form: bool,
}

/// What one interaction makes of a call.
struct Takes {
    id: Use,
    version_id: Use,
    method: bool,
    url: bool,
    body: Use,
    if_none_exist: bool,
    if_match: bool,
    /// `If-None-Match`.
    if_none_match: bool,
    if_modified_since: bool,
    prefer: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Must,
    May,
    Not,
}

const NOTHING: Takes = Takes {
    id: Use::Not,
    version_id: Use::Not,
    method: false,
    url: false,
    body: Use::Not,
    if_none_exist: false,
    if_match: false,
    if_none_match: false,
    if_modified_since: false,
    prefer: false,
};

impl Takes {
    fn of(operation: &str) -> Option<Takes> {
        let reads = Takes { if_none_match: true, if_modified_since: true, ..NOTHING };
        Some(match operation {
            "create" => Takes { body: Use::Must, if_none_exist: true, prefer: true, ..NOTHING },
            "save" => Takes { body: Use::Must, if_none_exist: true, if_match: true, prefer: true, ..NOTHING },
            "read" => Takes { id: Use::Must, ..reads },
            "vread" => Takes { id: Use::Must, version_id: Use::Must, ..reads },
            "update" => {
                Takes { id: Use::May, body: Use::Must, if_match: true, if_none_match: true, prefer: true, ..NOTHING }
            }
            "patch" => Takes { id: Use::May, body: Use::Must, if_match: true, prefer: true, ..NOTHING },
            "delete" => Takes { id: Use::May, if_match: true, ..NOTHING },
            "search" => Takes { method: true, ..NOTHING },
            "history" => Takes { id: Use::May, ..NOTHING },
            "batch" | "transaction" => Takes { body: Use::Must, prefer: true, ..NOTHING },
            "capabilities" => NOTHING,
            "page" => Takes { url: true, ..NOTHING },
            name if name.starts_with('$') => {
                Takes { id: Use::May, method: true, body: Use::May, prefer: true, ..NOTHING }
            }
            _ => return None,
        })
    }
}

impl FhirCall {
    /// # Errors
    /// The field that is at fault, and what is allowed.
    pub fn request(&self, target: &FhirTarget, body: &[u8]) -> Result<FhirRequest, SettingError> {
        let operation = self.operation.as_str();
        let bad_name = operation.strip_prefix('$').is_some_and(|name| !is_operation_name(name));
        let takes = Takes::of(operation).filter(|_| !bad_name).ok_or_else(|| {
            let allowed = format!("{}, or an operation of the server such as $validate", OPERATIONS.join(", "));
            SettingError::new("operation", shown(operation), allowed)
        })?;
        self.refuse_useless(&takes, body)?;
        let mut request = self.address(target, body)?;
        request.headers = self.headers()?;
        Ok(request)
    }

    fn refuse_useless(&self, takes: &Takes, body: &[u8]) -> Result<(), SettingError> {
        let text = |text: &Option<String>| text.is_some();
        for (field, given, taken) in [
            ("id", text(&self.id), takes.id != Use::Not),
            ("version_id", text(&self.version_id), takes.version_id != Use::Not),
            ("url", text(&self.url), takes.url),
            ("method", self.method.is_some(), takes.method),
            ("params", !self.params.is_empty(), !takes.url),
            ("body", !body.is_empty(), takes.body != Use::Not),
            ("if_none_exist", text(&self.if_none_exist), takes.if_none_exist),
            ("if_match", text(&self.if_match), takes.if_match),
            ("if_none_match", text(&self.if_none_match), takes.if_none_match),
            ("if_modified_since", text(&self.if_modified_since), takes.if_modified_since),
            ("prefer", text(&self.prefer), takes.prefer),
        ] {
            if given && !taken {
                return Err(SettingError::new(
                    field,
                    "given",
                    format!("nothing here: {} has no use for it", self.operation),
                ));
            }
        }
        let missing = |field: &'static str, allowed: &str| Err(SettingError::new(field, "missing", allowed));
        if takes.body == Use::Must && body.is_empty() {
            return missing("body", "what is sent");
        }
        if takes.id == Use::Must && self.id.is_none() {
            return missing("id", "the id of the resource");
        }
        if takes.version_id == Use::Must && self.version_id.is_none() {
            return missing("version_id", "the id of the version");
        }
        Ok(())
    }

    fn address(&self, target: &FhirTarget, body: &[u8]) -> Result<FhirRequest, SettingError> {
        let with = |method: &str, path: String| {
            let method = method.parse().unwrap_or_default();
            Ok(FhirRequest { method, path, params: self.params.clone(), ..FhirRequest::default() })
        };
        match self.operation.as_str() {
            "create" => with("POST", format!("/{}", self.body_type(body)?)),
            "save" => match outline(body).id {
                None => with("POST", format!("/{}", self.body_type(body)?)),
                Some(id) => with("PUT", format!("/{}/{}", self.body_type(body)?, checked_id("body", id)?)),
            },
            "read" => with("GET", format!("/{}/{}", self.named_type()?, self.named_id()?)),
            "vread" => {
                let version = checked_id("version_id", self.version_id.clone().unwrap_or_default())?;
                with("GET", format!("/{}/{}/_history/{version}", self.named_type()?, self.named_id()?))
            }
            "update" => with("PUT", self.of_one(self.body_type(body)?, self.id_with(body)?)?),
            "patch" => with("PATCH", self.of_one(self.named_type()?, self.id.clone())?),
            "delete" => with("DELETE", self.of_one(self.named_type()?, self.id.clone())?),
            "search" => self.search(),
            "history" => with("GET", format!("{}/_history", self.of_any()?)),
            bundle @ ("batch" | "transaction") => {
                self.check_bundle(bundle, body)?;
                with("POST", String::new())
            }
            "capabilities" => with("GET", "/metadata".to_owned()),
            "page" => {
                let url = self.url.as_deref().unwrap_or_default();
                let path = below(target, url).map_err(|allowed| SettingError::new("url", shown(url), allowed))?;
                with("GET", path)
            }
            // `$…`, of the server, a type or a resource.
            operation => {
                let method = self.read_or_post("POST")?;
                if method == "GET" && !body.is_empty() {
                    return Err(SettingError::new("body", "given", "nothing here: a GET has its params in the query"));
                }
                with(method, format!("{}/{operation}", self.of_any()?))
            }
        }
    }

    /// By POST the params are no part of the address, which proxies and logs keep.
    fn search(&self) -> Result<FhirRequest, SettingError> {
        let of_type = match &self.resource_type {
            Some(_) => format!("/{}", self.named_type()?),
            None => String::new(),
        };
        let params = self.params.clone();
        if self.read_or_post("GET")? == "POST" {
            let path = format!("{of_type}/_search");
            return Ok(FhirRequest { path, params, is_form: true, ..FhirRequest::default() });
        }
        Ok(FhirRequest { method: Method::GET, path: of_type, params, ..FhirRequest::default() })
    }

    fn read_or_post(&self, standard: &'static str) -> Result<&'static str, SettingError> {
        match self.method.as_ref().map(Method::as_str) {
            None => Ok(standard),
            Some("GET") => Ok("GET"),
            Some("POST") => Ok("POST"),
            Some(other) => Err(SettingError::new("method", other, "GET or POST: this interaction has no other")),
        }
    }

    /// By its id, or by a search that names exactly one.
    fn of_one(&self, kind: String, id: Option<String>) -> Result<String, SettingError> {
        match id {
            Some(id) => Ok(format!("/{kind}/{}", checked_id("id", id)?)),
            None if self.params.is_empty() => {
                let allowed = "the id of the resource, or `params` that find it";
                Err(SettingError::new("id", "missing", allowed))
            }
            None => Ok(format!("/{kind}")),
        }
    }

    /// Nothing for the server, a type, or a resource.
    fn of_any(&self) -> Result<String, SettingError> {
        match (&self.resource_type, &self.id) {
            (None, None) => Ok(String::new()),
            (_, None) => Ok(format!("/{}", self.named_type()?)),
            (_, Some(_)) => Ok(format!("/{}/{}", self.named_type()?, self.named_id()?)),
        }
    }

    fn named_type(&self) -> Result<String, SettingError> {
        let named = self.resource_type.as_deref().unwrap_or_default();
        if is_type(named) {
            return Ok(named.to_owned());
        }
        let given = if named.is_empty() { "missing".to_owned() } else { shown(named) };
        Err(SettingError::new("resource_type", given, "the name of a resource such as `Patient`"))
    }

    /// What is given and what the body says have to be the same.
    fn body_type(&self, body: &[u8]) -> Result<String, SettingError> {
        match (&self.resource_type, outline(body).resource_type) {
            (Some(named), Some(said)) if *named != said => {
                let allowed = format!("`{}`, which the body says it is", shown(&said));
                Err(SettingError::new("resource_type", shown(named), allowed))
            }
            (Some(_), _) => self.named_type(),
            (None, Some(said)) if is_type(&said) => Ok(said),
            (None, Some(said)) => Err(SettingError::new(
                "body",
                shown(&said),
                "a resource whose `resourceType` is a name such as `Patient`",
            )),
            (None, None) => {
                let allowed = "the name of the resource, where the body is no JSON with a `resourceType`";
                Err(SettingError::new("resource_type", "missing", allowed))
            }
        }
    }

    fn named_id(&self) -> Result<String, SettingError> {
        checked_id("id", self.id.clone().unwrap_or_default())
    }

    /// With `params` and nothing named, the server finds the resource by them, whatever id the body has.
    fn id_with(&self, body: &[u8]) -> Result<Option<String>, SettingError> {
        match (&self.id, outline(body).id) {
            (Some(named), Some(said)) if *named != said => {
                let allowed = format!("`{}`, which the body says it has", shown(&said));
                Err(SettingError::new("id", shown(named), allowed))
            }
            (Some(named), _) => Ok(Some(named.clone())),
            (None, said) => Ok(said.filter(|_| self.params.is_empty())),
        }
    }

    fn check_bundle(&self, wanted: &str, body: &[u8]) -> Result<(), SettingError> {
        if self.resource_type.is_some() {
            return Err(SettingError::new(
                "resource_type",
                "given",
                "nothing here: a bundle goes to the server itself",
            ));
        }
        let said = outline(body);
        // XML does not tell without being read; the server will.
        let is_json = said.resource_type.is_some() || body.first() != Some(&b'<');
        let fits = said.resource_type.as_deref() == Some("Bundle") && said.kind.as_deref() == Some(wanted);
        if is_json && !fits {
            let given = match (said.resource_type.as_deref(), said.kind.as_deref()) {
                (Some("Bundle"), Some(kind)) => format!("a bundle of type {}", shown(kind)),
                (Some(kind), _) => shown(kind),
                (None, _) => "something else".to_owned(),
            };
            return Err(SettingError::new("body", given, format!("a Bundle of type `{wanted}`")));
        }
        Ok(())
    }

    fn headers(&self) -> Result<Vec<(&'static str, String)>, SettingError> {
        let mut headers = Vec::new();
        if let Some(search) = &self.if_none_exist {
            // The query alone; some write the address too.
            let query = search.split_once('?').map_or(search.as_str(), |(_, query)| query);
            headers.push((
                "If-None-Exist",
                checked("if_none_exist", query, "the params of a search such as `identifier=a|1`")?,
            ));
        }
        for (field, name, given) in
            [("if_match", "If-Match", &self.if_match), ("if_none_match", "If-None-Match", &self.if_none_match)]
        {
            if let Some(version) = given {
                headers.push((name, tag(checked(field, version, "the id of a version, such as `3`")?)));
            }
        }
        if let Some(date) = &self.if_modified_since {
            let allowed = "a date of HTTP such as `Sun, 06 Nov 1994 08:49:37 GMT`";
            // RFC 9110, section 13.1.3: a server ignores what it cannot read, and would send all of it as if nothing had been asked.
            if !matches!(RetryAfter::parse(date), Some(RetryAfter::Date(_))) {
                return Err(SettingError::new("if_modified_since", shown(date), allowed));
            }
            headers.push(("If-Modified-Since", checked("if_modified_since", date, allowed)?));
        }
        if let Some(prefer) = &self.prefer {
            let words = ["minimal", "representation", "OperationOutcome"];
            let whole = if words.contains(&prefer.as_str()) { format!("return={prefer}") } else { prefer.clone() };
            let allowed = format!("one of {}, or what the header Prefer is to say", words.join(", "));
            headers.push(("Prefer", checked("prefer", &whole, &allowed)?));
        }
        Ok(headers)
    }
}

/// `3` becomes `W/"3"`; what is a tag already, or `*`, stays.
fn tag(version: String) -> String {
    if version == "*" || version.contains('"') { version } else { format!("W/\"{version}\"") }
}

fn checked(field: &'static str, text: &str, allowed: &str) -> Result<String, SettingError> {
    let fits = (1..=2048).contains(&text.len()) && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    if fits && text.trim() == text {
        return Ok(text.to_owned());
    }
    Err(SettingError::new(field, shown(text), format!("{allowed}, in visible ASCII characters")))
}

fn checked_id(field: &'static str, id: String) -> Result<String, SettingError> {
    if is_id(&id) {
        return Ok(id);
    }
    let given = if id.is_empty() { "missing".to_owned() } else { shown(&id) };
    Err(SettingError::new(field, given, "an id of 1 to 64 letters, digits, `-` and dots"))
}

fn is_operation_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn shown(text: &str) -> String {
    text.chars().take(80).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests;
