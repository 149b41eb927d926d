//! The JSON Schema of a file, for editors that complete and check it: draft 7, which they all read.
//!
//! It says what the shapes of the keys say; what only the reader knows (a topic's letters, say) the reader refuses.

use postrider_core::settings::{KeyDoc, Shape};
use serde_json::{Map, Value, json};

use crate::section::{PASSED_OVER, Section, Variant};

pub fn schema(sections: &[&dyn Section]) -> Value {
    let mut properties = Map::new();
    let mut definitions = Map::new();
    for section in sections {
        let reference = json!({"$ref": format!("#/definitions/{}", section.name())});
        for name in std::iter::once(&section.name()).chain(section.aliases()) {
            let list = json!({"description": section.meaning(), "type": ["array", "null"], "items": reference});
            properties.insert((*name).to_owned(), list);
        }
        definitions.insert(section.name().to_owned(), item(*section));
    }
    for name in PASSED_OVER {
        properties
            .insert((*name).to_owned(), json!({"description": "Accepted, and without effect.", "deprecated": true}));
    }
    definitions.insert("environment".to_owned(), environment());
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Postrider configuration",
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": properties,
        "definitions": definitions,
    })
}

fn environment() -> Value {
    json!({
        "description": "The value of a variable of the environment.",
        "type": "string",
        "pattern": "^(Zato_Enmasse_Env|Env)\\.[A-Za-z_][A-Za-z0-9_]*$",
    })
}

fn item(section: &dyn Section) -> Value {
    let mut properties = Map::new();
    properties.insert(
        "name".to_owned(),
        json!({"type": ["string", "number"], "description": "Unique in its section and project."}),
    );
    if section.is_in_project() {
        let described = json!({"type": "string", "description": "The project that it belongs to.", "default": crate::DEFAULT_PROJECT});
        properties.insert("project".to_owned(), described);
    }
    for doc in section.keys() {
        properties.insert(doc.name.to_owned(), key(doc));
    }
    let (keys, families) = section.passed_over();
    for key in keys {
        properties
            .insert((*key).to_owned(), json!({"description": "Accepted, and without effect.", "deprecated": true}));
    }
    let required: Vec<&str> =
        section.name_from().is_none().then_some("name").into_iter().chain(section.required().iter().copied()).collect();
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    });
    if !families.is_empty() {
        schema["patternProperties"] = json!({format!("^({})", families.join("|")): true});
    }
    if let Some(other) = section.name_from() {
        schema["anyOf"] = json!([{"required": ["name"]}, {"required": [other]}]);
    }
    let variants = section.variants();
    if !variants.is_empty() {
        schema["allOf"] = variants.iter().map(|variant| of_variant(section, variant, &variants)).collect();
    }
    schema
}

/// An item of this type has no keys that only others have.
fn of_variant(section: &dyn Section, variant: &Variant, all: &[Variant]) -> Value {
    let of = |variant: &Variant, key: &str| variant.keys.iter().any(|doc| doc.name == key);
    let foreign =
        section.keys().into_iter().filter(|doc| !of(variant, doc.name) && all.iter().any(|v| of(v, doc.name)));
    let foreign: Map<String, Value> = foreign.map(|doc| (doc.name.to_owned(), false.into())).collect();
    json!({
        "if": {"properties": {"type": {"const": variant.name}}, "required": ["type"]},
        "then": {"properties": foreign, "required": variant.required},
    })
}

fn key(doc: &KeyDoc) -> Value {
    let default = if doc.default.is_empty() { "an empty text" } else { doc.default };
    let description = format!("{} Allowed: {}. Default: {default}.", doc.meaning, doc.allowed);
    let number = |kind: &str, min: f64, max: f64| {
        let bound = |value: f64| if value.fract() == 0.0 { json!(value as u64) } else { json!(value) };
        json!({"type": [kind, "null"], "minimum": bound(min), "maximum": bound(max)})
    };
    let own = match doc.shape {
        Shape::Text => json!({"type": ["string", "number", "null"]}),
        Shape::Flag => json!({"type": ["boolean", "null"]}),
        Shape::Whole { min, max } => number("integer", min.into(), max.into()),
        Shape::Decimal { min, max } => number("number", min, max),
        Shape::OneOf(words) => {
            let words: Vec<Value> = words.iter().map(|word| json!(word)).chain([Value::Null]).collect();
            json!({"enum": words})
        }
        Shape::Texts => {
            json!({"type": ["array", "string"], "items": {"type": ["string", "number"]}, "minItems": 1, "uniqueItems": true})
        }
        Shape::Words { count_max } => {
            json!({"type": ["array", "string", "null"], "items": {"type": "string"}, "maxItems": count_max})
        }
        Shape::Pairs { count_max } => json!({
            "type": ["object", "null"],
            "additionalProperties": {"type": ["string", "number"]},
            "maxProperties": count_max,
        }),
        Shape::Numbers { min, max, count_max } => {
            let entry = json!({"anyOf": [number("number", min, max), {"$ref": "#/definitions/environment"}]});
            json!({"type": ["array", "string", "number", "null"], "items": entry, "minItems": 1, "maxItems": count_max})
        }
    };
    let mut schema = match doc.shape {
        Shape::Text | Shape::Texts | Shape::Numbers { .. } | Shape::Words { .. } | Shape::Pairs { .. } => own,
        _ => json!({"anyOf": [own, {"$ref": "#/definitions/environment"}]}),
    };
    schema["description"] = description.into();
    if let Some(default) = doc.default_value() {
        schema["default"] = default;
    }
    schema
}
