//! Why no answer came, in one sentence for people: which host, at what point, from which cause.
//!
//! Never a body, a header or a credential is in it. It must not know what the sentence leads to.

use std::error::Error;
use std::io;

use postrider_core::{NoAnswerKind, Reply, Wait};

use super::connect::ConnectError;
use crate::egress::{Host, NotOpened, Stage};

/// A cause longer than this is cut.
const CAUSE_CHARS_MAX: usize = 300;

pub(super) fn timed_out(host: &Host, timeout: Wait, stage: Stage, pool_size: u32) -> Reply {
    let host = host.shown();
    let detail = match stage {
        Stage::Slot => {
            format!("no answer from {host} within {timeout}: all {pool_size} of the connection's sockets were busy")
        }
        Stage::Token => {
            format!("nothing was sent to {host} within {timeout}: the token for it was still being fetched")
        }
        Stage::Resolve => format!("no answer from {host} within {timeout}: its name was still being resolved"),
        Stage::Connect => format!("no answer from {host} within {timeout}: the connection was not accepted"),
        Stage::Tls => format!("no answer from {host} within {timeout}: the TLS handshake was not finished"),
        Stage::Answer => format!("no answer from {host} within {timeout}"),
    };
    // D32: without a token nothing was asked of the remote system itself.
    let kind = if stage == Stage::Token { NoAnswerKind::Unreachable } else { NoAnswerKind::Timeout };
    Reply::unanswered(kind, detail)
}

pub(crate) fn not_connected(host: &Host, error: &ConnectError) -> Reply {
    let shown = host.shown();
    match error {
        ConnectError::NotOpened(error) => not_opened(host, error),
        ConnectError::TlsSettings(error) => Reply::unanswered(NoAnswerKind::Unsendable, error.to_string()),
        ConnectError::Tls(error) => Reply::unanswered(
            NoAnswerKind::Unreachable,
            refused_us(shown, error).unwrap_or_else(|| format!("TLS with {shown} failed: {}", cause_of(error))),
        ),
        ConnectError::Internal(text) => Reply::unanswered(NoAnswerKind::Internal, text.clone()),
    }
}

fn not_opened(host: &Host, error: &NotOpened) -> Reply {
    let (shown, name) = (host.shown(), host.name());
    let blamed = |error: &io::Error| {
        if is_our_shortage(error) { NoAnswerKind::Internal } else { NoAnswerKind::Unreachable }
    };
    match error {
        NotOpened::Resolve(error) => {
            Reply::unanswered(blamed(error), format!("{name} cannot be resolved: {}", cause_of(error)))
        }
        NotOpened::NoAddress => {
            Reply::unanswered(NoAnswerKind::Unreachable, format!("{name} cannot be resolved: it has no address"))
        }
        NotOpened::Refused(refused) => {
            Reply::unanswered(NoAnswerKind::NotAllowed, format!("{shown} may not be reached: {refused}"))
        }
        NotOpened::Connect(error) => {
            Reply::unanswered(blamed(error), format!("cannot connect to {shown}: {}", cause_of(error)))
        }
    }
}

/// The exchange broke before a status line. `sent`: bytes of the request had gone out, so whether the remote acted on it is unknown.
pub(crate) fn broken_off(host: &Host, error: &hyper::Error, sent: bool) -> Reply {
    let shown = host.shown();
    // TLS 1.3 tells only after our side of the handshake is done, so with the first answer.
    if let Some(detail) = refused_us(shown, error) {
        return Reply::unanswered(NoAnswerKind::Unreachable, detail);
    }
    let io_error = io_cause(error);
    let closed = error.is_incomplete_message() || error.is_canceled() || error.is_closed();
    let reset = io_error.is_some_and(|io| {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
        matches!(io.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof)
    });
    let detail = if error.is_parse() || error.is_parse_too_large() {
        format!("{shown} gave no valid HTTP answer: {}", cause_of(error))
    } else if closed || reset {
        let how = if closed { "closed" } else { "reset" };
        let when = if sent { "reset after write" } else { "before anything was sent" };
        format!("{shown}: connection {how} before an answer ({when})")
    } else {
        format!("{shown} gave no answer: {}", cause_of(error))
    };
    Reply::unanswered(NoAnswerKind::Unreachable, detail)
}

/// The other side's word on whom we showed ourselves to be, where it gave one.
fn refused_us(shown: &str, error: &(dyn Error + 'static)) -> Option<String> {
    use rustls::AlertDescription as Alert;
    let alert = match io_cause(error)?.get_ref()?.downcast_ref()? {
        rustls::Error::AlertReceived(alert) => *alert,
        _ => return None,
    };
    let why = match alert {
        Alert::CertificateRequired | Alert::NoCertificate => "it demands a client certificate and was shown none",
        Alert::UnknownCA => "it does not know the authority of our client certificate",
        Alert::CertificateExpired => "our client certificate has expired",
        Alert::CertificateRevoked => "our client certificate was revoked",
        Alert::BadCertificate | Alert::UnsupportedCertificate | Alert::CertificateUnknown | Alert::AccessDenied => {
            "it does not take our client certificate"
        }
        // How servers of TLS 1.2 put it when they are shown none, and not only then.
        Alert::HandshakeFailure => "it refused the handshake, as a server does that demands a client certificate",
        _ => return None,
    };
    Some(format!("TLS with {shown} failed: {why} ({alert:?})"))
}

/// A stream that carries no HTTP broke; `when` says at what point.
pub(super) fn broken(shown: &str, error: &io::Error, when: &str) -> Reply {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    if let Some(detail) = refused_us(shown, error) {
        return Reply::unanswered(NoAnswerKind::Unreachable, detail);
    }
    let detail = match error.kind() {
        UnexpectedEof | ConnectionAborted => format!("{shown}: connection closed {when}"),
        BrokenPipe | ConnectionReset | NotConnected => format!("{shown}: connection reset {when}"),
        _ => format!("{shown}: connection broken {when}: {}", cause_of(error)),
    };
    Reply::unanswered(NoAnswerKind::Unreachable, detail)
}

/// Out of files, memory or ports: the remote is not to blame.
fn is_our_shortage(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::OutOfMemory)
        || matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

fn io_cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    std::iter::successors(Some(error), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

/// The error and what lies beneath it, each said once, without control characters.
fn cause_of(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for error in std::iter::successors(Some(error), |error| (*error).source()) {
        let said = error.to_string();
        if !text.contains(&said) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&said);
        }
    }
    text.chars().filter(|c| !c.is_control()).take(CAUSE_CHARS_MAX).collect()
}
