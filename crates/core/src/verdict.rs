//! What a reply means: delivered, or failed and whether another attempt could help.
//!
//! This module must not know of retries, queues or clocks; `decide` draws the consequences.

use crate::ack::AckMeaning;
use crate::connection::{PartialBatch, RetryOn, Target};
use crate::soap::{SoapAnswer, SoapVersion};
use crate::success_if::SuccessIf;
use crate::{Failure, NoAnswer, NoAnswerKind, Reply};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Delivered,
    Failed(Failed),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub failure: Failure,
    /// One sentence for people.
    pub error: String,
    pub again: Again,
    /// The status, when one came.
    pub status: Option<u16>,
}

/// Whether sending the same again could end differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    Worthwhile,
    /// The message itself is at fault (Z15).
    Pointless,
    /// Part of it was done, and would be done twice.
    Harmful,
    /// It may not be sent at all (R14).
    Refused,
}

/// The verdict that this kind of target comes to.
pub fn of(target: &Target, reply: &Reply) -> Verdict {
    match target {
        Target::Rest(_) | Target::Webhook(_) => over_http(reply),
        Target::Mllp(mllp) => over_mllp(mllp.retry_on, reply),
        Target::Soap(soap) => over_soap(soap.version, soap.success_if.as_ref(), reply),
        Target::Fhir(fhir) => over_fhir(fhir.partial, reply),
        Target::Channel(_) | Target::Service(_) => of_run(reply),
    }
}

/// Whether a service's code came to its end, in the answer of a host that knows: `ok`, or `failed`.
pub const RUN_HEADER: &str = "x-postrider-run";
/// The kind of error that ended it.
pub const RUN_ERROR_HEADER: &str = "x-postrider-error";
const SHOWN_CHARS_MAX: usize = 200;

/// The verdict on a run of a service (Z41): what its host says of it, whatever status the service set; of any other server, 2xx is success.
pub fn of_run(reply: &Reply) -> Verdict {
    let Some(answer) = reply.answer() else { return over_http(reply) };
    match answer.headers.get(RUN_HEADER) {
        Some("ok") => Verdict::Delivered,
        Some("failed") => {
            let kind: String =
                answer.headers.get(RUN_ERROR_HEADER).unwrap_or_default().chars().take(SHOWN_CHARS_MAX).collect();
            let error =
                if kind.is_empty() { "the service failed".to_owned() } else { format!("the service failed: {kind}") };
            Verdict::Failed(Failed { failure: Failure::Status, error, again: Again::Worthwhile, status: answer.status })
        }
        _ => over_http(reply),
    }
}

/// The verdict over HTTP: a status line decides, and only 2xx is a delivery (Z10, R16, V01).
pub fn over_http(reply: &Reply) -> Verdict {
    let answer = match reply {
        Reply::Answered(answer) => answer,
        Reply::Unanswered(none) => return unanswered(none),
    };
    match answer.status {
        Some(200..300) => Verdict::Delivered,
        Some(status) => Verdict::Failed(Failed {
            failure: Failure::Status,
            error: status_error(status),
            again: Again::Worthwhile,
            status: Some(status),
        }),
        None => unanswered(&NoAnswer { kind: NoAnswerKind::Internal, detail: "an answer without a status".to_owned() }),
    }
}

/// The verdict over MLLP: the acknowledgment code decides, and only `AA` and `CA` are deliveries (Z01, Z32, D25).
///
/// `AR` asks for another attempt; `AE` says that the message itself is at fault, unless the connection knows better (`retry_on`).
pub fn over_mllp(retry_on: RetryOn, reply: &Reply) -> Verdict {
    let answer = match reply {
        Reply::Answered(answer) => answer,
        Reply::Unanswered(none) => return unanswered(none),
    };
    let Some(ack) = answer.ack() else {
        let detail = "an answer without an acknowledgment".to_owned();
        return unanswered(&NoAnswer { kind: NoAnswerKind::NoAck, detail });
    };
    let helps = match ack.code.meaning() {
        AckMeaning::Accepted => return Verdict::Delivered,
        AckMeaning::Error => retry_on.errors,
        AckMeaning::Reject => retry_on.rejects,
    };
    let again = if helps { Again::Worthwhile } else { Again::Pointless };
    Verdict::Failed(Failed { failure: Failure::Rejected, error: ack.shown(), again, status: None })
}

/// The verdict over SOAP: a fault is a failure under any status, and without one the status decides, also where the envelope cannot be read (D24).
///
/// Every failure may be tried again: settings are live, so a mended connection makes another envelope of the same message.
pub fn over_soap(version: SoapVersion, success_if: Option<&SuccessIf>, reply: &Reply) -> Verdict {
    let asked = version.as_str();
    let Some(answer) = reply.answer() else { return over_http(reply) };
    let Some(fault) = answer.fault() else {
        let mut verdict = over_http(reply);
        if let Some(error) = not_a_success(success_if, &verdict, answer.soap()) {
            return Verdict::Failed(Failed {
                failure: Failure::Rejected,
                error,
                again: Again::Worthwhile,
                status: None,
            });
        }
        if let (Verdict::Failed(failed), Some(415)) = (&mut verdict, answer.status) {
            failed.error =
                format!("HTTP 415: the server does not take messages of SOAP {asked}; is `soap_version` right?");
        }
        return verdict;
    };
    let status = answer.status.filter(|status| !(200..300).contains(status));
    let mut error = fault.shown();
    if let Some(status) = answer.status {
        error.push_str(&format!(" (HTTP {status})"));
    }
    if fault.is_version_mismatch() {
        error.push_str(&format!("; SOAP {asked} was spoken: is `soap_version` right?"));
    }
    Verdict::Failed(Failed { failure: Failure::Rejected, error, again: Again::Worthwhile, status })
}

/// What a delivery lacks that has to say more than 2xx (S04). An envelope that cannot be read says nothing, and stays a delivery (D24).
fn not_a_success(success_if: Option<&SuccessIf>, verdict: &Verdict, said: Option<&SoapAnswer>) -> Option<String> {
    let said = said.filter(|said| said.remark.is_none() && *verdict == Verdict::Delivered)?;
    success_if?.refuses(&said.data).map(|why| format!("the answer is no success: {why}"))
}

/// The verdict over FHIR: the status decides, whatever the body says beside it; 304 answers a conditional read.
///
/// A batch is answered 200 although entries of it were refused. It is a failure then, and never sent again by itself: what was done would be
/// done twice. Statuses are tried again as over REST, also 409, 412 and 422: what an entry refers to may be there by then.
pub fn over_fhir(partial: PartialBatch, reply: &Reply) -> Verdict {
    let Some(said) = reply.answer().and_then(|answer| answer.fhir()) else { return over_http(reply) };
    let status = reply.answer().and_then(|answer| answer.status);
    if said.not_modified && status == Some(304) {
        return Verdict::Delivered;
    }
    let mut verdict = over_http(reply);
    match &mut verdict {
        Verdict::Delivered => match (partial, said.refused_entries()) {
            (PartialBatch::Failed, Some(error)) => {
                Verdict::Failed(Failed { failure: Failure::Partial, error, again: Again::Harmful, status: None })
            }
            _ => Verdict::Delivered,
        },
        Verdict::Failed(failed) => {
            if let Some(explained) = said.explained() {
                failed.error.push_str(": ");
                failed.error.push_str(&explained);
            }
            if let Some(entries) = said.conditional_entries().filter(|_| status == Some(412)) {
                failed.error.push_str(&entries);
            }
            verdict
        }
    }
}

fn unanswered(none: &NoAnswer) -> Verdict {
    let (failure, again) = match none.kind {
        NoAnswerKind::Timeout => (Failure::Timeout, Again::Worthwhile),
        NoAnswerKind::Unreachable => (Failure::Unreachable, Again::Worthwhile),
        NoAnswerKind::NoAck => (Failure::NoAck, Again::Worthwhile),
        NoAnswerKind::NotAllowed => (Failure::NotAllowed, Again::Refused),
        // Somebody may bring the key back; until then nothing goes out without credentials.
        NoAnswerKind::SecretUnreadable => (Failure::SecretUnreadable, Again::Worthwhile),
        // The transformation may be mended before the next attempt; it is always the live one (D21).
        NoAnswerKind::TransformFailed => (Failure::TransformFailed, Again::Worthwhile),
        // The connection may be mended before the next attempt, so one is still worth making.
        NoAnswerKind::Unsendable | NoAnswerKind::Internal => (Failure::Error, Again::Worthwhile),
    };
    Verdict::Failed(Failed { failure, error: none.detail.clone(), again, status: None })
}

fn status_error(status: u16) -> String {
    match status {
        300..400 => format!("HTTP {status}: redirects are not followed"),
        status => format!("HTTP {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::{Ack, AckCode};
    use crate::fhir::{Entry, FhirAnswer, Issue};
    use crate::soap::SoapFault;
    use crate::{Answer, Said};

    fn answered(status: u16, incomplete: bool) -> Reply {
        Reply::Answered(Answer { status: Some(status), incomplete, ..Answer::default() })
    }

    #[test]
    fn z41_a_host_says_whether_the_run_came_to_its_end() {
        let said = |status: u16, pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let headers = crate::message::HeaderList::try_from(pairs).unwrap();
            of_run(&Reply::Answered(Answer { status: Some(status), headers, ..Answer::default() }))
        };
        assert_eq!(said(404, &[("X-Postrider-Run", "ok")]), Verdict::Delivered, "the service chose the status");
        let Verdict::Failed(failed) = said(500, &[("x-postrider-run", "failed"), ("x-postrider-error", "KeyError")])
        else {
            panic!("it raised")
        };
        assert_eq!((failed.error.as_str(), failed.status), ("the service failed: KeyError", Some(500)));
        assert!(matches!(said(200, &[("x-postrider-run", "failed")]), Verdict::Failed(_)));
        assert_eq!(said(204, &[]), Verdict::Delivered);
        assert!(matches!(said(404, &[]), Verdict::Failed(_)));
    }

    // proves: V01, R16
    #[test]
    fn z10_only_2xx_is_a_delivery_and_the_status_line_decides() {
        for status in 100..600 {
            for incomplete in [false, true] {
                let delivered = over_http(&answered(status, incomplete)) == Verdict::Delivered;
                assert_eq!(delivered, (200..300).contains(&status), "{status}");
            }
        }
    }

    #[test]
    fn v08_each_way_of_getting_no_answer_has_its_code() {
        for (kind, failure, again) in [
            (NoAnswerKind::Timeout, Failure::Timeout, Again::Worthwhile),
            (NoAnswerKind::Unreachable, Failure::Unreachable, Again::Worthwhile),
            (NoAnswerKind::NoAck, Failure::NoAck, Again::Worthwhile),
            (NoAnswerKind::NotAllowed, Failure::NotAllowed, Again::Refused),
            (NoAnswerKind::Unsendable, Failure::Error, Again::Worthwhile),
            (NoAnswerKind::Internal, Failure::Error, Again::Worthwhile),
            (NoAnswerKind::SecretUnreadable, Failure::SecretUnreadable, Again::Worthwhile),
            (NoAnswerKind::TransformFailed, Failure::TransformFailed, Again::Worthwhile),
        ] {
            let Verdict::Failed(failed) = over_http(&Reply::unanswered(kind, "why")) else { panic!("{kind:?}") };
            assert_eq!((failed.failure, failed.again, failed.error.as_str()), (failure, again, "why"));
        }
    }

    fn acknowledged(code: AckCode) -> Reply {
        let said = Some(Said::Ack(Ack::single(code, Some("bed taken".to_owned()))));
        Reply::Answered(Answer { said, ..Answer::default() })
    }

    // proves: Z01, Z32
    #[test]
    fn d25_ar_may_help_ae_does_not_and_a_connection_may_say_otherwise() {
        let both = RetryOn { errors: true, rejects: true };
        let none = RetryOn { errors: false, rejects: false };
        for (code, retry_on, again) in [
            (AckCode::Ae, RetryOn::STANDARD, Again::Pointless),
            (AckCode::Ce, RetryOn::STANDARD, Again::Pointless),
            (AckCode::Ar, RetryOn::STANDARD, Again::Worthwhile),
            (AckCode::Cr, RetryOn::STANDARD, Again::Worthwhile),
            (AckCode::Ae, both, Again::Worthwhile),
            (AckCode::Ar, none, Again::Pointless),
        ] {
            let Verdict::Failed(failed) = over_mllp(retry_on, &acknowledged(code)) else { panic!("{code}") };
            assert_eq!((failed.failure, failed.again, failed.status), (Failure::Rejected, again, None), "{code}");
            assert_eq!(failed.error, format!("{code} bed taken"));
        }
        for code in [AckCode::Aa, AckCode::Ca] {
            assert_eq!(over_mllp(none, &acknowledged(code)), Verdict::Delivered);
        }
    }

    #[test]
    fn z01_an_answer_without_an_acknowledgment_is_none() {
        let Verdict::Failed(failed) = over_mllp(RetryOn::STANDARD, &Reply::of_status(200)) else { panic!("delivered") };
        assert_eq!((failed.failure, failed.again), (Failure::NoAck, Again::Worthwhile));
    }

    fn faulted(status: u16, code: &str) -> Reply {
        let fault = SoapFault {
            code: code.to_owned(),
            subcodes: Vec::new(),
            reason: "no bed".to_owned(),
            actor: None,
            detail: serde_json::Value::Null,
        };
        let said = Said::Soap(Box::new(SoapAnswer { fault: Some(fault), ..SoapAnswer::default() }));
        Reply::Answered(Answer { status: Some(status), said: Some(said), ..Answer::default() })
    }

    // proves: Z01, Z34
    #[test]
    fn d24_a_fault_is_a_failure_under_any_status_and_worth_another_attempt() {
        for status in [200, 400, 429, 500] {
            let Verdict::Failed(failed) = over_soap(SoapVersion::V11, None, &faulted(status, "Server")) else {
                panic!("{status}")
            };
            assert_eq!((failed.failure, failed.again), (Failure::Rejected, Again::Worthwhile));
            // A ladder asks whether the status is worth another attempt, and 200 says nothing of that.
            assert_eq!(failed.status, Some(status).filter(|status| *status != 200));
            assert_eq!(failed.error, format!("SOAP fault Server: no bed (HTTP {status})"));
        }
        let Verdict::Failed(failed) = over_soap(SoapVersion::V12, None, &faulted(500, "VersionMismatch")) else {
            panic!()
        };
        assert!(failed.error.contains("SOAP 1.2 was spoken"), "{}", failed.error);
    }

    // proves: Z34
    #[test]
    fn z34_s04_an_answer_that_says_no_under_200_is_a_failure_where_somebody_said_how_to_tell() {
        let wants = SuccessIf::parse("/status = OK").unwrap();
        let says = |data: serde_json::Value, remark: Option<&str>| {
            let said = SoapAnswer { data, remark: remark.map(str::to_owned), ..SoapAnswer::default() };
            Reply::Answered(Answer { status: Some(200), said: Some(Said::Soap(Box::new(said))), ..Answer::default() })
        };
        let no = serde_json::json!({"status": "ERROR"});
        let over = |reply: &Reply| over_soap(SoapVersion::V11, Some(&wants), reply);
        let Verdict::Failed(failed) = over(&says(no.clone(), None)) else { panic!("delivered") };
        assert_eq!((failed.failure, failed.again, failed.status), (Failure::Rejected, Again::Worthwhile, None));
        assert!(failed.error.contains("`/status` is `ERROR`"), "{}", failed.error);
        assert_eq!(over(&says(serde_json::json!({"status": "OK"}), None)), Verdict::Delivered);
        assert_eq!(over(&says(no, Some("it was cut"))), Verdict::Delivered, "D24");
        assert_eq!(over(&Reply::of_status(202)), Verdict::Delivered, "a one-way operation has no answer");
    }

    fn resource(status: u16, said: FhirAnswer) -> Reply {
        Reply::Answered(Answer { status: Some(status), said: Some(Said::Fhir(Box::new(said))), ..Answer::default() })
    }

    fn issue(diagnostics: &str) -> Issue {
        Issue {
            severity: "error".to_owned(),
            code: "invalid".to_owned(),
            diagnostics: diagnostics.to_owned(),
            ..Issue::default()
        }
    }

    // proves: Z33
    #[test]
    fn z33_f08_f10_the_status_decides_and_an_outcome_explains() {
        let said = FhirAnswer { issues: vec![issue("no date")], ..FhirAnswer::default() };
        // F10: an OperationOutcome on success changes nothing.
        assert_eq!(over_fhir(PartialBatch::Failed, &resource(201, said.clone())), Verdict::Delivered);
        for status in [400, 409, 412, 422, 429, 500] {
            let Verdict::Failed(failed) = over_fhir(PartialBatch::Failed, &resource(status, said.clone())) else {
                panic!("{status}")
            };
            assert_eq!(
                (failed.failure, failed.again, failed.status),
                (Failure::Status, Again::Worthwhile, Some(status))
            );
            assert_eq!(failed.error, format!("HTTP {status}: error:invalid: no date"));
        }
        let bare = resource(503, FhirAnswer::default());
        assert_eq!(over_fhir(PartialBatch::Failed, &bare), over_http(&Reply::of_status(503)));
        let conditional = FhirAnswer { conditional: vec![1, 4], ..said };
        let Verdict::Failed(failed) = over_fhir(PartialBatch::Failed, &resource(412, conditional)) else { panic!() };
        assert!(failed.error.ends_with("; entries with a condition: 1, 4"), "{}", failed.error);
    }

    // proves: Z12
    #[test]
    fn z12_f24_only_a_conditional_read_is_answered_304() {
        let said = |not_modified| FhirAnswer { not_modified, ..FhirAnswer::default() };
        assert_eq!(over_fhir(PartialBatch::Failed, &resource(304, said(true))), Verdict::Delivered);
        assert!(matches!(over_fhir(PartialBatch::Failed, &resource(304, said(false))), Verdict::Failed(_)));
    }

    // proves: Z33
    #[test]
    fn z33_f13_a_batch_with_refused_entries_is_a_failure_that_is_not_sent_again() {
        let entry = |status| Entry { status, ..Entry::default() };
        let refused = Entry { issues: vec![issue("who?")], ..entry(Some(404)) };
        let mixed = FhirAnswer { entries: vec![entry(Some(201)), refused, entry(None)], ..FhirAnswer::default() };
        let Verdict::Failed(failed) = over_fhir(PartialBatch::Failed, &resource(200, mixed.clone())) else { panic!() };
        assert_eq!((failed.failure, failed.again, failed.status), (Failure::Partial, Again::Harmful, None));
        assert_eq!(
            failed.error,
            "2 of 3 entries were not done: entry 2: HTTP 404: error:invalid: who?; entry 3: without a status"
        );
        assert_eq!(over_fhir(PartialBatch::Delivered, &resource(200, mixed)), Verdict::Delivered);
        let whole = FhirAnswer { entries: vec![entry(Some(200)), entry(Some(304))], ..FhirAnswer::default() };
        assert_eq!(over_fhir(PartialBatch::Failed, &resource(200, whole)), Verdict::Delivered);
    }

    #[test]
    fn d24_without_a_fault_the_status_decides_and_an_unreadable_2xx_is_delivered() {
        let remark = SoapAnswer { remark: Some("the answer is no envelope".to_owned()), ..SoapAnswer::default() };
        let reply = |status| {
            let said = Some(Said::Soap(Box::new(remark.clone())));
            Reply::Answered(Answer { status: Some(status), said, ..Answer::default() })
        };
        assert_eq!(over_soap(SoapVersion::V11, None, &reply(200)), Verdict::Delivered);
        assert_eq!(over_soap(SoapVersion::V11, None, &reply(502)), over_http(&Reply::of_status(502)));
        let Verdict::Failed(failed) = over_soap(SoapVersion::V12, None, &reply(415)) else { panic!() };
        assert!(failed.error.contains("soap_version"), "{}", failed.error);
    }
}
