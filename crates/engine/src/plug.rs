//! Something of the outside that an engine may be given or not. It must not know what it is.

use std::fmt;
use std::sync::Arc;

/// None by default. Two are equal when they are the same thing.
pub struct Plug<T: ?Sized>(Option<Arc<T>>);

impl<T: ?Sized> Plug<T> {
    pub const NONE: Plug<T> = Plug(None);

    pub fn of(thing: Arc<T>) -> Self {
        Plug(Some(thing))
    }

    pub fn get(&self) -> Option<&Arc<T>> {
        self.0.as_ref()
    }
}

impl<T: ?Sized> Clone for Plug<T> {
    fn clone(&self) -> Self {
        Plug(self.0.clone())
    }
}

impl<T: ?Sized> Default for Plug<T> {
    fn default() -> Self {
        Plug::NONE
    }
}

impl<T: ?Sized> PartialEq for Plug<T> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl<T: ?Sized> Eq for Plug<T> {}

impl<T: ?Sized> fmt::Debug for Plug<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Plug(…)" } else { "Plug(none)" })
    }
}
