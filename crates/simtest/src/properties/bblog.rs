//! Any bytes can be read; every problem is at a position in the file; a written copy of the
//! readable records reads the same.

use trace::bblog::{
    BblogItem, BblogReader, BblogRecord, BblogSection, BblogWriter, TcpLogBuffer, flags,
};

fn read(file: &[u8]) -> (Vec<BblogSection>, Vec<BblogRecord>) {
    let mut reader = BblogReader::new(file);
    let (mut sections, mut records, mut problems) = (Vec::new(), Vec::new(), 0);
    for item in reader.by_ref() {
        match item.expect("bytes in memory are read") {
            BblogItem::Section(section) => sections.push(section),
            BblogItem::Record(record) => {
                assert!(record.offset < file.len() as u64);
                let _ = (record.info.stack(), record.info.event().to_string());
                records.push(record);
            }
            BblogItem::Problem(problem) => {
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

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) {
    let (sections, records) = read(input);
    let Some(section) = sections.iter().find(|section| section.connection.is_some()) else {
        return;
    };
    let mut writer = BblogWriter::new(Vec::new(), section).expect("a section is written");
    let mut written = Vec::new();
    for record in records {
        let done = match record.packet {
            Some(packet) => {
                let info = TcpLogBuffer {
                    event_flags: record.info.event_flags | flags::HDR,
                    ..record.info
                };
                let segment = packet.segment;
                let done = writer.packet(&info, packet.way, &segment);
                done.map(|()| (info, Some((packet.way, packet::Segment { ecn: 0, ..segment }))))
            }
            None => {
                let info = TcpLogBuffer {
                    event_flags: record.info.event_flags & !flags::HDR,
                    ..record.info
                };
                writer.event(&info).map(|()| (info, None))
            }
        };
        written.extend(done.ok());
    }
    let (_, repeated) = read(&writer.finish().expect("memory takes all"));
    let repeated: Vec<_> = repeated
        .into_iter()
        .map(|record| (record.info, record.packet.map(|packet| (packet.way, packet.segment))))
        .collect();
    for (written, repeated) in written.iter_mut().zip(&repeated) {
        if let (Some((_, segment)), Some((_, again))) = (&mut written.1, &repeated.1) {
            *segment = super::rewritten(*segment, again);
        }
    }
    assert_eq!(repeated, written);
}
