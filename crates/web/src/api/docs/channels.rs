//! Of `channels`. Their keys are those of `docs/settings.md`.

use postrider_core::connection::ConnectionKind;
use serde_json::json;

use super::connections::{body, nouns, ours};
use super::{CONFLICT, FULL, NOT_FOUND};
use crate::openapi::{self, Operation, Schema, Tag, always, optional, shapes};

const KINDS: [ConnectionKind; ConnectionKind::CHANNELS.len()] = ConnectionKind::CHANNELS;

fn word(kind: ConnectionKind) -> Schema {
    Schema::words(kind.channel_type())
}

fn new_channel(kind: ConnectionKind) -> Schema {
    body(kind, [always("name", name()), always("type", word(kind))]).named(nouns(kind)[1])
}

fn changed_channel(kind: ConnectionKind) -> Schema {
    let rename = name().describe("A new name renames, and keeps the queue.");
    body(kind, [optional("name", rename), optional("type", word(kind))]).named(nouns(kind)[2])
}

fn channel(kind: ConnectionKind) -> Schema {
    let first = [always("name", name()), always("type", word(kind))];
    Schema::object(first.into_iter().chain(openapi::connection(kind)).chain(ours())).named(nouns(kind)[0])
}

fn name() -> Schema {
    shapes::name().example("Orders")
}

fn answer() -> Schema {
    Schema::either(KINDS.map(channel))
}

fn example() -> serde_json::Value {
    json!({
        "name": "Orders", "type": "rest", "service": "orders.order-intake", "url_path": "/orders", "method": "POST", "use_queue": true,
        "max_retries": 3
    })
}

/// The channel in the path, which a name alone may not tell (D16).
fn names_a_channel(operation: Operation) -> Operation {
    let types = Schema::words(KINDS.into_iter().filter_map(ConnectionKind::channel_type));
    operation
        .query("type", types, "The channel's type, where its name alone is ambiguous.")
        .refuses([CONFLICT, NOT_FOUND])
}

pub fn list() -> Operation {
    Operation::new(Tag::Channels, "listChannels", "All channels of a project")
        .pages()
        .sorts()
        .lists("A page.", answer())
}

pub fn create() -> Operation {
    Operation::new(Tag::Channels, "createChannel", "Make a channel")
        .details("Method and path are one channel's in all projects. What is accepted and yet worth a word is in `warnings`.")
        .takes_such_as(Schema::either(KINDS.map(new_channel)), example())
        .creates("The channel.", answer())
        .refuses([CONFLICT, FULL])
}

pub fn one() -> Operation {
    names_a_channel(Operation::new(Tag::Channels, "getChannel", "A channel"))
        .gives("The channel and the state of its queue.", answer())
}

pub fn replace() -> Operation {
    names_a_channel(Operation::new(Tag::Channels, "replaceChannel", "Set all keys of a channel anew"))
        .details("Keys that are left out have their defaults.")
        .takes_such_as(Schema::either(KINDS.map(changed_channel)), example())
        .gives("The channel.", answer())
        .refuses([FULL])
}

pub fn merge() -> Operation {
    names_a_channel(Operation::new(Tag::Channels, "changeChannel", "Change some keys of a channel"))
        .details("A merge patch (RFC 7396): what is given replaces, null removes, the rest stays.")
        .takes_such_as(Schema::either(KINDS.map(changed_channel)), json!({"use_queue": true}))
        .gives("The channel.", answer())
        .refuses([FULL])
}

pub fn delete() -> Operation {
    names_a_channel(Operation::new(Tag::Channels, "deleteChannel", "Delete a channel"))
        .query("force", Schema::flag(), "Also with requests that wait: they are discarded.")
        .empties("It is gone; what has run stays in the log.")
}

pub fn pause() -> Operation {
    names_a_channel(Operation::new(Tag::Channels, "pauseChannel", "Hold a channel's queue"))
        .details("Requests are still accepted and acknowledged; nothing runs.")
        .gives("The channel.", answer())
}

pub fn resume() -> Operation {
    names_a_channel(Operation::new(Tag::Channels, "resumeChannel", "Let a channel's queue go on"))
        .gives("The channel.", answer())
}

pub fn queue() -> Operation {
    names_a_channel(Operation::new(Tag::Channels, "listChannelQueue", "What waits to run"))
        .pages()
        .lists("A page, the head first.", shapes::delivery())
}

pub fn dead_letters() -> Operation {
    names_a_channel(Operation::new(Tag::Channels, "listChannelDeadLetters", "What could not be run"))
        .pages()
        .lists("A page, newest first.", shapes::delivery())
}

pub fn attempt_head_now() -> Operation {
    names_a_channel(Operation::new(
        Tag::Channels,
        "attemptChannelHeadNow",
        "Run the head of a channel's queue without waiting for its time",
    ))
    .gives("The head as it stands then.", shapes::delivery())
}
