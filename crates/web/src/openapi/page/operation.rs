//! One operation: what it is, what it takes, what it answers, and an example of each.

use serde_json::Value;

use super::markup::{Html, text};
use super::{Entry, curl, list, shape};

pub fn write(html: &mut Html, document: &Value, entry: &Entry<'_>) {
    let operation = entry.operation;
    html.raw("<article id=\"")
        .text(entry.id())
        .raw("\">\n<div class=\"said\">\n<h3>")
        .text(text(&operation["summary"]));
    html.raw(" <a class=\"anchor\" href=\"#").text(entry.id()).raw("\" aria-label=\"Link to this\">#</a></h3>\n");
    html.raw("<p class=\"address\">").method(entry.method).raw("<code>").text(entry.path).raw("</code></p>\n");
    html.prose(text(&operation["description"]));
    parameters(html, document, "In the path", entry.shared.iter());
    let of =
        |place: &'static str| list(&operation["parameters"]).iter().filter(move |parameter| parameter["in"] == place);
    parameters(html, document, "In the query string", of("query"));
    parameters(html, document, "Headers", of("header"));
    body(html, document, operation);
    answers(html, document, operation);
    html.raw("</div>\n<div class=\"shown\">\n");
    html.example("Request", &curl::command(entry));
    answer_example(html, operation);
    html.raw("</div>\n</article>\n");
}

fn parameters<'d>(html: &mut Html, document: &Value, caption: &str, parameters: impl Iterator<Item = &'d Value>) {
    let mut parameters = parameters.peekable();
    if parameters.peek().is_none() {
        return;
    }
    html.raw("<h4>").text(caption).raw("</h4>\n<table>\n");
    for parameter in parameters {
        html.raw("<tr><th scope=\"row\"><code>").text(text(&parameter["name"])).raw("</code>");
        if parameter["required"] == true && parameter["in"] != "path" {
            html.raw(" <i>must be there</i>");
        }
        html.raw("</th><td>").inline(text(&parameter["description"])).raw(" <span class=\"kind\">");
        shape::kind(html, document, &parameter["schema"]);
        html.raw("</span></td></tr>\n");
    }
    html.raw("</table>\n");
}

fn body(html: &mut Html, document: &Value, operation: &Value) {
    let Some(contents) = operation["requestBody"]["content"].as_object() else { return };
    let optional = if operation["requestBody"]["required"] == true { "" } else { ", may be left out" };
    for (media_type, content) in contents {
        html.raw("<h4>Body <small>").text(media_type).text(optional).raw("</small></h4>\n");
        shape::write(html, document, &content["schema"]);
    }
}

fn answers(html: &mut Html, document: &Value, operation: &Value) {
    let responses = operation["responses"].as_object();
    html.raw("<h4>Answers</h4>\n<table>\n");
    let mut refusals = Vec::new();
    for (status, response) in responses.into_iter().flatten() {
        if let Some(reference) = response["$ref"].as_str() {
            refusals.push((status, reference.rsplit('/').next().unwrap_or_default()));
            continue;
        }
        let status = if status == "default" { "any" } else { status };
        html.raw("<tr><th scope=\"row\">").text(status).raw("</th><td>").inline(text(&response["description"]));
        for (media_type, content) in response["content"].as_object().into_iter().flatten() {
            html.raw(" <span class=\"kind\">");
            if media_type != "application/json" {
                html.text(media_type).raw(" ");
            }
            shape::kind(html, document, &content["schema"]);
            html.raw("</span>");
        }
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            html.raw("<br><code>").text(name).raw("</code>: ").inline(text(&header["description"]));
        }
        html.raw("</td></tr>\n");
    }
    html.raw("</table>\n");
    if !refusals.is_empty() {
        html.raw("<p class=\"refusals\">Refused with");
        for (status, name) in refusals {
            let meaning = text(&document["components"]["responses"][name]["description"]);
            html.raw(" <a href=\"#refusal-")
                .text(name)
                .raw("\" title=\"")
                .text(meaning)
                .raw("\">")
                .text(status)
                .raw("</a>");
        }
        html.raw("</p>\n");
    }
}

/// The first answer that has something to show.
fn answer_example(html: &mut Html, operation: &Value) {
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let content = response["content"].as_object().and_then(|contents| contents.iter().next());
        let Some((media_type, content)) = content.filter(|_| status.starts_with('2')) else { continue };
        let shown = match &content["example"] {
            Value::String(text) if media_type != "application/json" => text.clone(),
            json => format!("{json:#}"),
        };
        html.example(&format!("Answer `{status}`"), &shown);
        return;
    }
}
