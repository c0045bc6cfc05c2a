//! The format of the recordings: a line of JSON, a line a packet at the sender's card, rows of `tcp_info`.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

/// A data packet of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentPacket {
    /// Nanoseconds since the SYN.
    pub(super) ns: u64,
    /// Sequence number relative to the initial one.
    pub(super) seq: u32,
    /// Payload bytes.
    pub(super) len: u32,
}

/// The compared fields of a row of `tcp_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InfoRow {
    /// Nanoseconds since the beginning of the run.
    pub(super) ns: u64,
    /// Congestion window in bytes.
    pub(super) cwnd: u64,
    /// Slow-start threshold in bytes.
    pub(super) ssthresh: Option<u64>,
    /// Pacing rate in bits per second.
    pub(super) pacing: u64,
}

/// A recorded transfer.
#[derive(Debug)]
pub(super) struct Bbr3Recording {
    pub(super) name: String,
    /// Scenario for modelled hosts.
    pub(super) scenario: String,
    pub(super) packets: Vec<SentPacket>,
    pub(super) rows: Vec<InfoRow>,
}

impl Bbr3Recording {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or the first line that is not as described above, with its number.
    pub(super) fn read(file: &Path) -> Result<Self, String> {
        let text = unpack(file)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Self::parse(name.trim_end_matches(".gz"), &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut lines = text.lines().enumerate();
        let (_, first) = lines.next().ok_or("the file is empty")?;
        let parameters: Value =
            serde_json::from_str(first).map_err(|error| format!("line 1: {error}"))?;
        let scenario = parameters["toml"].as_str().ok_or("line 1: no scenario `toml`")?.to_owned();
        let mut recording =
            Self { name: name.to_owned(), scenario, packets: Vec::new(), rows: Vec::new() };
        let mut info = false;
        for (index, line) in lines {
            if line.starts_with("# tcp_info") || line.starts_with("time_s") {
                info = true;
                continue;
            }
            let read = if info { recording.row(line) } else { recording.packet(line) };
            read.ok_or_else(|| format!("line {}: {line:?} is no such row", index + 1))?;
        }
        for (missing, what) in [
            (recording.packets.is_empty(), "data packets of the sender"),
            (recording.rows.is_empty(), "rows of `tcp_info`"),
        ] {
            if missing {
                return Err(format!("it has no {what}"));
            }
        }
        Ok(recording)
    }

    fn packet(&mut self, line: &str) -> Option<()> {
        let mut fields = line.split_whitespace();
        let ns = fields.next()?.parse().ok()?;
        let outbound = match fields.next()? {
            ">" => true,
            "<" => false,
            _ => return None,
        };
        let mut number = || fields.next()?.parse::<u32>().ok();
        let (seq, _ack, len) = (number()?, number()?, number()?);
        if outbound && len > 0 {
            self.packets.push(SentPacket { ns, seq, len });
        }
        Some(())
    }

    fn row(&mut self, line: &str) -> Option<()> {
        let fields: Vec<&str> = line.split(' ').collect();
        let [time, cwnd, ssthresh, _srtt, _rto, pacing, ..] = fields[..] else { return None };
        let (seconds, fraction) = time.split_once('.')?;
        let fraction: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
        let ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)?;
        let optional =
            |text: &str| if text == "-" { Some(None) } else { text.parse().ok().map(Some) };
        self.rows.push(InfoRow {
            ns,
            cwnd: cwnd.parse().ok()?,
            ssthresh: optional(ssthresh)?,
            pacing: optional(pacing)?.unwrap_or(0),
        });
        Some(())
    }
}

/// The text of a file, decompressed if its name ends in `.gz`.
fn unpack(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(file).and_then(|mut file_of| {
        if file.extension().is_some_and(|end| end == "gz") {
            MultiGzDecoder::new(file_of).read_to_string(&mut text)
        } else {
            file_of.read_to_string(&mut text)
        }
    });
    read.map(|_| text).map_err(|error| error.to_string())
}

/// The files of this format at `place`, a directory or one file.
pub(super) fn files(place: &Path) -> Vec<PathBuf> {
    let mut files = vec![place.to_path_buf()];
    if let Ok(entries) = fs::read_dir(place) {
        files = entries.flatten().map(|entry| entry.path()).collect();
    }
    files.retain(|file| file.is_file() && is_recording(file));
    files
}

/// By its name, as the recorder writes it, or its first line.
fn is_recording(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("bbr3-") {
        return true;
    }
    let compressed = file.extension().is_some_and(|end| end == "gz");
    let mut head = [0; 2_048];
    let Ok(mut opened) = File::open(file) else { return false };
    let read = if compressed {
        fill(&mut MultiGzDecoder::new(opened), &mut head)
    } else {
        fill(&mut opened, &mut head)
    };
    let text = String::from_utf8_lossy(&head[..read]);
    let first: String = text.lines().next().unwrap_or_default().split_ascii_whitespace().collect();
    first.starts_with('{') && first.contains("\"cc\":\"bbr3\"")
}

/// Reads until the buffer is full or the input ends; an error ends it.
fn fill(input: &mut impl std::io::Read, buffer: &mut [u8]) -> usize {
    let mut read = 0;
    while read < buffer.len()
        && let Ok(more) = input.read(&mut buffer[read..])
        && more > 0
    {
        read += more;
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"{"cc":"bbr3","toml":"title = \"x\""}"#;
    const PACKET: &str = "9563069 > 1 1 1448 24 - 502";
    const ROW: &str = "0.01 14480 - 9563.0 212000.0 33257992 14480 delivered=1";

    #[test]
    fn a_recording_lacks_nothing() {
        let parse = |lines: &[&str]| Bbr3Recording::parse("x", &lines.join("\n"));
        let whole = parse(&[HEAD, PACKET, "# tcp_info", ROW]).unwrap();
        assert_eq!((whole.packets.len(), whole.rows[0].pacing), (1, 33_257_992));
        let error = |lines: &[&str]| parse(lines).unwrap_err();
        assert!(error(&[HEAD]).contains("data packets"));
        assert!(error(&[HEAD, PACKET]).contains("tcp_info"));
        assert!(error(&[HEAD, "0 ? 1"]).contains("line 2"));
        assert!(error(&["{}"]).contains("toml"));
        assert!(error(&["hello"]).contains("line 1"));
    }
}
