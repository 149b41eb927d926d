//! Where a FHIR connection's requests go, and what they say beside their body.
//!
//! It must not know what a resource looks like.

use super::RestTarget;

#[derive(Clone, Debug, PartialEq)]
pub struct FhirTarget {
    /// The way there: FHIR goes over HTTP. Its path has no placeholders.
    pub http: RestTarget,
    /// `fhirVersion` of the media types, such as `4.0`.
    pub fhir_version: Option<String>,
    /// `Prefer: return=…` of requests that say nothing themselves.
    pub prefer: Option<&'static str>,
    pub partial: PartialBatch,
}

/// What a batch is of which the server refused some entries and did the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialBatch {
    /// Not delivered, and never sent again by itself: what was done would be done twice.
    Failed,
    /// Delivered, with a word about it.
    Delivered,
}
