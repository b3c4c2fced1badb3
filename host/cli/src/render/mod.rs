//! Text for people: what the commands print when nobody asked for JSON.
//!
//! Everything here is a function from values to text, so that it is tested without a
//! terminal. Nothing here prints.

pub mod amount;
pub mod beyond;
pub mod database;
pub mod left_out;
pub mod patch;
pub mod plan;
pub mod starter;
pub mod survey;
pub mod table;
pub mod words;
