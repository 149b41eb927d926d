//! Ids as the database has them: the type `uuid`, 16 bytes that sort as our ids do. It must not know whose id one is.

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key([u8; 16]);

impl Key {
    pub const ZERO: Key = Key([0; 16]);

    pub const fn of(id: u128) -> Self {
        Key(id.to_be_bytes())
    }

    pub const fn number(self) -> u128 {
        u128::from_be_bytes(self.0)
    }
}

impl ToSql for Key {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }
    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Key {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Key(raw.try_into()?))
    }
    accepts!(UUID);
}

/// An id of one of our kinds.
pub(super) trait Id: Copy {
    fn key(self) -> Key;
}

macro_rules! ids {
    ($($kind:ident),*) => {
        $(impl Id for postrider_core::id::$kind {
            fn key(self) -> Key {
                Key::of(self.as_u128())
            }
        })*
    };
}

ids!(
    BodyId,
    CommandId,
    ConnectionId,
    DeliveryId,
    EventId,
    JobId,
    KeyId,
    ProjectId,
    SecurityId,
    SourceId,
    SubscriptionId,
    TopicId,
    WorkerId,
    AuditId,
    AlertId,
    UserId
);
