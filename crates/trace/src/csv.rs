//! One row per event, with the state of the sender after it.
//!
//! [`CsvRecorder`] listens to a run and writes as it goes. Every column with a quantity has its
//! unit in its name; times and quotients are exact decimals. Cells of the state are empty where the
//! event is not one of a sender, `ssthresh_bytes` also while the threshold is unset and `srtt_us`
//! before the first sample. Of QUIC, `snd_*` and `flight_*` count bytes of the stream,
//! `bytes_in_flight` and the window bytes of packets, against which RFC 9002 holds the window;
//! `partial_bytes_acked` is 0 where the controller counts none, `pacing_bps` empty without pacing.
//!
//! ```
//! use record::{Event, Recorder, Who};
//! use trace::csv::CsvRecorder;
//! use units::{Duration, Instant};
//! # use ackclock_trace as trace;
//!
//! let mut recorder = CsvRecorder::new(Vec::new());
//! let at = Instant::ZERO + Duration::from_millis(100);
//! recorder.record(at, Who::default(), Event::DupAck { count: 3 }, None);
//! let text = String::from_utf8(recorder.finish()?).unwrap();
//! let row = text.lines().nth(1).unwrap();
//! assert_eq!(row, "0.100000000,0,0,dup_ack,count=3,,,,,,,,,,,,,,,,,,");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! What it does not do: it adds nothing up and leaves nothing out.

use std::fmt::{self, Write as _};
use std::io;

use record::{Cause, Event, Evidence, Purpose, Recorder, SenderState, SentKind, Waiting, Who};
use units::{Bytes, Duration, Instant, Rate};

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

/// Columns behind `detail`: those of the state.
const STATE_COLUMNS: usize = COLUMNS.len() - 5;

/// Writes all events of a run as rows.
#[derive(Debug)]
pub struct CsvRecorder<W: io::Write> {
    out: csv::Writer<W>,
    row: csv::ByteRecord,
    cell: String,
    failed: Option<csv::Error>,
}

impl<W: io::Write> CsvRecorder<W> {
    /// A recorder that writes to `out`, the names of the columns first.
    pub fn new(out: W) -> Self {
        let mut out = csv::Writer::from_writer(out);
        let failed = out.write_record(COLUMNS).err();
        Self { out, row: csv::ByteRecord::new(), cell: String::new(), failed }
    }

    /// Flushes and gives the output back.
    ///
    /// # Errors
    ///
    /// The first error of the output since the beginning; nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        if let Some(error) = self.failed {
            return Err(match error.into_kind() {
                csv::ErrorKind::Io(error) => error,
                other => io::Error::other(format!("{other:?}")),
            });
        }
        self.out.into_inner().map_err(|failed| {
            let error = failed.error();
            io::Error::new(error.kind(), error.to_string())
        })
    }

    fn cell(&mut self, value: impl fmt::Display) {
        self.cell.clear();
        // A String takes every text.
        let _ = write!(self.cell, "{value}");
        self.row.push_field(self.cell.as_bytes());
    }

    fn state(&mut self, state: &SenderState) {
        let (flight, mss) = (state.flight(), state.mss);
        self.cell(state.snd_una);
        self.cell(state.snd_nxt);
        self.cell(state.snd_max);
        self.cell(flight.get());
        self.cell(Multiple(flight, mss));
        self.cell(state.cwnd.get());
        self.cell(Multiple(state.cwnd, mss));
        self.cell(Known(state.ssthresh.map(Bytes::get)));
        self.cell(state.snd_wnd.get());
        self.cell(mss.get());
        self.cell(state.buffered.get());
        self.cell(state.send_buffer.get());
        self.cell(Known(state.srtt.map(Micros)));
        self.cell(Micros(state.rto));
        self.cell(u8::from(state.in_recovery));
        self.cell(state.in_flight.get());
        self.cell(state.partial_acked.get());
        self.cell(Known(state.pacing.map(Rate::bits_per_second)));
    }
}

impl<W: io::Write> Recorder for CsvRecorder<W> {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        if self.failed.is_some() {
            return;
        }
        self.row.clear();
        self.cell(Seconds(at));
        self.cell(who.host.0);
        self.cell(who.flow.0);
        self.cell(name(&event));
        self.cell(Detail(&event));
        match state {
            Some(state) => self.state(state),
            None => (0..STATE_COLUMNS).for_each(|_| self.row.push_field(b"")),
        }
        self.failed = self.out.write_byte_record(&self.row).err();
    }
}

/// Seconds with nine digits.
struct Seconds(Instant);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        write!(f, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
    }
}

/// Microseconds with three digits.
struct Micros(Duration);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        write!(f, "{}.{:03}", nanos / 1_000, nanos % 1_000)
    }
}

/// The first in units of the second, to the nearest thousandth; empty if that is zero.
struct Multiple(Bytes, Bytes);

impl fmt::Display for Multiple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, unit) = (u128::from(self.0.get()), u128::from(self.1.get()));
        if unit == 0 {
            return Ok(());
        }
        let thousandths = (n * 2_000 + unit) / (2 * unit);
        write!(f, "{}.{:03}", thousandths / 1_000, thousandths % 1_000)
    }
}

/// Empty if there is none.
struct Known<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}

/// The word in the column `event`.
pub fn name(event: &Event) -> &'static str {
    match event {
        Event::Connected => "connected",
        Event::Closed => "closed",
        Event::Aborted => "aborted",
        Event::Sent { .. } => "sent",
        Event::Acked { .. } => "acked",
        Event::DupAck { .. } => "dup_ack",
        Event::Lost { .. } => "lost",
        Event::Window { .. } => "window",
        Event::Timer(_) => "timer",
        Event::Waiting(_) => "waiting",
        Event::Wrote { .. } => "wrote",
        Event::Read { .. } => "read",
        Event::SendBuffer { .. } => "send_buffer",
        Event::ReceiveBuffer { .. } => "receive_buffer",
        Event::Merged { .. } => "merged",
        Event::Dropped { .. } => "dropped",
        Event::RttSample { .. } => "rtt_sample",
        Event::Covered { .. } => "covered",
        Event::PacketsAcked { .. } => "packets_acked",
        Event::PacketLost { .. } => "packet_lost",
    }
}

/// The text in the column `detail`: `key=value` with a blank between, units in the keys.
pub fn detail(event: &Event) -> impl fmt::Display {
    Detail(event)
}

/// What else the event says.
struct Detail<'a>(&'a Event);

impl fmt::Display for Detail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.0 {
            Event::Connected | Event::Closed | Event::Aborted => Ok(()),
            Event::Sent { at, len, kind } => {
                write!(f, "at_bytes={at} len_bytes={len} kind={}", kind_name(kind))?;
                match kind {
                    SentKind::Again(cause) => write!(f, " cause={}", cause_name(cause)),
                    _ => Ok(()),
                }
            }
            Event::Acked { una, bytes, nsegs } => {
                write!(f, "una_bytes={una} acked_bytes={bytes} nsegs={nsegs}")
            }
            Event::DupAck { count } => write!(f, "count={count}"),
            Event::Lost { packets } => write!(f, "packets={packets}"),
            Event::Window { cwnd, ssthresh, cause } => {
                write!(f, "cwnd_bytes={cwnd} ")?;
                if ssthresh != u32::MAX {
                    write!(f, "ssthresh_bytes={ssthresh} ")?;
                }
                write!(f, "cause={}", cause_name(cause))
            }
            Event::Timer(purpose) => write!(f, "purpose={}", purpose_name(purpose)),
            Event::Waiting(waiting) => write!(f, "for={}", waiting_name(waiting)),
            Event::Wrote { bytes } => write!(f, "len_bytes={bytes}"),
            Event::Read { bytes, upto } => write!(f, "len_bytes={bytes} upto_bytes={upto}"),
            Event::SendBuffer { size } | Event::ReceiveBuffer { size } => {
                write!(f, "size_bytes={size}")
            }
            Event::Merged { packets, bytes } => write!(f, "packets={packets} len_bytes={bytes}"),
            Event::Dropped { element, bytes } => write!(f, "element={element} len_bytes={bytes}"),
            Event::RttSample { rtt } => write!(f, "rtt_us={}", Micros(rtt)),
            Event::Covered { at, len } => write!(f, "at_bytes={at} len_bytes={len}"),
            Event::PacketsAcked { packets, bytes } => {
                write!(f, "packets={packets} packet_bytes={bytes}")
            }
            Event::PacketLost { number, space, by } => {
                let by = match by {
                    Evidence::Order => "packet_threshold",
                    Evidence::Time => "time_threshold",
                };
                write!(f, "packet={number} space={space} by={by}")
            }
        }
    }
}

const fn kind_name(kind: SentKind) -> &'static str {
    match kind {
        SentKind::Control => "control",
        SentKind::Ack => "ack",
        SentKind::New => "new",
        SentKind::Again(_) => "again",
        SentKind::Probe => "probe",
        SentKind::Reset => "reset",
    }
}

/// The word for a cause in the column `detail`.
pub const fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Start => "start",
        Cause::SlowStart => "slow_start",
        Cause::Avoidance => "avoidance",
        Cause::SlowStartExit => "slow_start_exit",
        Cause::FastRetransmit => "fast_retransmit",
        Cause::LostRetransmission => "lost_retransmission",
        Cause::LossProbe => "loss_probe",
        Cause::PartialAck => "partial_ack",
        Cause::Recovering => "recovering",
        Cause::Recovered => "recovered",
        Cause::Timeout => "timeout",
        Cause::Undone => "undone",
        Cause::Idle => "idle",
        Cause::Ecn => "ecn",
        Cause::PathMtu => "path_mtu",
        Cause::WindowProbe => "window_probe",
    }
}

const fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Retransmit => "retransmit",
        Purpose::DelayedAck => "delayed_ack",
        Purpose::Reorder => "reorder",
        Purpose::LossProbe => "loss_probe",
        Purpose::Persist => "persist",
        Purpose::Keepalive => "keepalive",
        Purpose::TimeWait => "time_wait",
        Purpose::Pacing => "pacing",
    }
}

const fn waiting_name(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::CongestionWindow => "congestion_window",
        Waiting::PeerWindow => "peer_window",
        Waiting::Application => "application",
        Waiting::SmallSegment => "small_segment",
        Waiting::Handshake => "handshake",
        Waiting::Done => "done",
        Waiting::Pacing => "pacing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{FlowId, HostId, Offset};

    const WHO: Who = Who { host: HostId(1), flow: FlowId(2) };

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
    fn events_of_others_leave_the_state_empty() {
        let again = SentKind::Again(Cause::Timeout);
        let rows = rows(&[
            (u64::MAX - 1, Event::Dropped { element: 1, bytes: 1_500 }, None),
            (1, Event::Sent { at: Offset(0), len: 1, kind: again }, None),
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
        let text = |n, unit| Multiple(Bytes(n), Bytes(unit)).to_string();
        assert_eq!(text(1, 3), "0.333");
        assert_eq!(text(2, 3), "0.667");
        assert_eq!(text(1, 2_000), "0.001");
        assert_eq!(text(1, 2_001), "0.000");
        assert_eq!(text(u64::MAX, 1), "18446744073709551615.000");
        assert_eq!(text(1, 0), "");
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
        let mut recorder = CsvRecorder::new(Full(20_000));
        for nanos in 0..10_000 {
            recorder.record(Instant::from_nanos(nanos), WHO, Event::Connected, None);
        }
        let error = recorder.finish().err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
