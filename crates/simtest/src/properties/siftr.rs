//! Any bytes are read; every problem lies in the file; what was read and can be written reads the
//! same again.

use logs::siftr::{Footer, Generation, Header, Item, Reader, Row, Writer};

/// All rows, each with the header it stands below.
fn read(log: &[u8]) -> Vec<(Header, Vec<Row>)> {
    let mut reader = Reader::new(log);
    let mut below = Vec::new();
    let (mut rows, mut problems) = (0, 0);
    for item in reader.by_ref() {
        match item.expect("bytes in memory are read") {
            Item::Header(header) => below.push((header, Vec::new())),
            Item::Row(row) => {
                rows += 1;
                if let Some((_, rows)) = below.last_mut() {
                    rows.push(row);
                }
            }
            Item::Footer(footer) => {
                let _ = footer.lost();
            }
            Item::Problem(problem) => {
                assert!(problem.offset <= log.len() as u64, "{problem}");
                problems += 1;
            }
        }
    }
    assert_eq!((reader.loss().rows, reader.loss().problems), (rows, problems));
    below
}

/// Can its times be written again as they were?
fn keeps_times(header: &Header) -> bool {
    let unit = |hz: u32, scale: u32| u64::from(hz) * u64::from(scale);
    match header.generation {
        Generation::V1_2 => {
            header.hz.zip(header.rtt_scale).is_some_and(|(hz, scale)| unit(hz, scale) <= 1_000_000)
        }
        _ => true,
    }
}

/// Reads `input`.
///
/// # Panics
/// If a claim does not hold.
pub fn check(input: &[u8]) {
    for (header, rows) in read(input) {
        let header = Header { binary: false, ..header };
        if !keeps_times(&header) {
            continue;
        }
        // A version that is none reads as 1.3, and is written as such.
        let version = header.generation.version().to_owned();
        let Ok(mut writer) = Writer::new(Vec::new(), &Header { version, ..header }) else {
            continue;
        };
        // What the numbers of a row's flow are depends on how many columns 1.2 has.
        let old = header.generation == Generation::V1_2;
        let mut written = Vec::new();
        for row in rows {
            let row = if old { Row { flow_id: None, flow_type: None, ..row } } else { row };
            if writer.row(&row).is_ok() {
                written.push(row);
            }
        }
        writer.footer(&Footer::default()).expect("memory takes all");
        let again = read(&writer.finish().expect("memory takes all"));
        assert_eq!(again.first().map(|(_, rows)| rows.as_slice()), Some(&written[..]));
    }
}
