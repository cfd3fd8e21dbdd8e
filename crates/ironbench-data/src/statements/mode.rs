//! Tracks `sql_mode` in a file for MariaDB, because it determines what a backslash means inside quotes.

use pgbench_script::SqlMode;

use super::Scanner;

/// Maximum length of a `SET` statement that is parsed.
const LONGEST_SET: usize = 4000;
const MAX_SAVED: usize = 100;

/// Splits a `SET` at its commas, except inside quotes or parentheses.
fn assignments(text: &str) -> Vec<&str> {
    let (mut parts, mut from, mut open, mut depth) = (Vec::new(), 0, None, 0usize);
    for (at, letter) in text.char_indices() {
        match (open, letter) {
            (None, '\'' | '"') => open = Some(letter),
            (Some(quote), _) if letter == quote => open = None,
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

/// Returns the quoted texts, joined by commas, or the value itself if it has no quotes.
fn quoted(value: &str) -> String {
    let parts: Vec<&str> = value.split(['\'', '"']).collect();
    if parts.len() < 3 {
        value.to_owned()
    } else {
        parts.iter().skip(1).step_by(2).copied().collect::<Vec<_>>().join(",")
    }
}

impl Scanner {
    /// Updates the mode after `SET sql_mode = '…'`. Dumps save the mode by `SET @saved = @@sql_mode` and restore it by
    /// `SET sql_mode = @saved`, so these statements are processed too. Each of them may be within a comment that the
    /// server executes.
    pub(super) fn set_mode(&mut self, text_end: usize) {
        let begins = self.statement.begins.unwrap_or(self.from);
        if text_end - begins > LONGEST_SET {
            return;
        }
        let text = String::from_utf8_lossy(&self.text[begins..text_end]).to_ascii_lowercase();
        let rest = text.split_once("set").map_or("", |(_, rest)| rest);
        let mode = self.mode;
        for assignment in assignments(rest) {
            let Some((to, value)) = assignment.split_once('=') else { continue };
            let (to, value) = (to.trim().trim_end_matches(':').trim(), value.trim().trim_end_matches("*/").trim());
            let word = to.trim_start_matches("@@").trim_start_matches("session").trim_start_matches("local");
            if word.trim_start_matches('.').trim() == "sql_mode" {
                let named = SqlMode::of(&quoted(value));
                self.mode = match value.split_once('@') {
                    _ if value.contains("@@sql_mode") => SqlMode {
                        ansi_quotes: mode.ansi_quotes || named.ansi_quotes,
                        no_backslash_escapes: mode.no_backslash_escapes || named.no_backslash_escapes,
                    },
                    Some((_, variable)) => self.saved_mode(variable),
                    None if value == "default" => SqlMode::default(),
                    None => named,
                };
            } else if to.starts_with('@')
                && !to.starts_with("@@")
                && value.contains("@@")
                && value.ends_with("sql_mode")
            {
                let name = to.as_bytes()[1..].to_vec();
                self.saved_modes.retain(|(known, _)| *known != name);
                if self.saved_modes.len() < MAX_SAVED {
                    self.saved_modes.push((name, mode));
                }
            }
        }
    }

    fn saved_mode(&self, variable: &str) -> SqlMode {
        let end = variable.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let name = &variable.as_bytes()[..end.unwrap_or(variable.len())];
        let found = self.saved_modes.iter().find(|(known, _)| known == name);
        found.map_or_else(SqlMode::default, |(_, mode)| *mode)
    }
}
