//! The decoder `consent`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| snapback_core::fuzz::run("consent", bytes));
