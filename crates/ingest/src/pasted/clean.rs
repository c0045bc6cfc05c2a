//! Prefixes that terminals, mails, pages and log services put before the lines of a tool.

/// Days and months of `date` and of syslog.
const DAYS: &[&str] = &["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: &[&str] =
    &["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Removes colours, quotation marks, bullets, timestamps and names of programs before the lines of a
/// text. The lines keep their numbers.
pub(super) fn clean(text: &str) -> String {
    map_lines(text, |line| without_stamp(without_quotes(line)))
}

/// Removes colours, quotation marks and bullets; timestamps remain, which packets and polls have.
pub fn unquoted(text: &str) -> String {
    map_lines(text, without_quotes)
}

fn map_lines(text: &str, of: impl Fn(&str) -> &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let plain = without_colours(line.trim_end_matches(['\n', '\r']));
        // A progress meter overwrites its line.
        let last = plain.rsplit('\r').find(|part| !part.trim().is_empty()).unwrap_or_default();
        out.push_str(of(last));
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// Removes the control sequences of a terminal (ECMA-48) and byte order marks.
fn without_colours(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' if chars.next_if_eq(&'[').is_some() => {
                let _ = chars.by_ref().find(|c| ('@'..='~').contains(c));
            }
            '\u{1b}' | '\u{feff}' => {}
            // A space that pages write so that it is not broken.
            '\u{a0}' => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

/// Removes marks of a quotation and one bullet; the blanks before a line that has neither remain.
fn without_quotes(line: &str) -> &str {
    let mut rest = line;
    while let Some(quoted) = rest.trim_start().strip_prefix('>') {
        rest = quoted.strip_prefix(' ').unwrap_or(quoted);
    }
    let bullet = rest.trim_start();
    for mark in ["* ", "- ", "+ ", "• ", "| "] {
        // Hops and rulers have several of them.
        if let Some(item) = bullet.strip_prefix(mark)
            && !item.trim_start().starts_with(mark.trim_end())
        {
            return item;
        }
    }
    rest
}

/// Removes a time, and the host and the program of syslog, if text follows.
fn without_stamp(line: &str) -> &str {
    let Some(rest) = after_stamp(line.trim_start()) else { return line };
    let rest = after_program(rest.trim_start()).unwrap_or(rest);
    let body = rest.strip_prefix([' ', '\t']).unwrap_or(rest);
    if body.trim().is_empty() { line } else { body }
}

/// Splits the next word off.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// Returns what follows a time of `date`, syslog, ISO 8601 or `ping -D`.
fn after_stamp(line: &str) -> Option<&str> {
    // `[1709547072.123456] 64 bytes from`, `[2024-03-04 10:11:12] ...`; iperf has `[  5]`.
    if let Some((inner, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let seconds = inner.split('.').next().unwrap_or_default();
        let is_epoch = seconds.len() >= 9 && seconds.bytes().all(|byte| byte.is_ascii_digit());
        let is_time = after_stamp(inner).is_some_and(|after| after.trim().is_empty());
        return (is_epoch || is_time).then_some(rest);
    }
    let (first, rest) = word(line);
    let day = first.trim_end_matches(',');
    let (name, after) = if DAYS.contains(&day) { word(rest) } else { (first, rest) };
    if MONTHS.contains(&name) {
        let (date, rest) = word(after);
        let (time, rest) = word(rest);
        let is_date = date.parse::<u8>().is_ok() && is_time(time);
        // `date` prints the zone and the year.
        let (next, later) = word(rest);
        let zone = next.len() <= 5
            && next.bytes().all(|byte| byte.is_ascii_uppercase())
            && is_year(word(later).0);
        let rest = match (is_year(next), zone) {
            (true, _) => later,
            (_, true) => word(later).1,
            _ => rest,
        };
        return is_date.then_some(rest);
    }
    if is_date(first) {
        let (time, rest) = word(rest);
        return is_time(time).then_some(rest);
    }
    let (date, time) = first.split_once('T')?;
    let zone = time.find(['Z', '+']).or_else(|| time.rfind('-')).unwrap_or(time.len());
    let stream = |rest| match word(rest) {
        // What containers write (CRI).
        ("stdout" | "stderr", rest) => word(rest).1,
        _ => rest,
    };
    (is_date(date) && is_time(&time[..zone])).then(|| stream(rest))
}

/// Returns what follows `host program[123]:`.
fn after_program(rest: &str) -> Option<&str> {
    let (_, after) = word(rest);
    let (program, after) = word(after);
    let name = program.strip_suffix("]:")?;
    let (name, number) = name.split_once('[')?;
    (!name.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(after)
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && word.parse::<u16>().is_ok_and(|year| (1970..2200).contains(&year))
}

fn is_date(word: &str) -> bool {
    let parts: Vec<&str> = word.split(['-', '/']).collect();
    let digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3
        && is_year(parts[0])
        && parts[1..].iter().all(|part| part.len() == 2 && digits(part))
}

/// Whether a word is `10:11:12`, with or without a fraction.
fn is_time(word: &str) -> bool {
    let (clock, fraction) = word.split_once(['.', ',']).unwrap_or((word, ""));
    let parts: Vec<&str> = clock.split(':').collect();
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3
        && parts.iter().all(|part| part.len() == 2 && digits(part))
        && digits(fraction.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_removed_and_lines_keep_their_numbers() {
        for (line, expected) in [
            ("> > [  5]   0.00-1.00", "[  5]   0.00-1.00"),
            ("  * rtt min/avg/max", "rtt min/avg/max"),
            ("Mon Mar  4 10:11:12 2024 [  5]   0.00", "[  5]   0.00"),
            ("Mon Mar  4 10:11:12 CET 2024 [  5]", "[  5]"),
            ("Nov 12 08:14:02 gw1 iperf3[2231]: [  5] x", "[  5] x"),
            ("2024-03-04T10:11:12.123Z stdout F [  5] x", "[  5] x"),
            ("[1709547072.123456] 64 bytes from", "64 bytes from"),
            ("[2024-03-04 10:11:12] 64 bytes", "64 bytes"),
            ("\u{1b}[01;32mroot\u{1b}[0m# x", "root# x"),
            ("  0  1\r 50  2\r100  3\r", "100  3"),
            ("[  5] 0.00-1.00", "[  5] 0.00-1.00"),
            (" 3  * * *", " 3  * * *"),
            ("- - - - -", "- - - - -"),
            ("\t cubic rto:1", "\t cubic rto:1"),
            ("2024-03-04 10:11:12", "2024-03-04 10:11:12"),
            ("1 2024-03-04 10:11:12 a", "1 2024-03-04 10:11:12 a"),
            ("Start: 2024-03-04T10:11:12", "Start: 2024-03-04T10:11:12"),
        ] {
            assert_eq!(clean(line), expected, "{line}");
        }
        assert_eq!(clean("> a\r\n\r\n> b"), "a\n\nb");
        assert_eq!(unquoted("> 10:11:12.1 IP a"), "10:11:12.1 IP a");
    }
}
