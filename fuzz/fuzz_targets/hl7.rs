//! Gives what the fuzzer invents to the property `hl7`.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| postrider_properties::hl7::holds(data));
