//! Gives what the fuzzer invents to the property `send_request`.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| postrider_properties::send_request::holds(data));
