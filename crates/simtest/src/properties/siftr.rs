//! Any bytes can be read; every problem is at a position in the file; a written copy of the
//! readable rows reads the same.

use logs::siftr::{
    SiftrFooter, SiftrGeneration, SiftrHeader, SiftrItem, SiftrReader, SiftrRow, SiftrWriter,
};

/// All rows, each with its header.
fn read(log: &[u8]) -> Vec<(SiftrHeader, Vec<SiftrRow>)> {
    let mut reader = SiftrReader::new(log);
    let mut below = Vec::new();
    let (mut rows, mut problems) = (0, 0);
    for item in reader.by_ref() {
        match item.expect("bytes in memory are read") {
            SiftrItem::Header(header) => below.push((header, Vec::new())),
            SiftrItem::Row(row) => {
                rows += 1;
                if let Some((_, rows)) = below.last_mut() {
                    rows.push(row);
                }
            }
            SiftrItem::Footer(footer) => {
                let _ = footer.lost();
            }
            SiftrItem::Problem(problem) => {
                assert!(problem.offset <= log.len() as u64, "{problem}");
                problems += 1;
            }
        }
    }
    assert_eq!((reader.loss().rows, reader.loss().problems), (rows, problems));
    below
}

/// Returns whether its times can be written exactly.
fn keeps_times(header: &SiftrHeader) -> bool {
    let unit = |hz: u32, scale: u32| u64::from(hz) * u64::from(scale);
    match header.generation {
        SiftrGeneration::V1_2 => {
            header.hz.zip(header.rtt_scale).is_some_and(|(hz, scale)| unit(hz, scale) <= 1_000_000)
        }
        _ => true,
    }
}

/// Checks `input`.
///
/// # Panics
/// If a property does not hold.
pub fn check(input: &[u8]) {
    for (header, rows) in read(input) {
        let header = SiftrHeader { binary: false, ..header };
        if !keeps_times(&header) {
            continue;
        }
        // An invalid version is read as 1.3, and written as such.
        let version = header.generation.version().to_owned();
        let Ok(mut writer) = SiftrWriter::new(Vec::new(), &SiftrHeader { version, ..header })
        else {
            continue;
        };
        // The columns of a row's flow depend on the number of columns in 1.2.
        let old = header.generation == SiftrGeneration::V1_2;
        let mut written = Vec::new();
        for row in rows {
            let row = if old { SiftrRow { flow_id: None, flow_type: None, ..row } } else { row };
            if writer.row(&row).is_ok() {
                written.push(row);
            }
        }
        writer.footer(&SiftrFooter::default()).expect("memory takes all");
        let repeated = read(&writer.finish().expect("memory takes all"));
        assert_eq!(repeated.first().map(|(_, rows)| rows.as_slice()), Some(&written[..]));
    }
}
