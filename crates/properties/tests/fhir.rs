//! The property of FHIR's answers on what a fuzzer takes long to find: bodies made of their own pieces, in JSON and in XML, and mutilated seeds.

use std::path::Path;

use postrider_properties::fhir;
use proptest::prelude::*;

fn pieces(of: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(of), 0..most).prop_map(|pieces| pieces.concat())
}

const HEADS: &[&str] = &[
    "application/fhir+json\nPatient/7/_history/2\nW/\"2\"\n",
    "application/fhir+xml\n/r4/Patient/../7\n\"\"\n",
    "text/plain\nhttps://a.example/r4/Patient/7?x=/Task/9\n*\n",
    "\n\n\n",
];

const OF_JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "5",
    "1.00",
    "\"\"",
    "\"a\"",
    "\"\\u0000\"",
    "\"resourceType\":\"Bundle\"",
    "\"resourceType\":\"Patient\"",
    "\"resourceType\":\"OperationOutcome\"",
    "\"type\":\"batch-response\"",
    "\"type\":\"transaction\"",
    "\"entry\":[",
    "\"entry\":{",
    "\"response\":{",
    "\"request\":{",
    "\"status\":\"201 Created\"",
    "\"status\":404",
    "\"location\":\"Patient/7/_history/2\"",
    "\"etag\":\"W/\\\"1\\\"\"",
    "\"outcome\":{",
    "\"resource\":{",
    "\"issue\":[",
    "\"issue\":{",
    "\"severity\":\"error\"",
    "\"code\":409",
    "\"diagnostics\":\"\\n\"",
    "\"expression\":[",
    "\"id\":\"7\"",
    "\"id\":\"..\"",
    "\"meta\":{\"versionId\":\"3\"}",
    "\"link\":[{\"relation\":\"next\",\"url\":\"?p=2\"}]",
    "\"ifNoneExist\":\"a=b\"",
    "\"url\":\"Patient/7\"",
    "\"method\":\"PUT\"",
];

const OF_XML: &[&str] = &[
    "<Bundle xmlns=\"http://hl7.org/fhir\">",
    "<OperationOutcome xmlns='http://hl7.org/fhir'>",
    "</Bundle>",
    "</OperationOutcome>",
    "<entry>",
    "</entry>",
    "<response>",
    "</response>",
    "<status value=\"201\"/>",
    "<location value=\"Patient/7\"/>",
    "<outcome>",
    "</outcome>",
    "<issue>",
    "</issue>",
    "<code value=\"&#0;\"/>",
    "<code value=\"x\"/>",
    "<id value=\"7\"/>",
    "<type value=\"batch-response\"/>",
    "<resource>",
    "</resource>",
    "<!DOCTYPE a>",
    "<!--",
    "-->",
    "&amp;",
    "x",
    "<div xmlns=\"http://www.w3.org/1999/xhtml\">",
    "</div>",
    "<link>",
    "</link>",
    "<relation value=\"next\"/>",
    "<url value=\"?p\"/>",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn bodies_in_json_are_read_within_bounds(head in prop::sample::select(HEADS), body in pieces(OF_JSON, 30)) {
        fhir::holds(format!("{head}{body}").as_bytes());
        fhir::holds(format!("{head}{{{}}}", body.replace("][", "],[").replace("\"\"", "\",\"")).as_bytes());
    }

    #[test]
    fn bodies_in_xml_are_read_within_bounds(head in prop::sample::select(HEADS), body in pieces(OF_XML, 30)) {
        fhir::holds(format!("{head}{body}").as_bytes());
    }

    /// What is nearly right, which pieces seldom are: a seed with some bytes changed, cut or doubled.
    #[test]
    fn mutilated_seeds_are_read_within_bounds(
        seed: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..8),
    ) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/fhir");
        let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let mut bytes = std::fs::read(&files[seed.index(files.len())]).unwrap();
        for (at, byte, how) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
        }
        fhir::holds(&bytes);
    }
}
