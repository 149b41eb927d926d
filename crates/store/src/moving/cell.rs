//! One value of one row, and what a row hashes to. It must not know of tables.

use std::error::Error;

use bytes::{BufMut as _, BytesMut};
use rusqlite::types::ValueRef;
use sha2::{Digest as _, Sha256};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// What a column of the target holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Key,
    Bytes,
    Int,
    SmallInt,
    Flag,
    Text,
}

impl Kind {
    /// `None`: no column of ours has this type.
    pub fn of_type(name: &str) -> Option<Kind> {
        Some(match name {
            "uuid" => Kind::Key,
            "bytea" => Kind::Bytes,
            "bigint" => Kind::Int,
            "integer" => Kind::SmallInt,
            "boolean" => Kind::Flag,
            "text" => Kind::Text,
            _ => return None,
        })
    }

    pub const fn sql_type(self) -> Type {
        match self {
            Kind::Key => Type::UUID,
            Kind::Bytes => Type::BYTEA,
            Kind::Int => Type::INT8,
            Kind::SmallInt => Type::INT4,
            Kind::Flag => Type::BOOL,
            Kind::Text => Type::TEXT,
        }
    }

    /// `Err` says what the source has instead.
    pub fn read(self, value: ValueRef<'_>) -> Result<Cell, &'static str> {
        Ok(match (self, value) {
            (_, ValueRef::Null) => Cell::Null,
            (Kind::Key, ValueRef::Blob(bytes)) => Cell::Key(bytes.try_into().map_err(|_| "no id of 16 bytes")?),
            (Kind::Bytes, ValueRef::Blob(bytes)) => Cell::Bytes(bytes.to_vec()),
            (Kind::Int, ValueRef::Integer(number)) => Cell::Int(number),
            (Kind::SmallInt, ValueRef::Integer(number)) => {
                Cell::SmallInt(i32::try_from(number).map_err(|_| "a number that is too large")?)
            }
            (Kind::Flag, ValueRef::Integer(number @ (0 | 1))) => Cell::Flag(number == 1),
            (Kind::Text, ValueRef::Text(text)) => {
                let text = std::str::from_utf8(text).map_err(|_| "a text that is not UTF-8")?;
                // PostgreSQL's texts hold no NUL; its own store replaces it too.
                Cell::Text(crate::postgres::storable(text.into()).into_owned())
            }
            _ => return Err("a value of another kind"),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Null,
    Key([u8; 16]),
    Bytes(Vec<u8>),
    Int(i64),
    SmallInt(i32),
    Flag(bool),
    Text(String),
}

impl Cell {
    /// What it takes in memory, roughly.
    pub const fn size(&self) -> usize {
        match self {
            Cell::Bytes(bytes) => bytes.len() + 8,
            Cell::Text(text) => text.len() + 8,
            _ => 16,
        }
    }

    /// Its kind and its length go before it, so that no two rows are written alike.
    fn hash_into(&self, hash: &mut Sha256) {
        match self {
            Cell::Null => hash.update([0]),
            Cell::Key(key) => {
                hash.update([1]);
                hash.update(key);
            }
            Cell::Bytes(bytes) => {
                hash.update([2]);
                hash.update((bytes.len() as u64).to_be_bytes());
                hash.update(bytes);
            }
            Cell::Int(number) => {
                hash.update([3]);
                hash.update(number.to_be_bytes());
            }
            Cell::SmallInt(number) => {
                hash.update([4]);
                hash.update(number.to_be_bytes());
            }
            Cell::Flag(flag) => hash.update([5, u8::from(*flag)]),
            Cell::Text(text) => {
                hash.update([6]);
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text);
            }
        }
    }
}

/// The first half of SHA-256. Rows are added up, so their order does not matter and none may be missing or there twice.
pub(super) fn hash(row: &[Cell]) -> u128 {
    let mut hash = Sha256::new();
    row.iter().for_each(|cell| cell.hash_into(&mut hash));
    let digest = hash.finalize();
    digest.iter().take(16).fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}

impl ToSql for Cell {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Cell::Null => return Ok(IsNull::Yes),
            Cell::Key(key) => out.put_slice(key),
            Cell::Bytes(bytes) => out.put_slice(bytes),
            Cell::Int(number) => out.put_i64(*number),
            Cell::SmallInt(number) => out.put_i32(*number),
            Cell::Flag(flag) => out.put_u8(u8::from(*flag)),
            Cell::Text(text) => out.put_slice(text.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Cell {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *kind {
            Type::UUID => Cell::Key(raw.try_into()?),
            Type::BYTEA => Cell::Bytes(raw.to_vec()),
            Type::INT8 => Cell::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::INT4 => Cell::SmallInt(i32::from_be_bytes(raw.try_into()?)),
            Type::BOOL => Cell::Flag(raw != [0]),
            _ => Cell::Text(std::str::from_utf8(raw)?.to_owned()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Cell::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
