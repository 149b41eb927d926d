//! A queue at whose head a message stands that its receiver has refused for good (D25): without a DLQ it stays there, attempted once a round, and
//! everything behind it waits until somebody edits it or sets it aside.
//!
//! It must not know how a head is found, nor who is told.

use crate::Failure;
use crate::ack::{AckCode, AckMeaning};
use crate::connection::Connection;
use crate::delivery::{Progress, Status};

/// The code that the receiver refused it with; `None` where the head may still go through by itself.
pub fn blocked_by(connection: &Connection, head: &Progress) -> Option<AckCode> {
    let mllp = connection.spec.target.mllp()?;
    let policy = &connection.spec.policy;
    let waits = head.status == Status::Pending && head.failure == Some(Failure::Rejected) && head.rounds > 0;
    if !waits || !policy.queue.ordered || policy.dlq.use_dlq {
        return None;
    }
    // The error begins with the code, as the verdict writes it.
    let code = AckCode::parse(head.error.as_deref()?.split_ascii_whitespace().next()?.as_bytes())?;
    let helps = match code.meaning() {
        AckMeaning::Accepted => return None,
        AckMeaning::Error => mllp.retry_on.errors,
        AckMeaning::Reject => mllp.retry_on.rejects,
    };
    (!helps).then_some(code)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Timestamp;
    use crate::connection::{ConnectionKind, ConnectionSpec};
    use crate::id::{ConnectionId, ProjectId};

    fn lis(more: serde_json::Value) -> Connection {
        let mut written =
            json!({"address": "lis:2575", "use_queue": true, "use_dlq": false}).as_object().unwrap().clone();
        written.extend(more.as_object().unwrap().clone());
        let spec = ConnectionSpec::parse(ConnectionKind::Mllp, &written).unwrap();
        Connection {
            id: ConnectionId::from_u128(1),
            project_id: ProjectId::from_u128(1),
            name: "LIS".to_owned(),
            written,
            spec,
            paused: false,
            version: 1,
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
        }
    }

    fn head(error: &str) -> Progress {
        let accepted = Progress::accepted(Timestamp::from_millis(0));
        Progress { failure: Some(Failure::Rejected), error: Some(error.to_owned()), rounds: 1, ..accepted }
    }

    #[test]
    fn d25_a_head_that_was_refused_for_good_blocks_where_there_is_no_dlq() {
        let blocked = |more, head: &Progress| blocked_by(&lis(more), head);
        assert_eq!(blocked(json!({}), &head("AE unknown patient")), Some(AckCode::Ae));
        assert_eq!(blocked(json!({}), &head("CE")), Some(AckCode::Ce));
        assert_eq!(blocked(json!({}), &head("AR busy")), None, "it goes through once the receiver is ready");
        assert_eq!(blocked(json!({"retry_on": []}), &head("AR busy")), Some(AckCode::Ar));
        assert_eq!(blocked(json!({"retry_on": ["AE", "AR"]}), &head("AE x")), None);
        assert_eq!(blocked(json!({"use_dlq": true}), &head("AE x")), None, "it goes there");
        assert_eq!(blocked(json!({"ordered": false}), &head("AE x")), None, "nobody waits behind it");
        assert_eq!(
            blocked(json!({}), &Progress { rounds: 0, ..head("AE x") }),
            None,
            "not attempted from the queue yet"
        );
        assert_eq!(blocked(json!({}), &Progress { failure: Some(Failure::NoAck), ..head("AE x") }), None);
    }
}
