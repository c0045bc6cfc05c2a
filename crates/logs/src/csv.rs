//! Writes one row per event, with the state of the sender after it.
//!
//! [`CsvRecorder`] records a run and streams its rows. Every column with a quantity has its unit in
//! its name; times and quotients are exact decimals. Cells of the state are empty if the event is
//! not one of a sender, `ssthresh_bytes` also while the threshold is unset and `srtt_us` before the
//! first sample. For QUIC, `snd_*` and `flight_*` count stream bytes, `bytes_in_flight` and the
//! window packet bytes (RFC 9002); `partial_bytes_acked` is 0 if the controller counts none,
//! `pacing_bps` is empty without pacing.
//!
//! ```
//! use record::{Event, EventSource, Recorder};
//! use logs::csv::CsvRecorder;
//! use units::{Duration, Instant};
//! # use ackclock_logs as logs;
//!
//! let mut recorder = CsvRecorder::new(Vec::new());
//! let at = Instant::ZERO + Duration::from_millis(100);
//! recorder.record(at, EventSource::default(), Event::DupAck { count: 3 }, None);
//! let text = String::from_utf8(recorder.finish()?).unwrap();
//! let row = text.lines().nth(1).unwrap();
//! assert_eq!(row, "0.100000000,0,0,dup_ack,count=3,,,,,,,,,,,,,,,,,,");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The output has all events, without aggregation.

mod names;

use std::io;

use record::{Event, EventSource, Recorder, SenderState};
use units::{Bytes, Duration, Instant};

use crate::decimal::Text;
use names::write_detail;
pub use names::{detail, name};

/// Names of the columns, in order.
pub const COLUMNS: [&str; 23] = [
    "time_s",
    "host",
    "flow",
    "event",
    "detail",
    "snd_una_bytes",
    "snd_nxt_bytes",
    "snd_max_bytes",
    "flight_bytes",
    "flight_mss",
    "cwnd_bytes",
    "cwnd_mss",
    "ssthresh_bytes",
    "snd_wnd_bytes",
    "mss_bytes",
    "buffered_bytes",
    "send_buffer_bytes",
    "srtt_us",
    "rto_us",
    "in_recovery",
    "bytes_in_flight",
    "partial_bytes_acked",
    "pacing_bps",
];

/// Columns after `detail`: those of the state.
const STATE_COLUMNS: usize = COLUMNS.len() - 5;

/// Bytes written at once.
const WRITE_SIZE: usize = 1 << 16;

/// Writes all events of a run as rows.
#[derive(Debug)]
pub struct CsvRecorder<W: io::Write> {
    out: W,
    /// Buffered rows.
    rows: Text,
    failed: Option<io::Error>,
}

impl<W: io::Write> CsvRecorder<W> {
    /// A recorder that writes to `out`, beginning with the header.
    pub fn new(out: W) -> Self {
        let mut rows = Text::new(WRITE_SIZE + 1_024);
        rows.word(&COLUMNS.join(","));
        rows.byte(b'\n');
        Self { out, rows, failed: None }
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    ///
    /// The first error of the output; nothing was written after it.
    pub fn finish(mut self) -> io::Result<W> {
        self.write();
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    #[inline(never)]
    fn write(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(self.rows.bytes()).err();
        }
        self.rows.clear();
    }
}

impl<W: io::Write> Recorder for CsvRecorder<W> {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if self.failed.is_some() {
            return;
        }
        let rows = &mut self.rows;
        rows.fixed::<9>(at.as_nanos());
        rows.byte(b',');
        rows.whole(who.host.0.into());
        rows.byte(b',');
        rows.whole(who.flow.0.into());
        rows.byte(b',');
        rows.word(name(&event));
        rows.byte(b',');
        write_detail(rows, &event);
        match state {
            Some(state) => write_state(rows, state),
            None => (0..STATE_COLUMNS).for_each(|_| rows.byte(b',')),
        }
        rows.byte(b'\n');
        if rows.len() >= WRITE_SIZE {
            self.write();
        }
    }
}

/// Writes the cells of the state, each after a comma.
fn write_state(rows: &mut Text, state: &SenderState) {
    let (flight, mss) = (state.flight_size(), state.mss);
    let mut whole = |value: u64| {
        rows.byte(b',');
        rows.whole(value);
    };
    whole(state.snd_una.0);
    whole(state.snd_nxt.0);
    whole(state.snd_max.0);
    whole(flight.get());
    multiple(rows, flight, mss);
    rows.byte(b',');
    rows.whole(state.cwnd.get());
    multiple(rows, state.cwnd, mss);
    rows.byte(b',');
    if let Some(ssthresh) = state.ssthresh {
        rows.whole(ssthresh.get());
    }
    let mut whole = |value: u64| {
        rows.byte(b',');
        rows.whole(value);
    };
    whole(state.snd_wnd.get());
    whole(mss.get());
    whole(state.buffered.get());
    whole(state.send_buffer.get());
    rows.byte(b',');
    if let Some(srtt) = state.srtt {
        micros(rows, srtt);
    }
    rows.byte(b',');
    micros(rows, state.rto);
    let mut whole = |value: u64| {
        rows.byte(b',');
        rows.whole(value);
    };
    whole(state.in_recovery.into());
    whole(state.in_flight.get());
    whole(state.partial_acked.get());
    rows.byte(b',');
    if let Some(pacing) = state.pacing {
        rows.whole(pacing.bits_per_second());
    }
}

/// Writes microseconds with three decimals.
fn micros(rows: &mut Text, span: Duration) {
    rows.fixed::<3>(span.as_nanos());
}

/// Writes a comma and `bytes / unit`, rounded to a thousandth; nothing if `unit` is zero.
fn multiple(rows: &mut Text, bytes: Bytes, unit: Bytes) {
    rows.byte(b',');
    let (bytes, unit) = (bytes.get(), unit.get());
    if unit == 0 {
        return;
    }
    if bytes < 1 << 52 && unit < 1 << 52 {
        return rows.fixed::<3>((bytes * 2_000 + unit) / (2 * unit));
    }
    let (bytes, unit) = (u128::from(bytes), u128::from(unit));
    let thousandths = (bytes * 2_000 + unit) / (2 * unit);
    // The integral part is at most `bytes`.
    rows.whole((thousandths / 1_000) as u64);
    rows.byte(b'.');
    for place in [100, 10, 1] {
        rows.byte(b'0' + (thousandths / place % 10) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Cause, SentKind};
    use units::{FlowId, HostId, Offset};

    const WHO: EventSource = EventSource { host: HostId(1), flow: FlowId(2) };

    fn state() -> SenderState {
        SenderState {
            snd_una: Offset(14_480),
            snd_nxt: Offset(31_856),
            snd_max: Offset(31_856),
            cwnd: Bytes(17_376),
            ssthresh: None,
            snd_wnd: Bytes(54_656),
            mss: Bytes(1_448),
            buffered: Bytes(65_536),
            send_buffer: Bytes(131_072),
            srtt: Some(Duration::from_nanos(100_031_250)),
            rto: Duration::from_millis(330),
            in_recovery: false,
            in_flight: Bytes(17_376),
            partial_acked: Bytes::ZERO,
            bbr: None,
            pipe: Bytes(17_376),
            pacing: None,
        }
    }

    fn rows(events: &[(u64, Event, Option<SenderState>)]) -> Vec<String> {
        let mut recorder = CsvRecorder::new(Vec::new());
        for (nanos, event, state) in events {
            recorder.record(Instant::from_nanos(*nanos), WHO, *event, state.as_ref());
        }
        let text = String::from_utf8(recorder.finish().unwrap()).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_row_has_the_state_in_bytes_and_in_segments() {
        let sent = Event::Sent { at: Offset(14_480), len: 17_376, kind: SentKind::New };
        let rows = rows(&[(201_000_001, sent, Some(state()))]);
        assert_eq!(rows[0], COLUMNS.join(","));
        // 17,376 = 12 * 1,448.
        assert_eq!(
            rows[1],
            "0.201000001,1,2,sent,at_bytes=14480 len_bytes=17376 kind=new,14480,31856,31856,\
             17376,12.000,17376,12.000,,54656,1448,65536,131072,100031.250,330000.000,0,17376,0,"
        );
    }

    #[test]
    fn unset_is_empty_and_set_is_a_number() {
        let set = SenderState {
            ssthresh: Some(Bytes(8_688)),
            srtt: None,
            in_recovery: true,
            cwnd: Bytes(9_000),
            ..state()
        };
        let window =
            Event::Window { cwnd: 9_000, ssthresh: u32::MAX, cause: Cause::FastRetransmit };
        let rows = rows(&[(0, window, Some(set))]);
        // 9,000 / 1,448 = 6.2154...
        assert_eq!(
            rows[1],
            "0.000000000,1,2,window,cwnd_bytes=9000 cause=fast_retransmit,14480,31856,31856,\
             17376,12.000,9000,6.215,8688,54656,1448,65536,131072,,330000.000,1,17376,0,"
        );
    }

    #[test]
    fn events_without_a_sender_leave_the_state_empty() {
        let repeated = SentKind::Retransmission(Cause::Timeout);
        let rows = rows(&[
            (u64::MAX - 1, Event::Dropped { element: 1, bytes: 1_500 }, None),
            (1, Event::Sent { at: Offset(0), len: 1, kind: repeated }, None),
        ]);
        let empty = ",".repeat(18);
        assert_eq!(
            rows[1],
            format!("18446744073.709551614,1,2,dropped,element=1 len_bytes=1500{empty}")
        );
        assert_eq!(
            rows[2],
            format!("0.000000001,1,2,sent,at_bytes=0 len_bytes=1 kind=again cause=timeout{empty}")
        );
    }

    #[test]
    fn quotients_are_rounded_to_the_nearest_thousandth() {
        let text = |n, unit| {
            let mut text = Text::new(0);
            multiple(&mut text, Bytes(n), Bytes(unit));
            String::from_utf8(text.bytes().to_vec()).unwrap()
        };
        assert_eq!(text(1, 3), ",0.333");
        assert_eq!(text(2, 3), ",0.667");
        assert_eq!(text(1, 2_000), ",0.001");
        assert_eq!(text(1, 2_001), ",0.000");
        assert_eq!(text(u64::MAX, 1), ",18446744073709551615.000");
        assert_eq!(text(u64::MAX, u64::MAX), ",1.000");
        assert_eq!(text(1_500, u64::MAX), ",0.000");
        assert_eq!(text(1, 0), ",");
    }

    #[test]
    fn the_first_error_is_kept() {
        struct Full(usize);
        impl io::Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                match self.0.checked_sub(bytes.len()) {
                    Some(left) => {
                        self.0 = left;
                        Ok(bytes.len())
                    }
                    None => Err(io::ErrorKind::StorageFull.into()),
                }
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut recorder = CsvRecorder::new(Full(200_000));
        for nanos in 0..10_000 {
            recorder.record(Instant::from_nanos(nanos), WHO, Event::Connected, None);
        }
        let error = recorder.finish().err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
