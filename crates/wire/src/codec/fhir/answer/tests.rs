//! Answers of servers, good and odd.

use super::*;

const JSON: &str = "application/fhir+json; charset=utf-8";

fn answer(headers: &[(&str, &str)], body: &str) -> FhirAnswer {
    let pairs: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    read(&HeaderList::try_from(pairs).unwrap(), body.as_bytes(), false)
}

fn named(answer: &FhirAnswer) -> (Option<&str>, Option<&str>, Option<&str>) {
    (answer.resource_type.as_deref(), answer.id.as_deref(), answer.version_id.as_deref())
}

// proves: Z33
#[test]
fn z33_f02_f09_f11_id_and_version_come_from_wherever_they_are() {
    let patient = r#"{"resourceType": "Patient", "id": "7", "meta": {"versionId": "2"}}"#;
    let told = |headers: &[(&str, &str)], body: &str| {
        let answer = answer(headers, body);
        let (a, b, c) = named(&answer);
        (a.map(str::to_owned), b.map(str::to_owned), c.map(str::to_owned))
    };
    let is = |a: Option<&str>, b: Option<&str>, c: Option<&str>| {
        (a.map(str::to_owned), b.map(str::to_owned), c.map(str::to_owned))
    };
    let whole = is(Some("Patient"), Some("7"), Some("2"));
    assert_eq!(told(&[("Content-Type", JSON)], patient), whole);
    // F09: nothing but headers.
    assert_eq!(told(&[("Location", "https://other.example/r4/Patient/7/_history/2")], ""), whole);
    assert_eq!(told(&[("Location", "Patient/7"), ("ETag", "W/\"2\"")], ""), whole);
    assert_eq!(told(&[("Content-Location", "/r4/Patient/7"), ("ETag", "\"2\"")], ""), whole);
    // F10: an outcome on success, about what Location names.
    let outcome = r#"{"resourceType": "OperationOutcome", "id": "all-ok", "issue": [{"severity": "information", "code": "informational"}]}"#;
    assert_eq!(told(&[("Content-Type", JSON), ("Location", "Patient/7/_history/2")], outcome), whole);
    assert_eq!(told(&[("Content-Type", JSON)], outcome), is(Some("OperationOutcome"), None, None));
    // A location of something else says nothing about the body's resource.
    let answered = told(&[("Location", "Task/9"), ("ETag", "W/\"3\"")], r#"{"resourceType": "Patient", "id": "7"}"#);
    assert_eq!(answered, is(Some("Patient"), Some("7"), Some("3")));
    assert_eq!(told(&[("ETag", "W/\"3\"")], ""), is(None, None, None), "the tag of nothing");
}

// proves: Z33
#[test]
fn z33_f08_an_outcome_is_read_in_json_and_xml_and_in_odd_forms() {
    let json = r#"{"resourceType": "OperationOutcome", "issue": [
        {"severity": "error", "code": "invalid", "diagnostics": "no date", "expression": ["Patient.birthDate"]},
        {"severity": "warning", "code": "code-invalid", "details": {"coding": [{"code": "x"}]}}]}"#;
    let xml = r#"<?xml version="1.0"?><OperationOutcome xmlns="http://hl7.org/fhir"><text><div xmlns="http://www.w3.org/1999/xhtml">no</div></text>
        <issue><severity value="error"/><code value="invalid"/><diagnostics value="no date"/><expression value="Patient.birthDate"/></issue>
        <issue><severity value="warning"/><code value="code-invalid"/><details><coding><code value="x"/></coding></details></issue></OperationOutcome>"#;
    for (content_type, body) in [
        (JSON, json),
        ("application/json", json),
        ("text/plain", json),
        ("application/fhir+xml", xml),
        ("text/xml", xml),
    ] {
        let answer = answer(&[("Content-Type", content_type)], body);
        assert_eq!(
            answer.explained().as_deref(),
            Some("error:invalid: no date (Patient.birthDate); 1 more issue"),
            "{content_type}"
        );
        assert_eq!(answer.issues[1].details, "x");
        assert_eq!(answer.remark, None);
    }
    for (body, told) in [
        // A single issue that is no list, and a code that is a number.
        (
            r#"{"resourceType": "OperationOutcome", "issue": {"severity": "error", "code": 409, "details": {"text": "taken"}}}"#,
            "error:409: taken",
        ),
        (
            r#"{"resourceType": "OperationOutcome", "issue": [{"code": "invalid", "location": "/f:Patient"}]}"#,
            "invalid (/f:Patient)",
        ),
        (r#"{"resourceType": "OperationOutcome", "issue": ["odd"]}"#, ""),
    ] {
        assert_eq!(answer(&[("Content-Type", JSON)], body).explained().as_deref(), Some(told), "{body}");
    }
    let long =
        format!(r#"{{"resourceType": "OperationOutcome", "issue": [{{"diagnostics": "a\nb{}"}}]}}"#, "ä".repeat(5000));
    let said = answer(&[("Content-Type", JSON)], &long).explained().unwrap();
    assert!(said.starts_with("a bä") && said.chars().count() == TEXT_CHARS_MAX + 1, "{}", said.len());
}

#[test]
fn f08_what_is_no_outcome_is_told_in_a_line_or_not_at_all() {
    for (content_type, body, told) in [
        ("text/plain", "unknown tenant\nat x.y.z", Some("unknown tenant")),
        ("", "busy\u{7}", Some("busy ")),
        ("text/html", "<html>Bad Gateway</html>", None),
        ("text/plain", "<html>", None),
        ("application/fhir+json", "", None),
        ("application/fhir+json", r#"{"error": "x"}"#, None),
        ("application/octet-stream", "\u{1}\u{2}", None),
    ] {
        let answer = answer(&[("Content-Type", content_type)], body);
        assert_eq!(answer.explained().as_deref(), told, "{content_type} {body}");
    }
    assert!(answer(&[("Content-Type", JSON)], "{\"resourceType\": \"Pat").remark.unwrap().contains("no resource"));
    let bomb = "<!DOCTYPE a [<!ENTITY x \"y\">]><OperationOutcome xmlns=\"http://hl7.org/fhir\"><issue><code value=\"&x;\"/></issue></OperationOutcome>";
    assert_eq!(answer(&[("Content-Type", "application/fhir+xml")], bomb), FhirAnswer::default());
}

// proves: Z33
#[test]
fn z33_f13_f15_each_entry_of_a_batch_keeps_its_own_status() {
    let json = r#"{"resourceType": "Bundle", "type": "batch-response", "entry": [
        {"response": {"status": "201 Created", "location": "Patient/7/_history/1", "etag": "W/\"1\""}},
        {"response": {"status": "404", "outcome": {"resourceType": "OperationOutcome", "issue": [{"severity": "error", "code": "not-found"}]}}},
        {"resource": {"resourceType": "Patient", "id": "8", "meta": {"versionId": "3"}}, "response": {"status": "200"}},
        {"resource": {"resourceType": "OperationOutcome", "issue": [{"code": "invalid"}]}, "response": {"status": "422"}},
        {"response": {}}, {"response": {"status": 424}}, 5]}"#;
    let xml = r#"<Bundle xmlns="http://hl7.org/fhir"><type value="batch-response"/>
        <entry><response><status value="201 Created"/><location value="Patient/7/_history/1"/><etag value='W/"1"'/></response></entry>
        <entry><response><status value="404"/><outcome><OperationOutcome><issue><severity value="error"/><code value="not-found"/></issue></OperationOutcome></outcome></response></entry>
        <entry><resource><Patient><id value="8"/><meta><versionId value="3"/></meta></Patient></resource><response><status value="200"/></response></entry>
        <entry><resource><OperationOutcome><issue><code value="invalid"/></issue></OperationOutcome></resource><response><status value="422"/></response></entry>
        <entry><response/></entry><entry><response><status value="424"/></response></entry><entry/></Bundle>"#;
    for (content_type, body) in [(JSON, json), ("application/fhir+xml", xml)] {
        let entries = answer(&[("Content-Type", content_type)], body).entries;
        let statuses: Vec<_> = entries.iter().map(|entry| entry.status).collect();
        assert_eq!(statuses, [Some(201), Some(404), Some(200), Some(422), None, Some(424), None], "{content_type}");
        assert_eq!((entries[0].id.as_deref(), entries[0].version_id.as_deref()), (Some("7"), Some("1")));
        assert_eq!((entries[2].id.as_deref(), entries[2].version_id.as_deref()), (Some("8"), Some("3")));
        assert_eq!((entries[1].issues[0].code.as_str(), entries[3].issues[0].code.as_str()), ("not-found", "invalid"));
        assert_eq!(entries[3].resource_type, None);
        assert!(entries[0].is_ok() && !entries[4].is_ok());
    }
    // The pages of a search have entries too, and none of them is an answer.
    let search = r#"{"resourceType": "Bundle", "type": "searchset", "entry": [{"resource": {"resourceType": "Patient"}}],
        "link": [{"relation": "self", "url": "a"}, {"relation": "next", "url": "https://fhir.example.org/r4?page=2"}]}"#;
    let read = answer(&[("Content-Type", JSON)], search);
    assert_eq!((read.entries.len(), read.next.as_deref()), (0, Some("https://fhir.example.org/r4?page=2")));
}
