//! Flags that every command takes.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// Work as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// Take DIR as the project instead of looking for it
    #[arg(long, value_name = "DIR", global = true)]
    pub root: Option<PathBuf>,
    /// Report as one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say more; twice: even more
    #[arg(short, long, action = clap::ArgAction::Count, conflicts_with = "quiet", global = true)]
    pub verbose: u8,
    /// When to use colour
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Colour::Auto, global = true)]
    pub color: Colour,
    /// Answer yes to every question but what a target may reach outside the project
    #[arg(long, global = true)]
    pub yes: bool,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
