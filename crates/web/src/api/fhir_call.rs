//! What a request for a FHIR connection may say instead of method and path: the interaction and what belongs to it (Z33).
//!
//! It must not know which request of HTTP an interaction is.

use postrider_core::connection::{DataFormat, FhirTarget};
use postrider_core::fhir::FhirCall;
use postrider_core::message::{Message, RequestHead};

use super::send::{body_bytes, form, headers, method, one_body, pairs};
use crate::problem::{FieldError, Problem};
use crate::read::Fields;

/// In the order in which a refusal names them.
pub(super) const FIELDS: [&str; 11] = [
    "operation",
    "resource_type",
    "id",
    "version_id",
    "url",
    "if_none_exist",
    "if_match",
    "if_none_match",
    "if_modified_since",
    "prefer",
    "message",
];
/// Those of all requests that go with an interaction.
const BESIDE: [&str; 5] = ["method", "params", "headers", "body", "body_base64"];

/// The rest of a request that names an interaction.
pub(super) fn read(mut fields: Fields, operation: String, target: &FhirTarget) -> Result<Message, Problem> {
    one_body(&mut fields);
    let mut headers = headers(&mut fields);
    let given = fields.body();
    let mut body = body_bytes(&mut fields, given, DataFormat::Fhir);
    let is_method_given = fields.has("method");
    let method = method(&mut fields);
    let call = FhirCall {
        operation,
        method: is_method_given.then_some(method),
        resource_type: fields.text("resource_type"),
        id: fields.text("id"),
        version_id: fields.text("version_id"),
        url: fields.text("url"),
        params: pairs(&mut fields, "params"),
        if_none_exist: fields.text("if_none_exist"),
        if_match: fields.text("if_match"),
        if_none_match: fields.text("if_none_match"),
        if_modified_since: fields.text("if_modified_since"),
        prefer: fields.text("prefer"),
    };
    let request = call.request(target, &body).map_err(|error| FieldError::from(&error));
    let mut request = match request {
        Ok(request) => request,
        Err(FieldError { field, message, allowed }) => {
            fields.refuse(field, message, allowed.unwrap_or_default());
            Default::default()
        }
    };
    for (name, value) in request.headers {
        if headers.get(name).is_some() {
            let allowed = "once: as a header or as a field of its own";
            fields.refuse("headers", format!("`{name}` is there twice"), allowed);
        } else if let Err(error) = headers.push(name.to_owned(), value) {
            fields.refuse("headers", error.to_string(), "values without control characters");
        }
    }
    if request.is_form {
        body = form(&request.params).into();
        request.params = Vec::new();
    }
    fields.finish(&[&FIELDS[..], &BESIDE[..]].concat())?;
    let head = RequestHead {
        method: request.method,
        path: request.path,
        params: request.params,
        headers,
        ..RequestHead::default()
    };
    Ok(Message { head, body })
}

#[cfg(test)]
mod tests {
    use postrider_core::connection::{ConnectionKind, ConnectionSpec};
    use serde_json::{Value, json};

    use super::super::send::message;
    use super::*;

    fn taken(request: Value) -> Result<Message, Value> {
        let written = json!({"address": "https://fhir.example.org/r4"});
        let spec = ConnectionSpec::parse(ConnectionKind::Fhir, written.as_object().unwrap()).unwrap();
        let fields = Fields::parse(request.to_string().as_bytes()).unwrap();
        message(fields, &spec.target).map_err(|problem| problem.to_json()["errors"].clone())
    }

    // proves: Z33
    #[test]
    fn z33_an_interaction_becomes_a_request_with_its_conditions() {
        let patient = json!({"resourceType": "Patient", "active": true});
        let taken = |request| taken(request).unwrap();
        let create = taken(json!({"operation": "create", "message": patient, "if_none_exist": "identifier=a|1"}));
        assert_eq!((create.head.method.as_str(), create.head.path.as_str()), ("POST", "/Patient"));
        assert_eq!(create.head.headers.get("if-none-exist"), Some("identifier=a|1"));
        assert_eq!(create.body, patient.to_string());
        let search = taken(
            json!({"operation": "search", "resource_type": "Patient", "method": "post", "params": {"name": "Dö e"}}),
        );
        assert_eq!((search.head.path.as_str(), search.head.params.len()), ("/Patient/_search", 0));
        assert_eq!(search.body, "name=D%C3%B6%20e");
        // Without an operation it is a request as any other.
        let plain = taken(json!({"method": "PUT", "path": "/Patient/7", "body": patient}));
        assert_eq!((plain.head.method.as_str(), plain.head.path.as_str()), ("PUT", "/Patient/7"));
        assert_eq!(taken(json!({"operation": null, "method": "GET", "path": "/metadata"})).head.path, "/metadata");
    }

    // proves: Z33
    #[test]
    fn z33_f25_a_body_keeps_every_digit() {
        let text = r#"{"operation": "create", "body": {"resourceType": "Observation", "valueQuantity": {"value": 1.00, "x": 1e2}}}"#;
        let written = json!({"address": "https://fhir.example.org/r4"});
        let spec = ConnectionSpec::parse(ConnectionKind::Fhir, written.as_object().unwrap()).unwrap();
        let message = message(Fields::parse(text.as_bytes()).unwrap(), &spec.target).unwrap();
        assert_eq!(message.body, r#"{"resourceType":"Observation","valueQuantity":{"value":1.00,"x":1e2}}"#);
    }

    #[test]
    fn z33_what_does_not_go_together_is_refused_by_name() {
        let patient = json!({"resourceType": "Patient", "id": "7"});
        for (request, field) in [
            (json!({"operation": "explode"}), "operation"),
            (json!({"operation": "read", "resource_type": "Patient", "id": "7", "path": "/x"}), "path"),
            (json!({"operation": "create", "body": patient, "message": patient}), "message"),
            (json!({"operation": "update", "body": patient, "if_match": "1", "headers": {"If-Match": "2"}}), "headers"),
            (json!({"operation": "update", "body": patient, "soap_headers": {}}), "soap_headers"),
            (json!({"method": "PUT", "path": "/Patient/7", "body": patient, "if_match": "1"}), "if_match"),
        ] {
            let errors = taken(request.clone()).unwrap_err();
            let named: Vec<&str> =
                errors.as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap()).collect();
            assert_eq!(named, [field], "{request}");
        }
    }
}
