//! The configuration as a file: seen, and applied after its difference was looked at. It must not know what stands in a file.

use askama::Template;
use axum::response::Response;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::page_with;
use super::ask::{RefusedField, content};
use super::fault::{Fault, sentence};
use super::form::Form;
use super::frame::Frame;
use super::visit::{Visit, segment};

/// Errors of a file that the page names.
const ERRORS_SHOWN: usize = 50;

#[derive(Template)]
#[template(path = "configuration.html")]
struct ConfigurationPage {
    frame: Frame,
    page: String,
    yaml: String,
    /// What the file would change, once it was looked at.
    plan: Option<Plan>,
    wrong: Vec<String>,
}

struct Plan {
    fingerprint: String,
    created: Vec<Difference>,
    changed: Vec<Difference>,
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Answer {
    created: Vec<Difference>,
    changed: Vec<Difference>,
    warnings: Vec<Warning>,
    plan: String,
}

/// One object that the file makes or changes.
#[derive(Deserialize)]
struct Difference {
    section: String,
    name: String,
    line: u64,
    keys: Vec<KeyChange>,
}

#[derive(Deserialize)]
struct KeyChange {
    key: String,
    old: Value,
    new: Value,
    default: Option<String>,
}

#[derive(Deserialize)]
struct Warning {
    message: String,
    line: Option<u64>,
}

impl KeyChange {
    fn told(&self) -> String {
        let shown = |value: &Value| match (value, &self.default) {
            (Value::Null, Some(default)) => format!("default ({default})"),
            (Value::Null, None) => "not set".to_owned(),
            (Value::String(text), _) => text.clone(),
            (other, _) => other.to_string(),
        };
        format!("{}: {} → {}", self.key, shown(&self.old), shown(&self.new))
    }
}

impl Warning {
    fn told(self) -> String {
        let place = self.line.map(|line| format!(" (line {line})")).unwrap_or_default();
        format!("{}{place}", sentence(&self.message))
    }
}

async fn show(
    visit: &Visit,
    status: StatusCode,
    yaml: String,
    plan: Option<Plan>,
    wrong: Vec<String>,
) -> Result<Response, Fault> {
    let frame = visit.frame("Import and export", "configuration").await?;
    page_with(status, &ConfigurationPage { frame, page: visit.page_of_project("/configuration"), yaml, plan, wrong })
}

pub async fn page(visit: Visit) -> Result<Response, Fault> {
    show(&visit, StatusCode::OK, String::new(), None, Vec::new()).await
}

/// The project's configuration, as a file to keep. Secrets are not in it.
pub async fn export(visit: Visit) -> Result<Response, Fault> {
    let path = format!("/api/v1/export?project={}", segment(visit.project()));
    let bytes = content(visit.api.send(Method::GET, &path, None).await?).await?;
    let mut response = axum::response::IntoResponse::into_response(bytes);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"postrider.yaml\""));
    Ok(response)
}

/// First the difference; with what was seen, the change itself.
pub async fn import(visit: Visit, form: Form) -> Result<Response, Fault> {
    let yaml = form.get("yaml").unwrap_or_default().to_owned();
    let project = segment(visit.project());
    let path = match form.text("plan") {
        Some(seen) => format!("/api/v1/import?project={project}&plan={}", segment(seen)),
        None => format!("/api/v1/import?project={project}&dry_run=true"),
    };
    match visit.api.post::<Answer>(&path, &json!({"yaml": yaml})).await {
        Ok(_) if form.text("plan").is_some() => {
            Ok(visit.done(&visit.page_of_project("/configuration"), "The file is applied."))
        }
        Ok(answer) => {
            let plan = Plan {
                fingerprint: answer.plan,
                created: answer.created,
                changed: answer.changed,
                warnings: answer.warnings.into_iter().map(Warning::told).collect(),
            };
            show(&visit, StatusCode::OK, yaml, Some(plan), Vec::new()).await
        }
        Err(refused) if refused.status.is_client_error() && refused.status != StatusCode::FORBIDDEN => {
            let mut wrong = vec![sentence(&refused.detail)];
            wrong.extend(refused.errors.iter().take(ERRORS_SHOWN).map(RefusedField::told));
            show(&visit, refused.status, yaml, None, wrong).await
        }
        Err(refused) => Err(refused.into()),
    }
}
