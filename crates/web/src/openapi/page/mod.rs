//! The page at `/docs`: the document as people read it. Written here, on the server, from the same value that is served as `/openapi.json`;
//! it needs no script and nothing from elsewhere.
//!
//! It must not know of routes or handlers.

mod curl;
mod markup;
mod operation;
mod shape;

use serde_json::Value;

use self::markup::{Html, text};

/// Served beside the page, since its policy allows no style within it.
pub const STYLE: &str = include_str!("style.css");
/// Of the page and its style: nothing runs, nothing is fetched from elsewhere, and nobody frames it.
pub const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The methods in the order in which they are shown.
const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "options", "head"];

/// One operation with where it stands.
struct Entry<'d> {
    path: &'d str,
    method: &'static str,
    /// Of all operations of the path.
    shared: &'d [Value],
    operation: &'d Value,
}

impl<'d> Entry<'d> {
    fn id(&self) -> &'d str {
        text(&self.operation["operationId"])
    }

    /// The raw path takes every method and has three forms: people are shown one of them.
    fn is_shown(&self) -> bool {
        !self.path.contains("/raw") || (self.method == "post" && self.path.ends_with("/{rest}"))
    }
}

/// The whole page.
pub fn page(document: &Value) -> String {
    let entries = entries(document);
    let mut html = Html::default();
    let title = format!("{} {} HTTP API", text(&document["info"]["title"]), text(&document["info"]["version"]));
    html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n");
    html.raw("<title>")
        .text(&title)
        .raw("</title>\n<link rel=\"stylesheet\" href=\"/docs/style.css\">\n</head>\n<body>\n");
    html.raw("<a class=\"skip\" href=\"#content\">Skip to the content</a>\n");
    contents(&mut html, document, &entries);
    html.raw("<main id=\"content\">\n<header>\n<h1>").text(&title).raw("</h1>\n");
    html.prose(text(&document["info"]["description"]));
    html.raw("<p>For programs: <a href=\"/openapi.json\">/openapi.json</a>, OpenAPI 3.1. The examples take the address of the server from ");
    html.raw("<code>$POSTRIDER</code> and the key from <code>$POSTRIDER_KEY</code>.</p>\n</header>\n");
    for tag in list(&document["tags"]) {
        let name = text(&tag["name"]);
        html.raw("<section id=\"").raw(&anchor(name)).raw("\">\n<h2>").text(name).raw("</h2>\n");
        html.prose(text(&tag["description"]));
        for entry in entries.iter().filter(|entry| is_in(entry, name)) {
            operation::write(&mut html, document, entry);
        }
        html.raw("</section>\n");
    }
    refusals(&mut html, document);
    shape::write_all(&mut html, document);
    html.raw("</main>\n</body>\n</html>\n");
    html.finish()
}

fn entries(document: &Value) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            let Some(operation) = item.get(method) else { continue };
            entries.push(Entry { path, method, shared: list(&item["parameters"]), operation });
        }
    }
    entries.retain(Entry::is_shown);
    entries
}

fn is_in(entry: &Entry<'_>, tag: &str) -> bool {
    list(&entry.operation["tags"]).iter().any(|known| known == tag)
}

/// The column beside the page.
fn contents(html: &mut Html, document: &Value, entries: &[Entry<'_>]) {
    html.raw("<nav aria-label=\"Contents\">\n");
    for tag in list(&document["tags"]) {
        let name = text(&tag["name"]);
        html.raw("<h2><a href=\"#").raw(&anchor(name)).raw("\">").text(name).raw("</a></h2>\n<ul>\n");
        for entry in entries.iter().filter(|entry| is_in(entry, name)) {
            html.raw("<li><a href=\"#").text(entry.id()).raw("\">").method(entry.method);
            html.text(text(&entry.operation["summary"])).raw("</a></li>\n");
        }
        html.raw("</ul>\n");
    }
    html.raw("<h2><a href=\"#refusals\">Refusals</a></h2>\n<h2><a href=\"#shapes\">Shapes</a></h2>\n</nav>\n");
}

/// What each status means wherever it comes.
fn refusals(html: &mut Html, document: &Value) {
    html.raw("<section id=\"refusals\">\n<h2>Refusals</h2>\n");
    html.prose(
        "The same everywhere: `application/problem+json` with these members, and fields that name what was wrong.",
    );
    html.raw("<table>\n");
    let mut known: Vec<(u64, &str)> = Vec::new();
    for (name, response) in document["components"]["responses"].as_object().into_iter().flatten() {
        let status = response["x-status"].as_u64().unwrap_or_default();
        known.push((status, name));
    }
    known.sort_unstable();
    for (status, name) in known {
        let meaning = text(&document["components"]["responses"][name]["description"]);
        html.raw("<tr><th scope=\"row\" id=\"refusal-").raw(name).raw("\">").raw(&status.to_string());
        html.raw("</th><td>").inline(meaning).raw("</td></tr>\n");
    }
    html.raw("</table>\n");
    html.raw("<p>").raw("<a href=\"#shape-Problem\">Problem</a></p>\n</section>\n");
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A name as it can stand behind a `#`.
fn anchor(name: &str) -> String {
    let letters =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' });
    format!("group-{}", letters.collect::<String>())
}
