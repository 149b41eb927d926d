//! Of `metrics`.

use http::StatusCode;

use crate::openapi::{Operation, Schema, Tag};

pub fn metrics() -> Operation {
    let text = Schema::text().example("# HELP postrider_build_info Which build this is.\n");
    Operation::new(Tag::Server, "getMetrics", "Figures for Prometheus")
        .details("The text format 0.0.4. No table is scanned for it, and the number of series is bounded.")
        .answers_as(Some(StatusCode::OK), "All figures.", "text/plain", text)
        .takes_anything()
}
