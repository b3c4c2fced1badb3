//! The decoder `seen`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| snapback_core::fuzz::run("seen", bytes));
