//! SOAP 1.1 and 1.2: requests become envelopes, answers become values, and nothing here sends or waits.
//!
//! | file | what it knows |
//! |---|---|
//! | `request` | from operation and message to an envelope |
//! | `answer` | from the bytes of an answer to data or a fault |
//! | `mapping` | JSON and XML for each other |
//! | `envelope`, `fault`, `action`, `addressing`, `username_token` | one part of the protocol each |
//! | `multipart` | answers in parts (MTOM) |
//! | `wsdl` | what a service offers |
//! | `xml`, `json` | the texts themselves, within limits |

pub mod action;
pub mod addressing;
pub mod answer;
pub mod envelope;
pub mod fault;
mod json;
pub mod mapping;
mod multipart;
pub mod request;
pub mod username_token;
pub mod wsdl;
pub mod xml;
