//! Of `documentation`.

use crate::openapi::{Operation, Schema, Tag};

pub fn openapi() -> Operation {
    Operation::new(Tag::Server, "getOpenApi", "This description, as OpenAPI 3.1")
        .gives("The document.", Schema::map(Schema::any()))
        .takes_anything()
}
