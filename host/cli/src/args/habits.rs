//! What the commands take that fit snapback into a user's habits.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What `completions` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback completions bash > ~/.local/share/bash-completion/completions/snapback
  snapback completions zsh > ~/.zfunc/_snapback     with `fpath+=~/.zfunc` in ~/.zshrc
  snapback completions fish > ~/.config/fish/completions/snapback.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// A shell that can complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

impl Shell {
    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }
}

/// What `man` takes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  snapback man | man -l -                  read the first page
  snapback man ~/.local/share/man/man1     install all of them, where `man` looks
                                           if ~/.local/bin is in PATH")]
pub struct ManArgs {
    /// Write all pages into this directory
    #[arg(value_name = "DIR")]
    pub pages: Option<PathBuf>,
}
