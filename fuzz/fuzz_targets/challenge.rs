//! Gives what the fuzzer invents to the property `challenge`.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| postrider_properties::challenge::holds(data));
