//! Tables that fit the terminal.
//!
//! Invariant: columns are as wide as their widest cell, those without any text are not there; the
//! last one takes what is left and is cut there, by display width and with an ellipsis; where too
//! little is left, the whole line is. Where there is no terminal nothing is cut, so that programs
//! see all of it.

use crate::output::Out;
use crate::terminal::{Terminal, Tone};
use snapback_core::error::Result;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Spaces between columns.
const GAP: usize = 2;
/// The last column is never cut below this.
const LEAST: usize = 10;

/// Lays `rows` out; each has as many cells as `head`. Cells of `right` columns are
/// aligned at their ends.
pub fn lay_out<const N: usize>(
    head: [&str; N],
    right: &[usize],
    rows: &[[String; N]],
    width: Option<usize>,
) -> Vec<String> {
    let widths = widths(head, rows);
    let room = width.map(|width| left(head, rows, width).max(LEAST));
    std::iter::once(&head.map(str::to_owned))
        .chain(rows)
        .map(|row| {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate().take(N - 1).filter(|(n, _)| widths[*n] > 0) {
                let pad = " ".repeat(widths[column] - cell.width());
                let (before, after) = if right.contains(&column) { (&*pad, "") } else { ("", &*pad) };
                line.push_str(&format!("{before}{cell}{after}{}", " ".repeat(GAP)));
            }
            match room {
                Some(room) => line.push_str(&cut(&row[N - 1], room)),
                None => line.push_str(&row[N - 1]),
            }
            line.truncate(line.trim_end().len());
            width.map_or_else(|| line.clone(), |width| cut(&line, width))
        })
        .collect()
}

/// How much of `width` the last column would get.
pub fn left<const N: usize>(head: [&str; N], rows: &[[String; N]], width: usize) -> usize {
    let before_last = widths(head, rows).into_iter().take(N - 1).filter(|width| *width > 0);
    width.saturating_sub(before_last.map(|width| width + GAP).sum())
}

/// How wide each column is.
fn widths<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> [usize; N] {
    let mut widths = head.map(UnicodeWidthStr::width);
    for row in rows {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cell.width()));
    }
    widths
}

/// Writes the lines of a table, its head less loud.
///
/// # Errors
/// When standard output cannot be written.
pub fn write(out: &mut Out, terminal: &Terminal, lines: &[String]) -> Result<()> {
    let (head, rows) = lines.split_first().map_or((None, lines), |(head, rows)| (Some(head), rows));
    head.map_or(Ok(()), |head| out.styled(&terminal.paint(Tone::Aside, head)))?;
    rows.iter().try_for_each(|row| out.line(row))?;
    out.flush()
}

/// `text` on as many lines as it takes, each after `indent` and at most `width` wide; those after the
/// first two columns further in. A word that is wider than a line is broken.
pub fn wrap(text: &str, indent: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.map(|width| width.max(indent.len() + 2 + LEAST)) else {
        return vec![format!("{indent}{text}")];
    };
    let (mut lines, mut line, mut at_start) = (Vec::new(), indent.to_owned(), true);
    let mut used = indent.width();
    let next = |line: &mut String, lines: &mut Vec<String>| {
        lines.push(std::mem::replace(line, format!("{indent}  ")).trim_end().to_owned());
        indent.width() + 2
    };
    for word in text.split_inclusive(' ') {
        if !at_start && used + word.trim_end().width() > width {
            used = next(&mut line, &mut lines);
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if c != ' ' && used + wide > width {
                used = next(&mut line, &mut lines);
            }
            line.push(c);
            used += wide;
        }
        at_start = false;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// `text` in at most `room` columns.
pub fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    if room == 0 {
        return String::new();
    }
    let mut used = 1;
    let kept = text.chars().take_while(|c| {
        used += c.width().unwrap_or(0);
        used <= room
    });
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_is_cut_to_fit() {
        let row = |a: &str, b: &str, c: &str| [a.to_owned(), b.to_owned(), c.to_owned()];
        let rows = [row("x", "1 B", "short"), row("日本", "10 kB", "a very long command line")];
        assert_eq!(
            lay_out(["ID", "SIZE", "COMMAND"], &[1], &rows, Some(24)),
            ["ID     SIZE  COMMAND", "x       1 B  short", "日本  10 kB  a very lon…"]
        );
        assert_eq!(
            lay_out(["ID", "SIZE", "COMMAND"], &[1], &rows, Some(14)),
            ["ID     SIZE  …", "x       1 B  …", "日本  10 kB  …"]
        );
        assert!(lay_out(["ID", "SIZE", "COMMAND"], &[], &rows, None)[2].ends_with("command line"));
        assert_eq!(left(["ID", "SIZE", "COMMAND"], &rows, 24), 11);
        let rows = [row("x", "", "short"), row("y", "", "")];
        assert_eq!(lay_out(["ID", "", "COMMAND"], &[1], &rows, Some(20)), ["ID  COMMAND", "x   short", "y"]);
    }

    #[test]
    fn what_is_wrapped_loses_nothing() {
        assert_eq!(wrap("wants a, b", "  ", None), ["  wants a, b"]);
        assert_eq!(wrap("wants a, b", "  ", Some(80)), ["  wants a, b"]);
        assert_eq!(wrap("wants tree, path (dir)", "  ", Some(16)), ["  wants tree,", "    path (dir)"]);
        let long = "digest 0123456789abcdef0123456789abcdef";
        let lines = wrap(long, "", Some(20));
        assert_eq!(lines, ["digest", "  0123456789abcdef01", "  23456789abcdef"]);
        for width in [1, 14, 15, 30, 40, 60] {
            let lines = wrap(long, "  ", Some(width));
            let whole: String = lines.concat().split_whitespace().collect();
            assert_eq!(whole, long.replace(' ', ""), "{width}");
            assert!(lines.iter().all(|line| line.width() <= width.max(14)), "{width} {lines:?}");
        }
    }

    #[test]
    fn cutting_counts_columns_not_letters() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
