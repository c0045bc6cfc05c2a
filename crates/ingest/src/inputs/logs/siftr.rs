//! FreeBSD's siftr.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use diagnose::StateSample;
use logs::siftr::{SiftrItem, SiftrReader, SiftrRow};
use units::Bytes;

use super::super::File;
use super::{LogEpoch, LogFile};

/// `snd_ssthresh` before any loss: TCP_MAXWIN << TCP_MAX_WINSHIFT (tcp_subr.c).
const UNSET: u32 = 65_535 << 14;

pub(super) fn read(input: impl BufRead, file: &mut File) -> io::Result<LogFile> {
    let mut logs = LogFile { times: LogEpoch::Since1970, ..LogFile::default() };
    // Rows of siftr2 have a flow id; the last line maps it to addresses.
    let mut nameless: BTreeMap<u32, Vec<SiftrRow>> = BTreeMap::new();
    let mut kept = 0;
    let mut hz = None;
    for item in SiftrReader::new(input) {
        match item {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                file.problems.push(&error);
                break;
            }
            Err(error) => return Err(error),
            Ok(SiftrItem::Problem(problem)) => file.problems.push(&problem),
            Ok(SiftrItem::Header(header)) => hz = header.hz,
            Ok(SiftrItem::Footer(footer)) => {
                for flow in footer.flows {
                    let rows = flow.id.and_then(|id| nameless.remove(&id)).unwrap_or_default();
                    for row in rows {
                        let ends = (flow.local, flow.remote);
                        logs.word(ends, Some(row.at.as_nanos()), sample(&row, hz));
                    }
                }
            }
            Ok(SiftrItem::Row(row)) => {
                file.frames += 1;
                match (row.local, row.remote, row.flow_id) {
                    (Some(local), Some(remote), _) => {
                        logs.word((local, remote), Some(row.at.as_nanos()), sample(&row, hz));
                    }
                    (.., Some(flow)) => {
                        kept += 1;
                        if kept <= super::MAX_LOG_RECORDS {
                            nameless.entry(flow).or_default().push(row);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    if !nameless.is_empty() {
        let rows: usize = nameless.values().map(Vec::len).sum();
        let flows = nameless.len();
        file.problems.push(&format!(
            "the last line does not list {flows} flows: their {rows} rows are ignored"
        ));
    }
    Ok(logs)
}

fn sample(row: &SiftrRow, hz: Option<u32>) -> StateSample {
    let bytes = |value: u32| Some(Bytes(u64::from(value)));
    StateSample {
        cwnd: bytes(row.cwnd),
        ssthresh: bytes(row.ssthresh).filter(|_| row.ssthresh < UNSET),
        srtt: row.srtt.filter(|srtt| !srtt.is_zero()),
        inflight: bytes(row.in_flight),
        snd_wnd: bytes(row.snd_wnd),
        send_buffer: bytes(row.snd_cc),
        hz,
        in_recovery: Some(row.t_flags & trace::bblog::t_flags::FASTRECOVERY != 0),
        ..LogFile::blank()
    }
}
