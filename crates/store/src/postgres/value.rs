//! A parameter whose type is known only when the statement is made. It must not know of statements.

use super::columns::Param;
use super::key::Key;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Key(Key),
    Int(i64),
    /// No number: what `IS NULL` asks for.
    NoInt,
    Text(String),
}

const NO_INT: Option<i64> = None;

impl Value {
    pub fn param(&self) -> Param<'_> {
        match self {
            Value::Key(key) => key,
            Value::Int(number) => number,
            Value::NoInt => &NO_INT,
            Value::Text(text) => text,
        }
    }
}
