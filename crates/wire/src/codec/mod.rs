//! Codecs: bytes to values and back, without I/O. Each is held against a model of its own in `crates/properties` and fuzzed.

pub mod fhir;
pub mod hl7;
pub mod mllp;
pub mod soap;
