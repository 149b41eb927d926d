//! Exit codes, and the failures that end a command. It must not know how a command came to fail.

use postrider::{ClientError, FieldProblem};

use crate::output;

/// How the program ends. The numbers are part of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    /// Anything else, such as a server that cannot be reached or a port in use.
    Failure = 1,
    /// A command line that makes no sense; clap ends with the same.
    Usage = 2,
    NotFound = 3,
    /// Refused: a setting out of range, a name that is taken, a wrong key.
    Refused = 4,
    /// The store cannot be opened, is full, or takes no writes now.
    StoreUnavailable = 5,
    /// `send` and `publish`: neither delivered nor in the queue.
    NotDelivered = 6,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}

/// Why a command failed: one line, and one more for each field.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed {
    pub exit: Exit,
    pub message: String,
    pub fields: Vec<FieldProblem>,
}

impl Failed {
    pub fn new(exit: Exit, message: impl Into<String>) -> Failed {
        Failed { exit, message: message.into(), fields: Vec::new() }
    }

    pub fn usage(message: impl Into<String>) -> Failed {
        Failed::new(Exit::Usage, message)
    }

    pub fn show(&self) {
        output::complain(&self.message);
        for field in &self.fields {
            eprintln!("  {}", field_line(field));
        }
    }
}

/// A field's message already says what is allowed, unless it doesn't.
fn field_line(field: &FieldProblem) -> String {
    match field.allowed.as_deref() {
        Some(allowed) if !field.message.contains(allowed) => {
            format!("{}: {} (allowed: {allowed})", field.field, field.message)
        }
        _ => format!("{}: {}", field.field, field.message),
    }
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(problem) => {
                let exit = match problem.status {
                    404 => Exit::NotFound,
                    503 | 507 => Exit::StoreUnavailable,
                    400..=499 => Exit::Refused,
                    _ => Exit::Failure,
                };
                let message = match problem.errors.len() {
                    // The detail of several fields only strings their messages together.
                    0 => problem.to_string(),
                    1 => "the request is refused".to_owned(),
                    fields => format!("the request is refused in {fields} fields"),
                };
                Failed { exit, message, fields: problem.errors }
            }
            ClientError::BadSetting { .. } => Failed::usage(error.to_string()),
            ClientError::Unreachable { .. } | ClientError::Unreadable { .. } => {
                Failed::new(Exit::Failure, error.to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider::Problem;

    #[test]
    fn each_kind_of_refusal_has_its_exit_code() {
        let exit =
            |status| Failed::from(ClientError::Refused(Box::new(Problem { status, ..Problem::default() }))).exit as u8;
        let cases =
            [(404, 3), (400, 4), (401, 4), (409, 4), (413, 4), (422, 4), (503, 5), (507, 5), (500, 1), (302, 1)];
        for (status, wanted) in cases {
            assert_eq!(exit(status), wanted, "{status}");
        }
        let unreachable = ClientError::Unreachable { server: "http://a".into(), reason: "refused".into() };
        assert_eq!(Failed::from(unreachable).exit as u8, 1);
        let bad = ClientError::BadSetting { what: "the key".into(), reason: "odd".into() };
        assert_eq!(Failed::from(bad).exit as u8, 2);
    }

    #[test]
    fn what_is_allowed_is_said_once() {
        let field = |message: &str, allowed: Option<&str>| {
            field_line(&FieldProblem {
                field: "f".into(),
                message: message.into(),
                allowed: allowed.map(str::to_owned),
                ..FieldProblem::default()
            })
        };
        assert_eq!(field("`f` is 9: allowed is 1 to 3", Some("1 to 3")), "f: `f` is 9: allowed is 1 to 3");
        assert_eq!(field("is missing", Some("a text")), "f: is missing (allowed: a text)");
        assert_eq!(field("is missing", None), "f: is missing");
    }
}
