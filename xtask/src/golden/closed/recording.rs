//! Recorded transfers: one text per transfer, several packed into one file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use serde_json::Value;

use super::scenario;

/// First line of each transfer.
const SCENARIO: &str = "# scenario\n";

/// A data packet at its transmission by the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DataPacket {
    /// Nanoseconds since the start of the run.
    pub(super) ns: u64,
    /// Sequence number relative to the SYN.
    pub(super) seq: u64,
    /// Payload bytes.
    pub(super) len: u32,
}

/// The sender's control block after an event.
#[derive(Debug, Clone)]
pub(super) struct TcpcbRow {
    /// Nanoseconds since the start of the run.
    pub(super) ns: u64,
    /// The recorded line, without the time.
    pub(super) text: String,
}

impl TcpcbRow {
    /// Returns the value of a field in the part before the first bar; `None` if it is not recorded.
    pub(super) fn field(&self, name: &str) -> Option<i64> {
        let fields = self.text.split(" | ").next()?.split(' ');
        let mut values = fields.filter_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        values.next()?.parse().ok()
    }

    /// Returns `t_flags`, recorded in hexadecimal.
    pub(super) fn flags(&self) -> u32 {
        let field = self.text.split(' ').find_map(|field| field.strip_prefix("fl="));
        field.and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(0)
    }
}

/// A recorded transfer.
#[derive(Debug)]
pub(super) struct ClosedRecording {
    pub(super) name: String,
    /// Text of the equivalent scenario.
    pub(super) scenario: String,
    pub(super) packets: Vec<DataPacket>,
    pub(super) rows: Vec<TcpcbRow>,
    /// End of the recording, when the reader has all data.
    pub(super) end: u64,
}

impl ClosedRecording {
    fn parse(text: &str) -> Result<Self, String> {
        let (first, rest) = text.split_once('\n').ok_or("no line of parameters")?;
        let parameters: Value = serde_json::from_str(first).map_err(|error| error.to_string())?;
        let name = parameters["name"].as_str().ok_or("the parameters have no name")?.to_owned();
        let scenario = scenario::text(&parameters).map_err(|error| format!("{name}: {error}"))?;
        let mut recording = Self { name, scenario, packets: Vec::new(), rows: Vec::new(), end: 0 };
        let mut states = false;
        for line in rest.lines() {
            if line.starts_with('#') {
                states = line.starts_with("# tcpcb");
                continue;
            }
            let read = if states { recording.read_row(line) } else { recording.read_packet(line) };
            read.ok_or_else(|| format!("{}: {line}", recording.name))?;
        }
        Ok(recording)
    }

    fn read_row(&mut self, line: &str) -> Option<()> {
        let (ns, text) = line.split_once(' ')?;
        let ns = ns.parse().ok()?;
        self.end = self.end.max(ns);
        self.rows.push(TcpcbRow { ns, text: text.to_owned() });
        Some(())
    }

    fn read_packet(&mut self, line: &str) -> Option<()> {
        let mut fields = line.split(' ');
        let ns = fields.next()?.parse().ok()?;
        self.end = self.end.max(ns);
        if fields.next() != Some(">") {
            return Some(());
        }
        let seq = fields.next()?.parse().ok()?;
        let len = fields.next()?.parse().ok()?;
        if len > 0 {
            self.packets.push(DataPacket { ns, seq, len });
        }
        Some(())
    }

    /// Returns whether the transfer was drawn at random.
    pub(super) fn is_random(&self) -> bool {
        self.name.strip_prefix("random-").is_some_and(|n| n.parse::<u32>().is_ok())
    }
}

/// Reads the recordings of a file (`*.xz`, `*.gz`), in the packed order.
///
/// # Errors
/// The file cannot be read or is malformed.
pub(super) fn read(file: &Path) -> Result<Vec<ClosedRecording>, String> {
    unpack(file)?.split(SCENARIO).skip(1).map(ClosedRecording::parse).collect()
}

/// Decompresses the text of a file of recordings.
pub(super) fn unpack(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = if path.extension().is_some_and(|end| end == "xz") {
        XzReader::new(file, false).read_to_string(&mut text)
    } else {
        MultiGzDecoder::new(file).read_to_string(&mut text)
    };
    read.map_err(|error| error.to_string())?;
    match text.starts_with(SCENARIO) {
        true => Ok(text),
        false => Err("does not begin with the scenario of a recorded transfer".to_owned()),
    }
}
