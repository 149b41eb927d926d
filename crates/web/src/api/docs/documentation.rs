//! Of `documentation`.

use http::StatusCode;

use crate::openapi::{Operation, Schema, Tag};

pub fn openapi() -> Operation {
    Operation::new(Tag::Server, "getOpenApi", "This description, as OpenAPI 3.1")
        .gives("The document.", Schema::map(Schema::any()))
        .takes_anything()
}

pub fn page() -> Operation {
    Operation::new(Tag::Server, "getDocs", "This description, as a page")
        .answers_as(Some(StatusCode::OK), "The page.", "text/html", Schema::text())
        .takes_anything()
}

pub fn style() -> Operation {
    Operation::new(Tag::Server, "getDocsStyle", "How that page looks")
        .answers_as(Some(StatusCode::OK), "The style sheet.", "text/css", Schema::text())
        .takes_anything()
}
