//! The document, put together from the table of routes: nothing in it is written twice.
//!
//! What follows from a route itself is added here: its path's parameters, the scopes that it needs, and the refusals that every such route has.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use postrider_core::access::ScopeSet;
use serde_json::{Map, Value, json};

use super::operation::{Answer, Content, Operation, Parameter, Place};
use super::path;
use super::schema::Components;
use super::shapes;
use super::tag::Tag;
use crate::routes::{Needs, PROJECT, Rules};

const ABOUT: &str = "\
Hand in a request for another system: it is stored first, delivered under its connection's policy, and kept where people can see, retry, edit, \
forward or discard it.

Every request but those for health and this description needs a key, as `Authorization: Bearer KEY` or `X-API-Key: KEY`; on the raw path only \
the latter, since `Authorization` belongs to the remote system there. Keys have scopes: `read`, `send`, `operate` (includes `read`), `admin` (includes all).

Errors are `application/problem+json`; `errors` names every field that was refused, and what is allowed. A method that a path does not have is \
answered 405 with `Allow`. An unknown field or parameter is refused, never passed over. Lists have pages: `next_cursor` is the `cursor` of the next one, \
and null at the end. Times are RFC 3339 in UTC. Ids sort by time.";

/// The document of these routes, OpenAPI 3.1.
pub fn document(rules: &Rules) -> Value {
    let mut components = Components::new();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut refusals: BTreeMap<u16, StatusCode> = BTreeMap::new();
    for (route, rule) in rules {
        let item = paths.entry(path::in_document(route)).or_default();
        let parameters = path::parameters(route, &mut components);
        if !parameters.is_empty() {
            item.insert("parameters".to_owned(), parameters.into());
        }
        for (method, needs, describe) in rule.described() {
            let operation = describe();
            let operation = if rule.answers_once(method) { operation.takes_idempotency_key() } else { operation };
            let statuses = statuses(&operation, route, needs);
            refusals.extend(statuses.iter().map(|status| (status.as_u16(), *status)));
            let id = if operation.is_raw { raw_id(&operation, route, method) } else { operation.id.to_owned() };
            let json = operation_json(&operation, id, needs, &statuses, &mut components);
            item.insert(method.as_str().to_ascii_lowercase(), json);
        }
    }
    let problem = shapes::problem().to_json(&mut components);
    let responses: Map<String, Value> =
        refusals.into_values().map(|status| (refusal_name(status), refusal(status, &problem))).collect();
    let tags = Tag::ALL.map(|tag| json!({"name": tag.name(), "description": tag.meaning()}));
    json!({
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://spec.openapis.org/oas/3.1/dialect/base",
        "info": {
            "title": "Postrider",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer KEY`"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "`X-API-Key: KEY`"},
            },
            "schemas": components,
            "responses": responses,
        },
    })
}

/// A raw path takes several methods and has three forms; each pair is an operation of its own.
fn raw_id(operation: &Operation, route: &str, method: &Method) -> String {
    let form = match route.rsplit_once('/').map(|(_, last)| last) {
        Some("") => "Root",
        Some("{*rest}") => "Path",
        _ => "",
    };
    let method = method.as_str();
    let (first, rest) = method.split_at(1);
    format!("{}{form}{first}{}", operation.id, rest.to_ascii_lowercase())
}

/// The refusals of an operation: those that follow from the route, and its own.
fn statuses(operation: &Operation, route: &str, needs: Needs) -> Vec<StatusCode> {
    let mut statuses = operation.refusals.clone();
    if !operation.takes_anything {
        statuses.push(StatusCode::BAD_REQUEST);
    }
    if needs != Needs::Nobody {
        statuses.extend([StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE]);
        if !needs.scopes().is_empty() || matches!(needs, Needs::Installation(_)) {
            statuses.push(StatusCode::FORBIDDEN);
        }
    }
    if route.starts_with(PROJECT) {
        statuses.push(StatusCode::NOT_FOUND);
    }
    if operation.body.is_some() {
        statuses.extend([
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            StatusCode::UNPROCESSABLE_ENTITY,
        ]);
    }
    statuses.sort();
    statuses.dedup();
    statuses
}

fn operation_json(
    operation: &Operation,
    id: String,
    needs: Needs,
    refusals: &[StatusCode],
    components: &mut Components,
) -> Value {
    let mut json = Map::new();
    json.insert("operationId".to_owned(), id.into());
    json.insert("tags".to_owned(), json!([operation.tag.name()]));
    json.insert("summary".to_owned(), operation.summary.into());
    let paragraphs = [operation.details.clone(), needed(needs)].into_iter().filter(|words| !words.is_empty());
    json.insert("description".to_owned(), paragraphs.collect::<Vec<_>>().join("\n\n").into());
    json.insert("security".to_owned(), security(needs, operation.is_raw));
    if !operation.parameters.is_empty() {
        let parameters: Vec<Value> =
            operation.parameters.iter().map(|parameter| parameter_json(parameter, components)).collect();
        json.insert("parameters".to_owned(), parameters.into());
    }
    if let Some(body) = &operation.body {
        let contents = contents(&body.contents, components);
        json.insert("requestBody".to_owned(), json!({"required": body.is_required, "content": contents}));
    }
    let mut responses = Map::new();
    for answer in &operation.answers {
        let status = answer.status.map_or("default".to_owned(), |status| status.as_u16().to_string());
        responses.insert(status, answer_json(answer, components));
    }
    for status in refusals {
        let known = responses.contains_key(status.as_str());
        let reference = json!({"$ref": format!("#/components/responses/{}", refusal_name(*status))});
        if !known {
            responses.insert(status.as_u16().to_string(), reference);
        }
    }
    json.insert("responses".to_owned(), Value::Object(responses));
    Value::Object(json)
}

/// In words, for people.
fn needed(needs: Needs) -> String {
    let scopes = |scopes: ScopeSet| {
        let names: Vec<String> = scopes.iter().map(|scope| format!("`{}`", scope.as_str())).collect();
        if names.is_empty() { "any scope".to_owned() } else { format!("the scope {}", names.join(" and ")) }
    };
    match needs {
        Needs::Nobody => "Needs no key.".to_owned(),
        Needs::AnyKey(set) => format!("Needs a key with {}.", scopes(set)),
        Needs::InProject(set) => format!("Needs a key of the project, or of the installation, with {}.", scopes(set)),
        Needs::Installation(set) => format!("Needs a key of the installation with {}.", scopes(set)),
    }
}

/// Scopes stand as role names, which OpenAPI 3.1 allows for schemes of every type.
fn security(needs: Needs, is_raw: bool) -> Value {
    if needs == Needs::Nobody {
        return json!([]);
    }
    let scopes = needs.scopes().to_json();
    // D14: on the raw path `Authorization` is the remote system's.
    if is_raw { json!([{"header": scopes}]) } else { json!([{"bearer": scopes}, {"header": scopes}]) }
}

fn parameter_json(parameter: &Parameter, components: &mut Components) -> Value {
    let place = match parameter.place {
        Place::Query => "query",
        Place::Header => "header",
    };
    json!({
        "name": parameter.name,
        "in": place,
        "required": parameter.is_required,
        "description": parameter.meaning,
        "schema": parameter.schema.to_json(components),
    })
}

fn contents(contents: &[Content], components: &mut Components) -> Map<String, Value> {
    let one = |content: &Content, components: &mut Components| {
        let example = content.example.clone().unwrap_or_else(|| content.schema.sample());
        json!({"schema": content.schema.to_json(components), "example": example})
    };
    contents.iter().map(|content| (content.media_type.to_owned(), one(content, components))).collect()
}

fn answer_json(answer: &Answer, components: &mut Components) -> Value {
    let mut json = Map::from_iter([("description".to_owned(), answer.meaning.into())]);
    if !answer.headers.is_empty() {
        let headers: Map<String, Value> = answer
            .headers
            .iter()
            .map(|(name, meaning)| ((*name).to_owned(), json!({"description": meaning, "schema": {"type": "string"}})))
            .collect();
        json.insert("headers".to_owned(), Value::Object(headers));
    }
    if !answer.contents.is_empty() {
        json.insert("content".to_owned(), Value::Object(contents(&answer.contents, components)));
    }
    Value::Object(json)
}

fn refusal_name(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or("Refused").replace(' ', "")
}

/// What each status means wherever it comes.
fn refusal(status: StatusCode, problem: &Value) -> Value {
    let meaning = match status {
        StatusCode::BAD_REQUEST => "The request cannot be read, or a parameter of the query or a header is wrong.",
        StatusCode::UNAUTHORIZED => "There is no key, or it is not valid.",
        StatusCode::FORBIDDEN => {
            "The key has too small a scope, or is one of a project where one of the installation is needed."
        }
        StatusCode::NOT_FOUND => "It does not exist, or belongs to another project.",
        StatusCode::REQUEST_TIMEOUT => "The body came too slowly.",
        StatusCode::CONFLICT => "It does not go with the state that things are in.",
        StatusCode::PAYLOAD_TOO_LARGE => "The body is too large.",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "The body has another content type than those that are taken.",
        StatusCode::UNPROCESSABLE_ENTITY => {
            "The request can be read, and fields in it are refused; all of them are named."
        }
        StatusCode::TOO_MANY_REQUESTS => "Too much of this is under way; `Retry-After` says when to come again.",
        StatusCode::INSUFFICIENT_STORAGE => "There is no room: a limit of the store is reached. Nothing was stored.",
        StatusCode::SERVICE_UNAVAILABLE => {
            "The store is unavailable, or the server is stopping; `Retry-After` says when to come again."
        }
        StatusCode::GATEWAY_TIMEOUT => "The remote system did not answer in time.",
        StatusCode::BAD_GATEWAY => "The remote system gave no answer.",
        _ => "It was refused.",
    };
    let header = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some("WWW-Authenticate"),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Some("Retry-After"),
        _ => None,
    };
    let mut json = json!({"description": meaning, "x-status": status.as_u16(), "content": {"application/problem+json": {"schema": problem}}});
    if let Some(name) = header {
        json["headers"] = json!({name: {"schema": {"type": "string"}}});
    }
    json
}
