//! Gives what the fuzzer invents to the property `soap_message`.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| postrider_properties::soap_message::holds(data));
