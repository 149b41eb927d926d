//! What SQLite says went wrong, in the store's own words. It must not decide what follows.

use rusqlite::ErrorCode;

use crate::StoreError;

/// The limit's name when the disk itself is full.
const DISK: &str = "disk";

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::SqliteFailure(failure, _) => match failure.code {
                ErrorCode::DiskFull => StoreError::Full { limit: DISK },
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt(error.to_string()),
                ErrorCode::ConstraintViolation => StoreError::Conflict(error.to_string()),
                _ => StoreError::Unavailable(error.to_string()),
            },
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => StoreError::Corrupt(error.to_string()),
            _ => StoreError::Unavailable(error.to_string()),
        }
    }
}
