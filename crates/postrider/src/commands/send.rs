//! `send` and `publish`: prints the result object, and ends with 6 when the request is neither delivered nor in the queue (D13).

use postrider::{Call, FhirFields, SendResult};

use super::reach;
use crate::args::{GlobalArgs, SendArgs};
use crate::exit::{Exit, Failed};
use crate::output;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Send,
    Publish,
}

pub async fn run(global: &GlobalArgs, args: SendArgs, how: How) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    let body = reach::body(args.body.as_ref())?;
    let call = Call {
        method: args.method,
        path: args.path,
        params: args.params,
        headers: args.headers,
        operation: args.operation,
        fhir: FhirFields {
            resource_type: args.fhir.resource_type,
            id: args.fhir.id,
            version_id: args.fhir.version_id,
            url: args.fhir.url,
            if_none_exist: args.fhir.if_none_exist,
            if_match: args.fhir.if_match,
            if_none_match: args.fhir.if_none_match,
            if_modified_since: args.fhir.if_modified_since,
            prefer: args.fhir.prefer,
        },
        body,
    };
    let result = match how {
        How::Send => client.send(&args.connection, &call).await?,
        How::Publish => client.publish(&args.connection, &call).await?,
    };
    output::print_json(&result);
    Ok(exit(&result))
}

fn exit(result: &SendResult) -> Exit {
    if result.is_ok || result.is_in_queue {
        Exit::Done
    } else if result.msg_id.is_none() {
        // It is nowhere: only storing can have failed.
        Exit::StoreUnavailable
    } else {
        Exit::NotDelivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z30_delivered_or_queued_is_success_and_all_else_is_not_delivered() {
        let flags = |is_ok, is_in_queue, is_in_dlq| {
            let msg_id = Some("msg_1".to_owned());
            exit(&SendResult { is_ok, is_in_queue, is_in_dlq, msg_id, ..SendResult::default() })
        };
        assert_eq!(flags(true, false, false), Exit::Done);
        assert_eq!(flags(false, true, false), Exit::Done);
        assert_eq!(flags(false, false, true), Exit::NotDelivered);
        assert_eq!(flags(false, false, false), Exit::NotDelivered);
        assert_eq!(exit(&SendResult::default()), Exit::StoreUnavailable);
    }
}
