//! Reads the counters of a Linux host: the table of `nstat`, and `/proc/net/snmp` with `/proc/net/netstat`.
//!
//! `nstat` prints a line per counter: its name, its value since the last call (with `-a` since boot), and a rate.
//! The files of `/proc` have a line of names and a line of values per group; nstat joins group and name. Sources:
//! misc/nstat.c of iproute2, net/ipv4/proc.c of Linux 6.18.
//!
//! ```
//! use logs::nstat::{NstatItem, NstatReader};
//! # use ackclock_logs as logs;
//!
//! let text = "\
//! #kernel
//! TcpRetransSegs                  310                0.0
//! TcpExt: TCPDSACKRecv ListenDrops
//! TcpExt: 290 4
//! ";
//! let counters: Vec<_> = NstatReader::new(text.as_bytes())
//!     .map(|item| match item {
//!         Ok(NstatItem::Counter(counter)) => (counter.name, counter.value),
//!         other => panic!("{other:?}"),
//!     })
//!     .collect();
//! let expected = [("TcpRetransSegs", 310), ("TcpExtTCPDSACKRecv", 290), ("TcpExtListenDrops", 4)];
//! assert_eq!(counters, expected.map(|(name, value)| (name.to_owned(), value)));
//! ```

use std::collections::VecDeque;
use std::io::{self, BufRead};

pub use crate::lines::{LineFault, LineProblem};
use crate::lines::{LinePart, LineReader, NextLine};

/// An item of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NstatItem {
    /// A counter.
    Counter(HostCounter),
    /// A problem; reading continues.
    Problem(LineProblem),
}

/// A counter of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCounter {
    /// Line of its value, from 1.
    pub line: u64,
    /// Its name as nstat prints it: `TcpExtListenOverflows`.
    pub name: String,
    /// Its value; the kernel has few that may be negative (`TcpMaxConn`), which are not counters and left out.
    pub value: u64,
}

/// Groups of counters in the files of `/proc`, and beginnings of names in nstat's table.
const GROUPS: [&str; 9] =
    ["Ip", "Icmp", "IcmpMsg", "Tcp", "Udp", "UdpLite", "TcpExt", "IpExt", "MPTcpExt"];

/// Whether a line is one of these texts: a counter of TCP or IP with its value, or a group.
pub fn is_counter(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let (Some(name), Some(value)) = (words.next(), words.next()) else { return false };
    if let Some(group) = name.strip_suffix(':') {
        let is_name = value.starts_with(|first: char| first.is_ascii_uppercase());
        return GROUPS.contains(&group) && is_name && words.all(|word| !word.contains(':'));
    }
    let rate = words.next();
    let is_rate = rate.is_some_and(|rate| rate.parse::<f64>().is_ok());
    is_name(name) && value.parse::<u64>().is_ok() && is_rate && words.next().is_none()
}

/// Whether a word is the name of a counter.
fn is_name(word: &str) -> bool {
    let is_of_group = ["Ip", "Icmp", "Tcp", "Udp", "MPTcp"].iter().any(|one| word.starts_with(one));
    is_of_group && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Reads counters, one at a time.
#[derive(Debug)]
pub struct NstatReader<R> {
    lines: LineReader<R>,
    /// Group and names of the line before, of a file of `/proc`.
    names: Option<(String, Vec<String>)>,
    ready: VecDeque<NstatItem>,
}

impl<R: BufRead> NstatReader<R> {
    /// Reads from `input`.
    pub const fn new(input: R) -> Self {
        Self { lines: LineReader::new(input), names: None, ready: VecDeque::new() }
    }

    fn problem(&mut self, line: u64, at: usize, kind: LineFault) {
        self.ready.push_back(NstatItem::Problem(LineProblem { line, column: at + 1, kind }));
    }

    fn take(&mut self, line: u64, text: &str) {
        let mut words = LinePart::words(text);
        let Some(first) = words.next() else { return };
        if first.text.starts_with('#') {
            return;
        }
        match first.text.strip_suffix(':') {
            Some(group) => self.take_group(line, group, words.collect()),
            None => self.take_row(line, first, words.next()),
        }
    }

    /// A row of nstat's table.
    fn take_row(&mut self, line: u64, name: LinePart<'_>, value: Option<LinePart<'_>>) {
        if !is_name(name.text) {
            let kind = LineFault::value("counter", name.text, "a name such as TcpRetransSegs");
            return self.problem(line, name.at, kind);
        }
        let Some(value) = value else {
            let kind = LineFault::Missing { name: "value" };
            return self.problem(line, name.at + name.text.len(), kind);
        };
        self.counter(line, name.text.to_owned(), value);
    }

    /// A line of a file of `/proc`: names, or the values of the line before.
    fn take_group(&mut self, line: u64, group: &str, words: Vec<LinePart<'_>>) {
        let Some((_, names)) = self.names.take_if(|(of, _)| of == group) else {
            let names = words.iter().map(|word| word.text.to_owned()).collect();
            self.names = Some((group.to_owned(), names));
            return;
        };
        if names.len() != words.len() {
            let at = words.last().map_or(0, |last| last.at);
            let found = format!("{} values", words.len());
            let kind = LineFault::value("values", &found, "as many as names in the line before");
            return self.problem(line, at, kind);
        }
        for (name, value) in names.into_iter().zip(words) {
            self.counter(line, format!("{group}{name}"), value);
        }
    }

    fn counter(&mut self, line: u64, name: String, value: LinePart<'_>) {
        match value.text.parse() {
            Ok(value) => {
                self.ready.push_back(NstatItem::Counter(HostCounter { line, name, value }));
            }
            // TcpMaxConn is -1 if there is no limit.
            Err(_) if value.text.parse::<i64>().is_ok() => {}
            Err(_) => {
                self.problem(line, value.at, LineFault::value("value", value.text, "a number"));
            }
        }
    }
}

impl<R: BufRead> Iterator for NstatReader<R> {
    type Item = io::Result<NstatItem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            match self.lines.next() {
                Err(error) => return Some(Err(error)),
                Ok(None) => return None,
                Ok(Some(NextLine::Problem(problem))) => {
                    self.ready.push_back(NstatItem::Problem(problem));
                }
                Ok(Some(NextLine::Line { number, text, .. })) => self.take(number, &text),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let items = NstatReader::new(text.as_bytes()).map(|item| match item.unwrap() {
            NstatItem::Counter(one) => format!("{} {} {}", one.line, one.name, one.value),
            NstatItem::Problem(problem) => problem.to_string(),
        });
        items.collect()
    }

    #[test]
    fn tables_and_files_of_proc_have_the_same_names() {
        let table = "#kernel\nTcpRetransSegs 7 0.0\nTcpExtListenDrops 0 0.0\n";
        assert_eq!(read(table), ["2 TcpRetransSegs 7", "3 TcpExtListenDrops 0"]);
        let proc =
            "Tcp: RtoMin MaxConn RetransSegs\nTcp: 200 -1 7\nTcpExt: ListenDrops\nTcpExt: 0\n";
        assert_eq!(read(proc), ["2 TcpRtoMin 200", "2 TcpRetransSegs 7", "4 TcpExtListenDrops 0"]);
    }

    #[test]
    fn problems_have_their_position() {
        let wrong = "TcpRetransSegs x 0.0\nnoise 3 0.0\nTcpOutSegs\nTcp: A B\nTcp: 1\n";
        assert_eq!(
            read(wrong),
            [
                "line 1, column 16: value: expected a number, found \"x\"",
                "line 2, column 1: counter: expected a name such as TcpRetransSegs, found \"noise\"",
                "line 3, column 11: `value` is missing",
                "line 5, column 6: values: expected as many as names in the line before, found \"1 values\"",
            ]
        );
    }

    #[test]
    fn only_counters_are_taken_for_this_text() {
        for line in [
            "TcpExtTCPLossProbes  4  0.0",
            "TcpExt: SyncookiesSent ListenDrops",
            "Ip: Forwarding DefaultTTL",
        ] {
            assert!(is_counter(line), "{line}");
        }
        for line in [
            "#kernel",
            "Tcp:",
            "Tcp: 1 2",
            "IP 10.0.0.1.5 > 10.0.0.2.6: Flags [S]",
            "total 4 0.5",
            "TcpOutSegs 4",
        ] {
            assert!(!is_counter(line), "{line}");
        }
    }
}
