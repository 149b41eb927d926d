//! Gives what the fuzzer invents to the property `status_set`.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| postrider_properties::status_set::holds(data));
