//! Of `queues`.

use super::names_a_connection;
use crate::openapi::{Operation, Tag, shapes};

pub fn queue() -> Operation {
    names_a_connection(Operation::new(Tag::Connections, "listQueue", "What waits for a connection"))
        .pages()
        .lists("A page, the head first.", shapes::delivery())
}

pub fn dead_letters() -> Operation {
    names_a_connection(Operation::new(
        Tag::Connections,
        "listConnectionDeadLetters",
        "What could not be delivered to a connection",
    ))
    .pages()
    .lists("A page, newest first.", shapes::delivery())
}

pub fn attempt_head_now() -> Operation {
    names_a_connection(Operation::new(
        Tag::Connections,
        "attemptHeadNow",
        "Attempt the head of a queue without waiting for its time",
    ))
    .gives("The head as it stands then.", shapes::delivery())
}
