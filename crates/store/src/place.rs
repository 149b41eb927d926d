//! Places in the order of arrival and the bounds between them, by which lists and jobs go through any store. It must not know a database's tables.

use postrider_core::Timestamp;
use postrider_core::delivery::Delivery;

use crate::{DeliveryFilter, StoreError};

pub(crate) const BAD_CURSOR: StoreError = StoreError::NotFound { what: "page" };

/// A place in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub i64, pub u128);

impl Place {
    pub const NEWEST: Place = Place(i64::MAX, u128::MAX);
    pub const OLDEST: Place = Place(i64::MIN, 0);

    pub fn of(delivery: &Delivery) -> Self {
        Place(delivery.created_at.as_millis(), delivery.id.as_u128())
    }

    pub fn write(self) -> String {
        format!("{}.{:032x}", self.0, self.1)
    }

    pub fn read(text: &str) -> Result<Self, StoreError> {
        let (time, id) = text.split_once('.').ok_or(BAD_CURSOR)?;
        let id = if id.len() == 32 {
            u128::from_str_radix(id, 16).map_err(|_| BAD_CURSOR)?
        } else {
            return Err(BAD_CURSOR);
        };
        Ok(Place(time.parse().map_err(|_| BAD_CURSOR)?, id))
    }
}

/// Only what lies between the two, neither included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub after: Place,
    pub before: Place,
}

impl Bounds {
    pub const EVERYTHING: Bounds = Bounds { after: Place::OLDEST, before: Place::NEWEST };

    pub fn of(filter: &DeliveryFilter) -> Self {
        let before = filter.created_before.map_or(Place::NEWEST, |end| Place(end.as_millis(), 0));
        let after =
            filter.created_from.map_or(Place::OLDEST, |from| Place(from.as_millis().saturating_sub(1), u128::MAX));
        Bounds { after, before }
    }

    /// What arrived at this time at the latest.
    pub fn until(self, time: Timestamp) -> Self {
        Bounds { before: self.before.min(Place(time.as_millis().saturating_add(1), 0)), ..self }
    }

    pub fn within(self, other: Bounds) -> Self {
        Bounds { after: self.after.max(other.after), before: self.before.min(other.before) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    NewestFirst,
    OldestFirst,
}

impl Order {
    pub const fn sql(self) -> &'static str {
        match self {
            Order::NewestFirst => "ORDER BY created_at DESC, id DESC",
            Order::OldestFirst => "ORDER BY created_at, id",
        }
    }
}
