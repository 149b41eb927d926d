//! Gives what the fuzzer invents to the property `retry_after`.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| postrider_properties::retry_after::holds(data));
