//! The decoder `twins`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| snapback_core::fuzz::run("twins", bytes));
