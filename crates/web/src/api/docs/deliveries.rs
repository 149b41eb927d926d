//! Of `deliveries`.

use http::StatusCode;

use super::filters;
use crate::openapi::{Operation, Schema, Tag, shapes};

pub fn list() -> Operation {
    let statuses = Schema::list(shapes::status()).length(1, super::super::filter::VALUES_MAX);
    filters(Operation::new(Tag::Deliveries, "listDeliveries", "Deliveries, newest first"))
        .details(
            "All conditions must hold. Status, connection, arrival, `id` and `cid` are answered by an index; others are looked up row by row, at most \
             so many rows a page: such a page may be short or empty, and has a `next_cursor` as long as there is more to look through.",
        )
        .query("status", statuses, "One or several, with commas between.")
        .pages()
        .lists("A page.", shapes::delivery())
}

pub fn one() -> Operation {
    Operation::new(Tag::Deliveries, "getDelivery", "A delivery").gives("The delivery.", shapes::delivery())
}

pub fn attempts() -> Operation {
    Operation::new(Tag::Deliveries, "listAttempts", "Every attempt of a delivery")
        .details("That bodies were seen stands in the audit log.")
        .query("bodies", Schema::flag().default_value(true), "Without them, nobody has seen a body.")
        .lists("All of them, the first one first.", shapes::attempt())
}

pub fn body() -> Operation {
    Operation::new(Tag::Deliveries, "downloadBody", "The body of a delivery, byte for byte")
        .details("It comes as a download, with the content type that it came in with. That it was seen stands in the audit log.")
        .query("original", Schema::flag(), "The body as it was accepted, before any edit.")
        .answers_as(Some(StatusCode::OK), "The body.", "*/*", Schema::any().example("…"))
        .with_header("Content-Disposition", "A download under the delivery's id.")
}
