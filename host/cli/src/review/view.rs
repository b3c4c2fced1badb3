//! What a review shows: the list on the left, what is selected on the right, the keys below.
//!
//! Drawn from the state alone, so it is tested without a terminal. Colour never carries
//! meaning alone: each verdict is a word.

use super::Review;
use super::choice::{Item, Verdict};
use super::rows::Row;
use crate::render::words::{count, letter};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};
use snapback_core::error::show_bytes;
use snapback_core::session::What;
use snapback_core::tree::compare::ChangeKind;

const KEYS: &str = "a keep  r put back  u undecide  A R all  J K scroll  Enter done  q quit";

/// Draws it; the list begins with the line `first`.
pub fn draw(frame: &mut Frame<'_>, review: &Review<'_>, first: usize) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    let [list, detail] =
        Layout::horizontal([Constraint::Percentage(45), Constraint::Percentage(55)]).areas(body);
    let reversed = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(format!(" {}  {}", tally(review), review.head)).style(reversed), head);
    let height = usize::from(list.height);
    let rows = review.rows.iter().enumerate().skip(first).take(height);
    let lines: Vec<Line<'_>> = rows
        .map(|(at, row)| {
            let line = line(review, row);
            if at == review.at { line.style(reversed) } else { line }
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), list);
    let block = Block::new().borders(Borders::LEFT);
    let lines: Vec<Line<'_>> =
        review.detail.iter().skip(review.scroll).take(usize::from(detail.height)).map(|l| toned(l)).collect();
    frame.render_widget(Paragraph::new(lines).block(block), detail);
    frame.render_widget(Paragraph::new(KEYS).style(Style::new().add_modifier(Modifier::DIM)), foot);
    if review.asks {
        summary(frame, review);
    }
}

fn tally(review: &Review<'_>) -> String {
    let of = |verdict| review.choice.count(verdict);
    let (kept, back, open) = (of(Verdict::Accepted), of(Verdict::Rejected), of(Verdict::Open));
    format!("{kept} keep, {back} put back, {open} open")
}

/// The one summary, before the one step.
fn summary(frame: &mut Frame<'_>, review: &Review<'_>) {
    let back = review.choice.count(Verdict::Rejected) as u64;
    let stay = review.choice.items.len() as u64 - back;
    let mut lines = vec![
        Line::from(format!("{} put back, {} as they are now", count(back, "change"), count(stay, "change"))),
        Line::from(""),
    ];
    let rejected = review.choice.items.iter().filter(|item| item.verdict == Verdict::Rejected);
    let shown: Vec<&Item> = rejected.take(8).collect();
    lines.extend(
        shown.iter().map(|item| Line::from(format!("  {} {}", to_do(item.kind), show_bytes(&item.place)))),
    );
    if back > shown.len() as u64 {
        lines.push(Line::from(format!("  ... and {} more", back - shown.len() as u64)));
    }
    lines.push(Line::from(""));
    let way = if back > 0 {
        "Enter does it in one step, which `snapback undo` takes back"
    } else {
        "Enter ends it, and nothing is changed"
    };
    lines.extend([Line::from(way), Line::from("Esc goes on looking")]);
    let (width, height) = (76, lines.len() as u16 + 2);
    let area = frame.area();
    let area = Rect {
        x: area.width.saturating_sub(width) / 2,
        y: area.height.saturating_sub(height) / 2,
        width: width.min(area.width),
        height: height.min(area.height),
    };
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" Done? ")), area);
}

/// What putting a change back does.
fn to_do(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "remove",
        ChangeKind::Modified => "change back",
        ChangeKind::Deleted => "bring back",
    }
}

fn line<'a>(review: &Review<'_>, row: &Row) -> Line<'a> {
    let is_about = |item: &Item| match row {
        Row::Target(target) => item.target == *target,
        Row::Dir(target, place) => item.is_in(target, place),
        Row::Change(_) => false,
    };
    let verdict = match row {
        Row::Change(number) => Some(review.choice.items[*number].verdict),
        _ => review.choice.verdict_of(is_about),
    };
    let (mark, colour) = match verdict {
        Some(Verdict::Open) => ("    ", Color::Reset),
        Some(Verdict::Accepted) => ("keep", Color::Green),
        Some(Verdict::Rejected) => ("back", Color::Red),
        None => ("some", Color::Yellow),
    };
    let mut spans = vec![Span::styled(format!("{mark} "), Style::new().fg(colour))];
    let bold = Style::new().add_modifier(Modifier::BOLD);
    match row {
        Row::Target(target) => spans.push(Span::styled(show_bytes(target.as_bytes()), bold)),
        Row::Dir(_, place) => spans.push(Span::styled(format!("  {}/", show_bytes(place)), bold)),
        Row::Change(number) => {
            let item = &review.choice.items[*number];
            let (dir, name) = match item.place.iter().rposition(|&b| b == b'/') {
                Some(slash) => ("  ", &item.place[slash + 1..]),
                None => ("", &item.place[..]),
            };
            let slash = if item.what == What::Dir { "/" } else { "" };
            let colour = match item.kind {
                ChangeKind::Added => Color::Green,
                ChangeKind::Modified => Color::Yellow,
                ChangeKind::Deleted => Color::Red,
            };
            spans.push(Span::styled(format!("  {dir}{} ", letter(item.kind)), Style::new().fg(colour)));
            let name = if name.is_empty() { ".".to_owned() } else { show_bytes(name) };
            spans.push(Span::raw(format!("{name}{slash}")));
        }
    }
    Line::from(spans)
}

/// A line of a patch in its colour.
fn toned(line: &str) -> Line<'_> {
    let style = match line.as_bytes().first() {
        Some(b'+') => Style::new().fg(Color::Green),
        Some(b'-') => Style::new().fg(Color::Red),
        Some(b'@') => Style::new().add_modifier(Modifier::DIM),
        _ => Style::new(),
    };
    Line::from(Span::styled(line, style))
}

#[cfg(test)]
mod tests {
    use super::super::choice::tests::of;
    use super::super::screen::Key;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn shown(review: &Review<'_>) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(90, 12)).unwrap();
        terminal.draw(|frame| draw(frame, review, 0)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y: u16| (0..90).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..12).map(row).collect()
    }

    #[test]
    fn it_shows_the_list_the_diff_and_the_summary() {
        let detail = |number: usize| vec![format!("+number {number}")];
        let mut review = Review::new(of(&["a", "src/", "src/b"]), "review".into(), &detail);
        review.key(Key::Down, 9);
        review.key(Key::Char('r'), 9);
        let lines = shown(&review);
        assert_eq!(lines[0], " 0 keep, 1 put back, 2 open  review");
        // What was decided about, the next one is selected.
        assert!(lines[1].starts_with("some tree") && lines[1].ends_with("│+number 1"), "{lines:#?}");
        assert!(lines[2].starts_with("back   M a "), "{lines:#?}");
        assert!(lines[3].starts_with("       M src/") && lines[4].starts_with("       src/"), "{lines:#?}");
        assert!(lines[5].starts_with("         M b"), "{lines:#?}");
        assert!(lines[11].starts_with("a keep  r put back"), "{lines:#?}");
        review.key(Key::Enter, 9);
        let text = shown(&review).join("\n");
        for words in [
            "Done?",
            "1 change put back, 2 changes as they are now",
            "change back a",
            "`snapback undo` takes back",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }
}
