//! Parts of one capture in several files, as `tcpdump -C` and `-G` write them.

use diagnose::AnalysisSettings;
use trace::capture::{CaptureItem, CaptureReader};
use units::Duration;

use super::captures::CaptureParts;
use super::live::LiveReporter;
use super::table::ConnectionTable;
use super::{BEGINNING, File, InputFile, InputKind, KeyLog, ReadError, Reading, Reason, open};

/// Reads the files in order of their first packets, as one capture with the name of the first. A ring
/// overwrites its oldest file, so names do not show the order. Parts without packets are left out.
pub(super) fn read(
    sources: Vec<InputFile<'_>>,
    settings: AnalysisSettings,
    mut live: Option<LiveReporter<'_>>,
    keys: &KeyLog,
) -> Result<Reading, ReadError> {
    let mut parts = Vec::new();
    let mut empty = None;
    for source in sources {
        let name = source.name;
        let failed = |reason| ReadError { name: name.clone(), reason };
        let (file, mut input) = match open(name.clone(), source.bytes) {
            Ok(opened) => opened,
            Err(Reason::Empty) => {
                empty = Some(failed(Reason::Empty));
                continue;
            }
            Err(reason) => return Err(failed(reason)),
        };
        if file.kind != InputKind::Capture {
            let problem = Some("a part of a capture is expected".to_owned());
            return Err(failed(Reason::Nothing { kind: file.kind, problem }));
        }
        let begin = input.beginning(BEGINNING).map_err(|error| failed(Reason::Read(error)))?;
        match first_time(begin) {
            Some(at) => parts.push((at, file, input)),
            None => {
                let reason = Reason::Nothing { kind: file.kind, problem: None };
                empty = Some(failed(reason));
            }
        }
    }
    parts.sort_by_key(|(at, file, _)| (*at, file.name.clone()));
    let count = parts.len();
    let mut table = ConnectionTable::new(settings, false);
    let mut parts = parts.into_iter();
    let Some((_, mut file, input)) = parts.next() else {
        let none = ReadError { name: "no file".into(), reason: Reason::Empty };
        return Err(empty.unwrap_or(none));
    };
    let mut capture = CaptureParts::new(0, &table);
    capture.add_keys(keys);
    let mut last = file.name.clone();
    let mut read = |input, name: &str, file: &mut File| {
        let read = capture.read(input, file, &mut table, live.as_mut());
        read.map_err(|reason| ReadError { name: name.to_owned(), reason })
    };
    read(input, &last, &mut file)?;
    for (_, part, input) in parts {
        read(input, &part.name, &mut file)?;
        last = part.name;
    }
    let mut captured_quic = capture.finish(&mut file, &mut table, live.as_mut());
    if let Some(live) = &mut live {
        live.finish(&mut table);
    }
    if count > 1 {
        file.name = format!("{} to {last} ({count} parts)", file.name);
    }
    let (streams, pairs) = table.finish();
    Ok(Reading {
        files: vec![file],
        streams,
        pairs,
        quic: captured_quic.iter_mut().filter_map(super::quic::decrypted).collect(),
        quic_pairs: Vec::new(),
        quic_beside: Vec::new(),
        captured_quic,
    })
}

/// Time of the first packet in the beginning of a capture.
fn first_time(begin: &[u8]) -> Option<Duration> {
    let mut reader = CaptureReader::new(begin).ok()?;
    loop {
        match reader.next().ok()?? {
            CaptureItem::Frame(frame) => return Some(frame.at.unwrap_or(Duration::ZERO)),
            CaptureItem::Problem(_) | CaptureItem::Secrets(_) => {}
        }
    }
}
