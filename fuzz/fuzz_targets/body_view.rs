//! Gives what the fuzzer invents to the property `body_view`.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| postrider_properties::body_view::holds(data));
