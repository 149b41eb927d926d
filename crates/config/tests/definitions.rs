//! Schema and reference are made from the same keys as the reader's messages, and the written reference is up to date.

use std::fs;
use std::path::Path;

use postrider_config::{SECTIONS, reference, schema};

// proves: P04
#[test]
fn d18_the_reference_is_the_one_that_the_definitions_make() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let written = fs::read_to_string(path).expect("docs/settings.md is there");
    assert!(written == reference(SECTIONS), "write it anew: postrider schema --markdown > docs/settings.md");
}

#[test]
fn d18_every_key_of_every_section_is_in_the_schema_with_its_default() {
    let schema = schema(SECTIONS);
    let mut keys = 0;
    for section in SECTIONS {
        let item = &schema["definitions"][section.name()];
        assert_eq!(schema["properties"][section.name()]["type"][0], "array");
        for doc in section.keys() {
            let key = &item["properties"][doc.name];
            assert!(key["description"].as_str().expect("a description").starts_with(doc.meaning), "{}", doc.name);
            assert_eq!(key.get("default").cloned(), doc.default_value(), "{}", doc.name);
            keys += 1;
        }
    }
    assert!(keys > 30, "only {keys} keys");
}
