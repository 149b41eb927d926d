//! What PostgreSQL says went wrong, sorted by what may be done about it. It must not decide for whom.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::StoreError;

/// The limit's name when the database's own disk is full.
const DISK: &str = "disk";

/// How a call failed, before anybody is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The call's own answer; the same again would get the same.
    Refused(StoreError),
    /// Another transaction was in the way, and this one was rolled back: the same again may pass.
    Again(StoreError),
    /// The connection or the server is gone.
    Lost(StoreError),
    /// It has not answered in time. Another try would wait as long.
    Silent(StoreError),
}

pub(super) type Outcome<T> = Result<T, Fault>;

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Fault::Refused(error)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(error) | Fault::Again(error) | Fault::Lost(error) | Fault::Silent(error) => error,
        }
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(answer) = error.as_db_error() else {
            return if error.is_closed()
                || std::error::Error::source(&error).is_some_and(|source| source.is::<std::io::Error>())
            {
                Fault::Lost(StoreError::Unavailable(format!(
                    "the connection to the database is lost: {}",
                    causes(&error)
                )))
            } else {
                Fault::Refused(StoreError::Corrupt(causes(&error)))
            };
        };
        // The message only: details may quote what is stored.
        let text = format!("{} ({})", answer.message(), answer.code().code());
        let code = answer.code();
        if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code) {
            return Fault::Again(StoreError::Unavailable(format!("another transaction is in the way: {text}")));
        }
        // It has waited as long as anybody is kept waiting; the session is as good as before.
        if *code == SqlState::LOCK_NOT_AVAILABLE {
            return Fault::Refused(StoreError::Unavailable(format!(
                "another session keeps a lock for too long: {text}"
            )));
        }
        if *code == SqlState::QUERY_CANCELED {
            return Fault::Refused(StoreError::Unavailable(format!("the database took too long: {text}")));
        }
        if *code == SqlState::DISK_FULL {
            return Fault::Refused(StoreError::Full { limit: DISK });
        }
        match &code.code()[..2] {
            // The server stops, starts, has no place left, or has become a copy that only reads.
            "08" | "53" | "57" => {
                Fault::Lost(StoreError::Unavailable(format!("the database is not available: {text}")))
            }
            "25" if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
                Fault::Lost(StoreError::Unavailable(format!("the database takes no writes: {text}")))
            }
            // Somebody ended our session between two statements.
            "25" => Fault::Lost(StoreError::Unavailable(format!("the database ended a transaction: {text}"))),
            "23" => Fault::Refused(StoreError::Conflict(text)),
            "22" | "XX" => Fault::Refused(StoreError::Corrupt(text)),
            _ => Fault::Refused(StoreError::Unavailable(format!("the database refuses: {text}"))),
        }
    }
}

impl From<PoolError> for Fault {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) => match Fault::from(error) {
                // Whatever keeps us from connecting may pass.
                Fault::Refused(error) | Fault::Again(error) | Fault::Lost(error) | Fault::Silent(error) => {
                    Fault::Lost(StoreError::Unavailable(format!("no connection to the database: {error}")))
                }
            },
            PoolError::Timeout(_) => Fault::Lost(StoreError::Unavailable(
                "no connection to the database became free in time (limit `store_connections_max`)".to_owned(),
            )),
            PoolError::Closed => Fault::Refused(StoreError::Closed),
            other => Fault::Lost(StoreError::Unavailable(format!("no connection to the database: {other}"))),
        }
    }
}

/// An error with what is behind it; the library's own text names only the outermost.
pub(super) fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
