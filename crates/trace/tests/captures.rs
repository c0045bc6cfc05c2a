//! Captures of real Linux hosts at both ends of 28 transfers.

use std::fs::File;
use std::path::{Path, PathBuf};

use ackclock_trace as trace;
use packet::Flags;
use packet::wire::parse_cut;
use trace::capture::{CaptureItem, CaptureReader};
use trace::unpack::Unpacked;
use units::Duration;

/// Largest step of frames backwards in time.
const SLACK: Duration = Duration::from_micros(100);

fn transfers() -> Vec<PathBuf> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux");
    let entries = golden.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut transfers: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    transfers.sort();
    assert_eq!(transfers.len(), 28);
    transfers
}

/// Number of data segments to port 47101 (TSO and GRO bursts counted as segments), and of all
/// packets.
fn count(capture: &Path) -> (u64, u64) {
    let mut reader =
        CaptureReader::new(Unpacked::new(File::open(capture).unwrap()).unwrap()).unwrap();
    let (mut data, mut all) = (0, 0);
    let mut last = None;
    while let Some(item) = reader.next().unwrap() {
        let CaptureItem::Frame(frame) = item else { panic!("{}: {item:?}", capture.display()) };
        let link = frame.link().expect("raw IP");
        let seen = parse_cut(frame.bytes, frame.original as usize, link).unwrap();
        assert!(seen.options_complete, "the snap length of 100 holds all options");
        // Timestamps of two processors: the order in the file is not that of time.
        assert!(frame.at.zip(last).is_none_or(|(at, last)| at + SLACK >= last), "{}", frame.number);
        last = frame.at;
        all += 1;
        if seen.endpoints.dst.port() == 47_101 && seen.segment.payload > 0 {
            assert!(!seen.segment.flags.has(Flags::SYN));
            data += u64::from(seen.segment.payload.div_ceil(1_448));
        }
    }
    assert_eq!(reader.interfaces()[0].snaplen, 100);
    assert_eq!(reader.tally().frames, all);
    (data, all)
}

#[test]
fn captures_have_all_packets_of_the_recorded_transfers() {
    let fates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux/fates.csv");
    let mut rows = csv::Reader::from_path(fates).unwrap();
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    for transfer in transfers() {
        let name = transfer.file_name().unwrap().to_str().unwrap();
        let sum = |column: usize| -> u64 {
            let of_transfer = rows.iter().filter(|row| &row[0] == name);
            of_transfer.map(|row| row[column].parse::<u64>().unwrap()).sum()
        };
        let (packets, lost) = (sum(2), sum(5));
        let (sent, _) = count(&transfer.join("sender.pcap.xz"));
        let (received, _) = count(&transfer.join("receiver.pcap.xz"));
        // Bursts merged by TSO or GRO may contain short segments, so that a few more were sent.
        let merged = name.starts_with("b1") || name.starts_with("b2") || name.starts_with("b3");
        if merged {
            assert!(sent <= packets && received <= packets - lost, "{name}");
        } else {
            assert_eq!((sent, received), (packets, packets - lost), "{name}");
        }
    }
}
