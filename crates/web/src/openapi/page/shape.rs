//! Schemas in words: what a value may be, and the members of an object as a table.

use serde_json::{Map, Value};

use super::list;
use super::markup::{Html, text};

/// Words of an enumeration that are shown, at most; longer ones stand where they are defined.
const WORDS_SHOWN: usize = 24;

/// Every shape that has a name.
pub fn write_all(html: &mut Html, document: &Value) {
    html.raw("<section id=\"shapes\">\n<h2>Shapes</h2>\n");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        html.raw("<article class=\"shape\" id=\"shape-").text(name).raw("\">\n<h3>").text(name).raw("</h3>\n");
        html.prose(text(&schema["description"]));
        write(html, document, schema);
        html.raw("</article>\n");
    }
    html.raw("</section>\n");
}

/// A schema in full: a table for an object, one after the other for alternatives.
pub fn write(html: &mut Html, document: &Value, schema: &Value) {
    if let Some(members) = schema["properties"].as_object() {
        return table(html, document, schema, members);
    }
    let alternatives: Vec<&Value> = list(&schema["anyOf"]).iter().filter(|one| one["type"] != "null").collect();
    if alternatives.iter().any(|one| one.get("properties").is_some()) {
        for (at, alternative) in alternatives.into_iter().enumerate() {
            html.raw(if at == 0 { "<p>Either</p>\n" } else { "<p>or</p>\n" });
            write(html, document, alternative);
        }
        return;
    }
    html.raw("<p class=\"kind\">");
    kind(html, document, schema);
    html.raw("</p>\n");
}

fn table(html: &mut Html, document: &Value, schema: &Value, members: &Map<String, Value>) {
    html.raw("<table>\n");
    for (name, member) in members {
        html.raw("<tr><th scope=\"row\"><code>").text(name).raw("</code>");
        if list(&schema["required"]).iter().any(|required| required == name) && schema["additionalProperties"] == false
        {
            html.raw(" <i>must be there</i>");
        }
        html.raw("</th><td>").inline(text(&member["description"])).raw(" <span class=\"kind\">");
        kind(html, document, member);
        html.raw("</span></td></tr>\n");
    }
    html.raw("</table>\n");
}

/// A schema in a few words.
pub fn kind(html: &mut Html, document: &Value, schema: &Value) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        html.raw("<a href=\"#shape-").text(name).raw("\">").text(name).raw("</a>");
        return;
    }
    let alternatives = list(&schema["anyOf"]);
    if !alternatives.is_empty() {
        for (at, alternative) in alternatives.iter().enumerate() {
            html.raw(if at == 0 { "" } else { " or " });
            kind(html, document, alternative);
        }
        return;
    }
    let words = list(&schema["enum"]);
    match schema["type"].as_str() {
        Some("string") if !words.is_empty() => one_of(html, words),
        Some("string") => html
            .raw(match schema["format"].as_str() {
                Some("date-time") => "time",
                _ => "text",
            })
            .text(&range(schema, ["minLength", "maxLength"], " characters"))
            .end(),
        Some("integer") => html.raw("whole number").text(&range(schema, ["minimum", "maximum"], "")).end(),
        Some("number") => html.raw("number").text(&range(schema, ["minimum", "maximum"], "")).end(),
        Some("boolean") => html.raw("true or false").end(),
        Some("null") => html.raw("null").end(),
        Some("array") => {
            html.raw("list");
            html.text(&range(schema, ["minItems", "maxItems"], "")).raw(" of ");
            kind(html, document, &schema["items"]);
        }
        Some("object") => object(html, document, schema),
        _ => html.raw("any value").end(),
    }
}

fn one_of(html: &mut Html, words: &[Value]) {
    html.raw(if words.len() > 1 { "one of " } else { "" });
    for (at, word) in words.iter().take(WORDS_SHOWN).enumerate() {
        html.raw(if at == 0 { "<code>" } else { ", <code>" }).text(text(word)).raw("</code>");
    }
}

fn object(html: &mut Html, document: &Value, schema: &Value) {
    let Some(members) = schema["properties"].as_object() else {
        html.raw("object");
        if schema["additionalProperties"].is_object() && schema["additionalProperties"] != Value::Object(Map::new()) {
            html.raw(" of ");
            kind(html, document, &schema["additionalProperties"]);
        }
        return;
    };
    html.raw("{");
    for (at, (name, member)) in members.iter().enumerate() {
        html.raw(if at == 0 { "" } else { ", " }).text(name).raw(": ");
        kind(html, document, member);
    }
    html.raw("}");
}

/// The bounds of a number, a length or a list, as far as there are any.
fn range(schema: &Value, [low, high]: [&str; 2], unit: &str) -> String {
    let shown = |name: &str| schema[name].as_number().map(ToString::to_string);
    match (shown(low), shown(high)) {
        (Some(low), Some(high)) if low == high => format!(" ({low}{unit})"),
        (Some(low), Some(high)) => format!(" ({low} to {high}{unit})"),
        (Some(low), None) if low != "0" => format!(" (from {low}{unit})"),
        (None, Some(high)) => format!(" (at most {high}{unit})"),
        _ => String::new(),
    }
}
