//! Gives what the fuzzer invents to the property `channel`.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| postrider_properties::channel::holds(data));
