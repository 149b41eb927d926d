//! Of `jobs`.

use http::StatusCode;
use postrider_core::job::{JobAct, JobState};
use serde_json::json;

use super::super::jobs::JOB_IDS_MAX;
use super::{CONFLICT, FULL, filter_object, names_a_connection};
use crate::openapi::{Member, Operation, Schema, Tag, always, optional, shapes};

pub fn job() -> Schema {
    let skipped =
        Schema::map(Schema::count()).example(json!({"already_delivered": 1})).describe("How many, by the reason.");
    Schema::object([
        always("id", Schema::id("job_")),
        always("address", Schema::text().example("/api/v1/projects/default/jobs/job_01k3v9q8h4m2n6p7r0s5t1w2x3")),
        always("act", Schema::words(JobAct::NAMES)),
        always("topic", shapes::topic_name().or_null().example(json!(null))),
        always("keep_header", Schema::flag().or_null().example(json!(null))),
        always("state", Schema::words(JobState::ALL.map(JobState::as_str))),
        always("who", Schema::text().example("ops")),
        always("filter", Schema::map(Schema::any()).example(json!({"error": "timeout"})).or_null()),
        always("requested", Schema::count().or_null().example(json!(null)).describe("How many ids were given.")),
        always("matched", Schema::count().or_null().example(200_000).describe("null until they have been counted.")),
        always("done", Schema::count().example(51_200)),
        always("skipped", skipped),
        always("skippedTotal", Schema::count()),
        always("outstanding", Schema::count().describe("Asked of the queues' workers, and not answered yet.")),
        always("createdAt", Schema::time()),
        always("changedAt", Schema::time()),
        always("endedAt", shapes::time_or_null().example(json!(null))),
    ])
    .named("Job")
}

/// The answer to a dry run.
pub fn counted() -> Schema {
    Schema::object([
        always("dry_run", Schema::flag().example(true)),
        always("act", Schema::words(JobAct::NAMES)),
        always("matched", Schema::count()),
        always("complete", Schema::flag().example(true).describe("false: counting took too long, there are more.")),
    ])
    .named("Counted")
}

fn begun(operation: Operation) -> Operation {
    operation
        .gives("For a dry run: how many it would be.", counted())
        .answers(StatusCode::ACCEPTED, "The job.", job())
        .with_header("Location", "The job's address.")
        .refuses([CONFLICT, FULL, StatusCode::TOO_MANY_REQUESTS])
}

fn dry_run() -> Member {
    optional("dry_run", Schema::flag().describe("Only count."))
}

fn bulk(tag: Tag, id: &'static str, summary: &'static str, further: fn() -> Vec<Member>) -> Operation {
    let ids =
        || Schema::list(shapes::delivery_id()).length(0, JOB_IDS_MAX).describe("Each is taken once, in this order.");
    let by_filter = [always("filter", filter_object()), dry_run()].into_iter().chain(further());
    let by_ids = [always("deliveryIds", ids()), dry_run()].into_iter().chain(further());
    let body = Schema::either([Schema::closed(by_filter), Schema::closed(by_ids)]);
    begun(Operation::new(tag, id, summary))
        .details("Works on what is there when it is asked for. Without a status in the filter those are meant to which it can be done.")
        .takes(body)
}

fn nothing_further() -> Vec<Member> {
    Vec::new()
}

fn where_to() -> Vec<Member> {
    vec![always("topic", shapes::topic_name()), optional("keep_header", Schema::flag().default_value(true))]
}

pub fn retry() -> Operation {
    bulk(Tag::Jobs, "retryDeliveries", "Retry many", nothing_further)
}

pub fn resend() -> Operation {
    bulk(Tag::Jobs, "resendDeliveries", "Send many again: a replay, by filter and time", nothing_further)
}

pub fn discard() -> Operation {
    bulk(Tag::Jobs, "discardDeliveries", "Discard many", nothing_further)
}

pub fn set_aside() -> Operation {
    bulk(Tag::Jobs, "setDeliveriesAside", "Move many that wait to the DLQ", nothing_further)
}

pub fn forward() -> Operation {
    bulk(Tag::Jobs, "forwardDeliveries", "Publish many on a topic instead", where_to)
}

pub fn resend_dead() -> Operation {
    bulk(Tag::DeadLetters, "resendDeadLetters", "Send many failed messages again", nothing_further)
}

pub fn discard_dead() -> Operation {
    bulk(Tag::DeadLetters, "discardDeadLetters", "Discard many failed messages", nothing_further)
}

pub fn forward_dead() -> Operation {
    bulk(Tag::DeadLetters, "forwardDeadLetters", "Publish many failed messages on a topic instead", where_to)
}

pub fn set_queue_aside() -> Operation {
    let summary = "Move everything that waits for a connection to the DLQ";
    begun(names_a_connection(Operation::new(Tag::Connections, "setQueueAside", summary)))
        .may_take(Schema::closed([dry_run()]))
}

pub fn list() -> Operation {
    Operation::new(Tag::Jobs, "listJobs", "Jobs, newest first").pages().lists("A page.", job())
}

pub fn one() -> Operation {
    Operation::new(Tag::Jobs, "getJob", "A job and how far it is").gives("The job.", job())
}

fn control(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(Tag::Jobs, id, summary).gives("The job.", job()).refuses([CONFLICT, FULL])
}

pub fn pause() -> Operation {
    control("pauseJob", "Hold a job")
}

pub fn resume() -> Operation {
    control("resumeJob", "Let a job go on")
}

pub fn cancel() -> Operation {
    control("cancelJob", "Call a job off").details("What it has done stays done.")
}
