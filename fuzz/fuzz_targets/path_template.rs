//! Gives what the fuzzer invents to the property `path_template`.
#![no_main]
#![forbid(unsafe_code)]

libfuzzer_sys::fuzz_target!(|data: &[u8]| postrider_properties::path_template::holds(data));
