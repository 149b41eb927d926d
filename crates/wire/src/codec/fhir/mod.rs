//! HL7 FHIR: answers become values, and nothing here sends or waits.
//!
//! | file | what it knows |
//! |---|---|
//! | `answer` | from headers and body of an answer to what it says |
//! | `bundle` | what a transaction that is sent holds |
//! | `location` | addresses and tags of resources |
//! | `xml` | resources in XML, as far as an answer is read |

pub mod answer;
pub mod bundle;
pub mod location;
mod xml;
