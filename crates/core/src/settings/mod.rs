//! The keys of connections as people write them, read into validated settings. To be completed.

pub mod rest;

pub use crate::setting::SettingError;
