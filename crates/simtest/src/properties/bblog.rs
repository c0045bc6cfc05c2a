//! Any bytes are read; every problem lies in the file; what was read and can be written reads the
//! same again.

use trace::bblog::{Info, Item, Reader, Record, Section, Writer, flags};

fn read(file: &[u8]) -> (Vec<Section>, Vec<Record>) {
    let mut reader = Reader::new(file);
    let (mut sections, mut records, mut problems) = (Vec::new(), Vec::new(), 0);
    for item in reader.by_ref() {
        match item.expect("bytes in memory are read") {
            Item::Section(section) => sections.push(section),
            Item::Record(record) => {
                assert!(record.offset < file.len() as u64);
                let _ = (record.info.stack(), record.info.event().to_string());
                records.push(record);
            }
            Item::Problem(problem) => {
                assert!(problem.offset < file.len() as u64, "{problem}");
                problems += 1;
            }
        }
    }
    let loss = reader.loss();
    assert_eq!((loss.records, loss.problems), (records.len() as u64, problems));
    assert!(loss.skipped_bytes <= file.len() as u64);
    if let Some(hz) = reader.hz() {
        assert!(hz.least_milli <= hz.most_milli);
        let _ = (hz.srtt_nanos(u32::MAX), hz.to_string());
    }
    (sections, records)
}

/// Reads `input`.
///
/// # Panics
/// If a claim does not hold.
pub fn check(input: &[u8]) {
    let (sections, records) = read(input);
    let Some(section) = sections.iter().find(|section| section.connection.is_some()) else {
        return;
    };
    let mut writer = Writer::new(Vec::new(), section).expect("a section is written");
    let mut written = Vec::new();
    for record in records {
        let done = match record.packet {
            Some(packet) => {
                let info =
                    Info { event_flags: record.info.event_flags | flags::HDR, ..record.info };
                let segment = packet.segment;
                let done = writer.packet(&info, packet.way, &segment);
                done.map(|()| (info, Some((packet.way, packet::Segment { ecn: 0, ..segment }))))
            }
            None => {
                let info =
                    Info { event_flags: record.info.event_flags & !flags::HDR, ..record.info };
                writer.event(&info).map(|()| (info, None))
            }
        };
        written.extend(done.ok());
    }
    let (_, again) = read(&writer.finish().expect("memory takes all"));
    let again: Vec<_> = again
        .into_iter()
        .map(|record| (record.info, record.packet.map(|packet| (packet.way, packet.segment))))
        .collect();
    assert_eq!(again, written);
}
