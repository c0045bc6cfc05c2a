//! What was read of a slow transfer, judged: connections with their findings, worst first.
//!
//! [`Report::of`] judges what [`crate::inputs::read`] gave; [`Report::text`] shows it as a compiler
//! shows its complaints, [`Report::json`] for programs; [`explain`] has the background of a code.

mod explain;
mod joined;
mod json;
mod text;

use diagnose::rules::{Finding, Neighbour, Severity, rule};
use diagnose::{Diagnosis, Flow, Settings};
use packet::Dir;

use crate::inputs::{self, File, ReadError, Reading, Source, Stream};

pub use explain::{UnknownCode, explain, list};
pub use text::{View, finding_text, guess_text};

use joined::Joined;

/// Packets of a connection that a graph of it can show: what to keep of a capture.
const PACKETS: usize = 1_000_000;

/// Connections with their findings, by file.
#[derive(Debug)]
pub struct Report {
    /// The files, in the order given.
    pub files: Vec<FileReport>,
    /// Connections that two captures saw.
    joined: Vec<Joined>,
}

/// The connections of a file.
#[derive(Debug)]
pub struct FileReport {
    /// The file.
    pub file: File,
    /// Its connections, worst first: by what the costliest finding costs.
    pub connections: Vec<Judged>,
    /// The transfers that each of its capture points saw, in short: what another point saw may be the
    /// same ones.
    neighbours: Vec<Vec<Neighbour>>,
}

/// A connection with what was found, in short: of a hundred thousand, few are looked at closely.
#[derive(Debug)]
pub struct Judged {
    /// The connection.
    pub stream: Stream,
    /// Code of what limited it.
    pub primary: Option<&'static str>,
    /// What the costliest finding cost, in ns.
    pub cost: u64,
}

impl FileReport {
    /// What was found about one of its connections.
    pub fn diagnosis(&self, judged: &Judged) -> Diagnosis {
        Diagnosis::of(&judged.stream.analysis, at_point(&self.neighbours, &judged.stream))
    }
}

/// What makes a diagnosis fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// A finding at least so bad.
    Severity(Severity),
    /// A finding with this code.
    Code(&'static str),
}

impl FailOn {
    /// The severity or code of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        let severity = Severity::from_name(&name.to_ascii_lowercase()).map(Self::Severity);
        severity.or_else(|| rule(name).map(|rule| Self::Code(rule.code)))
    }
}

impl Report {
    /// Reads files of any kind and judges what is in them.
    ///
    /// `graphs`: packets are kept for the graphs of a page.
    ///
    /// # Errors
    /// The first file that cannot be read, or is of no use.
    pub fn read(sources: Vec<Source<'_>>, graphs: bool) -> Result<Self, ReadError> {
        let packets = if graphs { PACKETS } else { 0 };
        let settings = Settings { turns: fit::TURNS, packets };
        Ok(Self::of(inputs::read(sources, settings)?))
    }

    /// Judges everything that was read.
    pub fn of(reading: Reading) -> Self {
        let names: Vec<_> = reading.files.iter().map(|file| file.name.clone()).collect();
        let joined = reading.pairs.iter();
        let joined = joined.filter_map(|pair| Joined::of(pair, &reading.streams, &names)).collect();
        let mut files: Vec<_> = reading
            .files
            .into_iter()
            .map(|file| FileReport { file, connections: Vec::new(), neighbours: Vec::new() })
            .collect();
        let mut streams: Vec<Vec<Stream>> = files.iter().map(|_| Vec::new()).collect();
        for stream in reading.streams {
            if let Some(of_file) = streams.get_mut(stream.file) {
                of_file.push(stream);
            }
        }
        for (file, streams) in files.iter_mut().zip(streams) {
            let neighbours = neighbours(&streams);
            let judge = |stream: Stream| {
                let beside = at_point(&neighbours, &stream);
                let diagnosis = Diagnosis::of(&stream.analysis, beside);
                Judged { stream, primary: diagnosis.primary, cost: diagnosis.cost() }
            };
            file.connections = streams.into_iter().map(judge).collect();
            file.connections.sort_by_key(|one| core::cmp::Reverse(one.cost));
            file.neighbours = neighbours;
        }
        Self { files, joined }
    }

    /// Only the connections with this number; false if there is none.
    pub fn keep_flow(&mut self, number: u32) -> bool {
        let mut found = false;
        for file in &mut self.files {
            file.connections.retain(|one| one.stream.analysis.stream == number);
            found |= !file.connections.is_empty();
        }
        let files = &self.files;
        self.joined.retain(|pair| files.iter().any(|file| pair.concerns(&file.file.name, number)));
        found
    }

    /// Does a finding fail it?
    pub fn fails(&self, on: FailOn) -> bool {
        let bad = |found: &Finding| match on {
            FailOn::Severity(severity) => found.severity >= severity,
            FailOn::Code(code) => found.code == code,
        };
        self.files.iter().any(|file| {
            file.connections.iter().any(|one| file.diagnosis(one).findings.iter().any(bad))
        })
    }
}

/// The transfers of a file by capture point.
fn neighbours(streams: &[Stream]) -> Vec<Vec<Neighbour>> {
    let mut points: Vec<Vec<Neighbour>> = Vec::new();
    for stream in streams {
        if points.len() <= stream.interface {
            points.resize_with(stream.interface + 1, Vec::new);
        }
        points[stream.interface].extend(Neighbour::of(&stream.analysis));
    }
    points.into_iter().map(Neighbour::sorted).collect()
}

/// Those seen where `stream` was.
fn at_point<'a>(neighbours: &'a [Vec<Neighbour>], stream: &Stream) -> &'a [Neighbour] {
    neighbours.get(stream.interface).map_or(&[], Vec::as_slice)
}

impl Judged {
    /// Names of the end that opened the connection and of the other, with ports.
    fn ends(&self) -> [String; 2] {
        let ends = self.stream.analysis.ends;
        self.stream.names.clone().unwrap_or_else(|| [ends.src.to_string(), ends.dst.to_string()])
    }

    /// Who sends to whom.
    pub fn transfer(&self) -> String {
        let [client, server] = self.ends();
        if self.client_sends() {
            format!("{client} > {server}")
        } else {
            format!("{server} > {client}")
        }
    }

    /// The data judged.
    pub fn flow(&self) -> Option<&Flow> {
        self.stream.analysis.main()
    }

    /// Does the end that opened the connection send them?
    pub fn client_sends(&self) -> bool {
        self.stream.analysis.main_dir() == Dir::Forward
    }

    /// Payload per second from the first packet until the last delivery, in bytes.
    pub fn goodput(&self) -> f64 {
        let Some(flow) = self.flow() else { return 0.0 };
        // What was never acknowledged is taken to have arrived when the last packet was seen.
        let last = match flow.answered {
            true => flow.last_delivery,
            false => self.stream.analysis.last.as_nanos(),
        };
        let ns = last.saturating_sub(self.stream.analysis.first.as_nanos());
        if ns == 0 { 0.0 } else { flow.bytes as f64 * 1e9 / ns as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_and_codes_fail_a_diagnosis() {
        assert_eq!(FailOn::from_name("Warning"), Some(FailOn::Severity(Severity::Warning)));
        assert_eq!(FailOn::from_name("cc201"), Some(FailOn::Code("CC201")));
        assert_eq!(FailOn::from_name("CC999"), None);
    }
}
