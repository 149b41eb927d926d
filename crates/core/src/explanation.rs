//! What a failure means and what to do about it, in sentences for whoever looks at three in the morning (V08, D30).
//!
//! One text for the dashboard and the command line. It must not know of any delivery: only the code, and the status that came with it.

use crate::Failure;

/// Two sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub happened: &'static str,
    pub to_do: &'static str,
}

/// `status`: that of the last attempt's answer, where one came.
pub const fn explain(failure: Failure, status: Option<u16>) -> Explanation {
    let (happened, to_do) = match failure {
        Failure::Status => match status {
            Some(status) => of_status(status),
            None => of_status(0),
        },
        Failure::Timeout => (
            "The remote system took the request and did not answer in time, so it may have acted on it.",
            "Ask there whether it arrived before you send it again; if it is only slow, raise the timeout.",
        ),
        Failure::Unreachable => (
            "No connection was made, or it broke before an answer came: address, DNS, TLS or network.",
            "Check that the address is right and that the system runs; ping the connection, then retry.",
        ),
        Failure::NotAllowed => (
            "The address is not one that requests may go to, so nothing was sent.",
            "Use a public address, or have an operator open the range with POSTRIDER_ALLOW_PRIVATE.",
        ),
        Failure::SecretUnreadable => (
            "The credentials or the signing key could not be read, so nothing was sent.",
            "Set the secret anew or rotate the key; if all of them fail, the server's secrets key is missing or another one.",
        ),
        Failure::EndpointOff => (
            "The endpoint was switched off when this came due, so nothing was sent.",
            "Mend the receiver, send it a test, switch it on, then resend.",
        ),
        Failure::NotEntitled => (
            "The project was not entitled to webhooks when this came due, so nothing was sent.",
            "Set `entitled` on the project, then resend.",
        ),
        Failure::Error => (
            "Something failed on our side, or the request could not be built from the connection's settings.",
            "Read the error below: a missing parameter is named there; anything else is in the server's log under this correlation id.",
        ),
        Failure::NotVerified => (
            "The endpoint has not shown yet that it wants to receive, so nothing was sent.",
            "Verify the endpoint, then resend.",
        ),
        Failure::TransformFailed => (
            "The transformation could not be applied, so nothing was sent: the raw payload never is.",
            "Correct the transformation of the subscription, try it on this body with the preview, then retry.",
        ),
        Failure::Expired => (
            "It waited longer than `expires_after` allows and was given up for its age.",
            "If the remote system still wants it, retry: the time then begins anew. Find out what held the queue up.",
        ),
        Failure::TooOld => (
            "It was still outstanding at the age cap and was given up for its age.",
            "If the remote system still wants it, retry: the time then begins anew.",
        ),
        Failure::Rejected => (
            "The remote system read the message and refused it: a negative acknowledgment or a fault.",
            "Read what it said: usually the message is at fault. Edit the body, then retry; the same message gets the same answer.",
        ),
        Failure::Partial => (
            "The remote system acted on some entries of the batch and refused others.",
            "Read its answer: each entry has an outcome of its own. Edit the body to those that it refused, then retry.",
        ),
        Failure::NoAck => (
            "The message was sent and no acknowledgment of it came, so the remote system may have acted on it.",
            "Ask there whether it arrived; check `recv_timeout` and that it answers with our MSH-10.",
        ),
        Failure::Interrupted => (
            "The server stopped in the middle of an attempt, so nobody knows whether the request arrived.",
            "Nothing, as a rule: it is sent again under the same ids. If it ended here, ask the remote system, then retry.",
        ),
        Failure::Discarded => (
            "Somebody, or the dead-letter queue's action, discarded it.",
            "Nothing. A resend brings it back as long as the log keeps it; the audit log says who it was.",
        ),
    };
    Explanation { happened, to_do }
}

const fn of_status(status: u16) -> (&'static str, &'static str) {
    match status {
        300..400 => (
            "The remote system answered with a redirect, and redirects are not followed.",
            "Set the connection's address to the one that it redirects to, then retry.",
        ),
        401 | 403 => (
            "The remote system does not accept the credentials.",
            "Correct the security definition of the connection, or have the rights granted there, then retry.",
        ),
        404 | 405 | 410 => (
            "There is nothing at this address, or nothing that takes this method.",
            "Correct the address or the path of the connection, then retry.",
        ),
        413 => (
            "The body is larger than the remote system takes.",
            "Have its limit raised, or send less; the same body gets the same answer.",
        ),
        408 | 425 | 429 => (
            "The remote system has too much to do and asked to be left alone for a while.",
            "Wait, then retry; if it happens often, lower the rate or the concurrency of the connection.",
        ),
        400..500 => (
            "The remote system refused the request: as a rule something in it is wrong.",
            "Read its answer, edit the body, then retry; the same request gets the same answer.",
        ),
        500..600 => (
            "The remote system failed while it worked on the request.",
            "Its operators find the reason in its own log; once it is well again, retry.",
        ),
        _ => (
            "The remote system answered with something other than success.",
            "Read its answer; once the reason is gone, retry.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v08_every_failure_is_explained_in_sentences_that_say_what_to_do() {
        for failure in Failure::ALL {
            for status in [None, Some(302), Some(401), Some(404), Some(413), Some(422), Some(429), Some(503), Some(999)]
            {
                let Explanation { happened, to_do } = explain(failure, status);
                for sentence in [happened, to_do] {
                    assert!(sentence.ends_with('.') && sentence.len() > 7, "{failure}: {sentence}");
                    assert!(sentence.starts_with(|letter: char| letter.is_uppercase()), "{failure}: {sentence}");
                }
            }
        }
    }

    #[test]
    fn v08_a_status_says_more_than_that_it_failed() {
        let said = |status| explain(Failure::Status, Some(status)).to_do;
        assert!(said(401).contains("security definition"));
        assert!(said(301).contains("address"));
        assert!(said(422).contains("edit the body"));
        assert!(said(503).contains("retry"));
        assert_ne!(said(429), said(400));
    }

    #[test]
    fn what_may_have_arrived_is_said_to() {
        for failure in [Failure::Timeout, Failure::NoAck, Failure::Interrupted] {
            let Explanation { happened, .. } = explain(failure, None);
            assert!(happened.contains("may have acted") || happened.contains("nobody knows"), "{happened}");
        }
    }
}
