//! Mutations of a packet script: one line of its events is left out, doubled or gets another number or flag.

use units::RandomStream;

/// Returns a mutated script; `None` if the line drawn cannot be changed.
pub(super) fn mutant(text: &str, draws: &mut RandomStream) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let events: Vec<usize> = (0..lines.len()).filter(|&n| is_event(lines[n])).collect();
    // The socket must exist: the first events stay.
    let later = events.get(3..)?;
    let at = *later.get(draws.below(later.len().max(1) as u64) as usize)?;
    let line = lines[at];
    let changed = match draws.below(10) {
        0 => String::new(),
        1 if line.contains(" > ") || line.contains(" < ") => format!("{line}\n{line}"),
        2 | 3 if line.contains(" > ") => flag(line)?,
        _ => number(line, draws)?,
    };
    let mut all: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    all[at] = changed;
    Some(all.join("\n") + "\n")
}

/// Returns whether a line is an event of its own: a packet, a call, or an assertion of one line.
fn is_event(line: &str) -> bool {
    let line = line.trim();
    let starts = line.starts_with(['+', '*']) || line.starts_with(|c: char| c.is_ascii_digit());
    starts && !line.contains('`') && (!line.contains("%{") || line.contains("}%"))
}

/// Adds PSH to the flags of a packet, or removes it.
fn flag(line: &str) -> Option<String> {
    let (before, after) = line.split_once(" > ")?;
    let after = after.trim_start();
    Some(match after.strip_prefix("P.") {
        Some(rest) => format!("{before} > .{rest}"),
        None => format!("{before} > P{after}"),
    })
}

/// Changes one number of the line.
fn number(line: &str, draws: &mut RandomStream) -> Option<String> {
    let bytes = line.as_bytes();
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|&n| bytes[n].is_ascii_digit())
        .filter(|&n| n == 0 || !(bytes[n - 1].is_ascii_alphanumeric() || bytes[n - 1] == b'_'))
        .collect();
    let start = *starts.get(draws.below(starts.len().max(1) as u64) as usize)?;
    let len = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value: u64 = line[start..start + len].parse().ok()?;
    let other = match draws.below(4) {
        0 => value + 1,
        1 => value.saturating_sub(1),
        2 => value * 2,
        _ => value + 1_000,
    };
    (other != value).then(|| format!("{}{other:0len$}{}", &line[..start], &line[start + len..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_changes() {
        let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
                    +0 > P. 1:1001(1000) ack 1\n";
        let mut draws = RandomStream::named(1, "a", "b");
        for _ in 0..50 {
            let Some(mutant) = mutant(text, &mut draws) else { continue };
            assert_ne!(mutant, text);
            assert!(mutant.starts_with(&text[..text.find("+0 >").unwrap()]));
        }
        assert_eq!(flag("+0 > P. 1:2(1) ack 1").unwrap(), "+0 > . 1:2(1) ack 1");
    }
}
