//! The mail's trace, line by line.

use packet::wire::Endpoints;
use packet::{Dir, Segment};
use record::{Event, Recorder, SenderState, SentKind, Who};
use trace::tcpdump::{self, Style, TraceLine, Writer};
use units::Instant;

use super::{TRACE, load, run};
use crate::cases::{CaseError, Row};

/// The mail's trace with its remarks.
const MAIL: &str = include_str!("../../../../../golden/published/slow-start-lro.txt");

/// Watches the sender's tap and the window at each flight.
struct Watcher {
    writer: Writer<Vec<u8>>,
    left: usize,
    /// Congestion window in segments whenever new data left, with the moment.
    cwnd: Vec<(Instant, u64)>,
    failed: Option<std::io::Error>,
}

impl Recorder for Watcher {
    const ON: bool = true;

    fn record(&mut self, at: Instant, who: Who, event: Event, state: Option<&SenderState>) {
        let new_data = matches!(event, Event::Sent { kind: SentKind::New, .. });
        if let Some(state) = state.filter(|_| new_data && who.host.0 == 0) {
            self.cwnd.push((at, state.cwnd.get() / state.mss.get()));
        }
    }
}

impl sim::Observer for Watcher {
    fn tap(&mut self, at: Instant, _: usize, _: bool, segment: &Segment) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let [client, server] = ["192.0.2.1:40000", "192.0.2.2:5001"].map(|text| text.parse());
        let (Ok(client), Ok(server)) = (client, server) else { return };
        let (src, dst) = match segment.dir {
            Dir::Forward => (client, server),
            Dir::Reverse => (server, client),
        };
        let written = self.writer.segment(at, segment, &Endpoints { src, dst });
        self.failed = self.failed.take().or(written.err());
    }
}

/// The rows of the trace, and both traces side by side.
pub(super) fn rows() -> Result<(Vec<Row>, String), CaseError> {
    let unreadable = |error: tcpdump::TextError| CaseError(format!("{error}"));
    let published = tcpdump::read(MAIL).map_err(unreadable)?;
    let loaded = load(TRACE, "slow-start-lro.toml", &[])?;
    let names = vec![
        ([192, 0, 2, 1].into(), "sender".to_owned()),
        ([192, 0, 2, 2].into(), "sink".to_owned()),
    ];
    let mut watcher = Watcher {
        writer: Writer::new(Vec::new(), Style::brief(names)),
        left: published.len(),
        cwnd: Vec::new(),
        failed: None,
    };
    run(&loaded, &mut watcher)?;
    if let Some(error) = watcher.failed {
        return Err(CaseError(error.to_string()));
    }
    let written = watcher.writer.finish().map_err(|error| CaseError(error.to_string()))?;
    let ours = String::from_utf8_lossy(&written).into_owned();
    let measured = tcpdump::read(&ours).map_err(unreadable)?;
    let mut rows = handshake(&published, &measured);
    rows.extend(flights(&published, &measured));
    rows.extend(windows_of_flights(&watcher.cwnd));
    rows.extend(times(&published, &measured));
    rows.extend(sink_windows(&published, &measured));
    Ok((rows, side_by_side(&published, &ours)))
}

/// Options as tcpdump prints them, without the values of the timestamps' clocks.
fn options(line: Option<&TraceLine<'_>>) -> Option<String> {
    let options = line?.options?;
    let mut parts = Vec::new();
    parts.extend(options.mss.map(|mss| format!("mss {mss}")));
    parts.extend(options.window_scale.map(|scale| format!("wscale {scale}")));
    parts.extend(options.sack_permitted.then(|| "sackOK".to_owned()));
    parts.extend(options.timestamps.map(|ts| format!("TS val {} ecr {}", ts.val, ts.ecr)));
    Some(parts.join(","))
}

fn handshake(published: &[TraceLine<'_>], measured: &[TraceLine<'_>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, name) in ["SYN", "SYN-ACK", "first ACK"].into_iter().enumerate() {
        let Some(line) = published.get(number) else { break };
        let ours = measured.get(number);
        if let Some(text) = options(Some(line)) {
            rows.push(Row::text(format!("{name}: options"), &text, options(ours)));
        }
        rows.push(Row::exact(
            format!("{name}: window field"),
            "",
            f64::from(line.window),
            ours.map(|line| f64::from(line.window)),
        ));
    }
    rows
}

fn flights(published: &[TraceLine<'_>], measured: &[TraceLine<'_>]) -> Vec<Row> {
    let data = |lines: &[TraceLine<'_>]| -> Vec<(u32, String)> {
        let with_data = lines.iter().filter(|line| line.length > 0);
        with_data.map(|line| (line.length, line.flags.to_string())).collect()
    };
    let (published, measured) = (data(published), data(measured));
    let mut rows = Vec::new();
    for (number, (length, flags)) in published.iter().enumerate() {
        let ours = measured.get(number);
        let name = format!("flight {}", number + 1);
        let length_row =
            Row::exact(&name, "B", f64::from(*length), ours.map(|(len, _)| f64::from(*len)));
        rows.push(length_row);
        let flags_of_ours = ours.map(|(_, flags)| flags.clone());
        rows.push(Row::text(format!("{name}: flags"), flags, flags_of_ours));
    }
    rows
}

/// The mail's remarks: cwnd 10 MSS, then 2 MSS more at each ACK.
fn windows_of_flights(cwnd: &[(Instant, u64)]) -> Vec<Row> {
    let mut at_flight: Vec<(Instant, u64)> = cwnd.to_vec();
    at_flight.dedup_by_key(|&mut (_, segments)| segments);
    let published = [10_u64, 12, 14, 16];
    let rows = published.iter().enumerate().map(|(number, &segments)| {
        let ours = at_flight.get(number).map(|&(_, segments)| segments as f64);
        Row::exact(format!("cwnd at flight {}", number + 1), "MSS", segments as f64, ours)
    });
    rows.collect()
}

fn times(published: &[TraceLine<'_>], measured: &[TraceLine<'_>]) -> Vec<Row> {
    let rows = published.iter().enumerate().map(|(number, line)| {
        let ours = measured.get(number).map(|line| line.at.as_secs_f64());
        Row::exact(format!("time of line {}", number + 1), "s", line.at.as_secs_f64(), ours)
    });
    rows.collect()
}

/// What the sink advertises hangs on its kernel's memory accounting, which the mail does not tell.
fn sink_windows(published: &[TraceLine<'_>], measured: &[TraceLine<'_>]) -> Vec<Row> {
    let acks = |lines: &[TraceLine<'_>]| -> Vec<f64> {
        let acks = lines.iter().filter(|line| line.src.host == "sink" && line.options.is_none());
        acks.map(|line| f64::from(line.window)).collect()
    };
    let (published, measured) = (acks(published), acks(measured));
    let rows = published.iter().enumerate().map(|(number, &window)| {
        Row::info(
            format!("window of the sink's ACK {}", number + 1),
            "x 2^7 B",
            window,
            measured.get(number).copied(),
        )
        .note("the sink's kernel and its memory accounting are not stated")
    });
    rows.collect()
}

/// Published lines and ours in pairs; what differs is marked.
fn side_by_side(published: &[TraceLine<'_>], ours: &str) -> String {
    let mut text = String::from("The trace: published (-) and ours (+); = where they agree\n");
    for (line, own) in published.iter().zip(ours.lines()) {
        let theirs = unwrapped(line.line);
        let own = own.split_whitespace().collect::<Vec<_>>().join(" ");
        if theirs == own {
            text.push_str(&format!("  = {own}\n"));
        } else {
            text.push_str(&format!("  - {theirs}\n  + {own}\n"));
        }
    }
    text
}

/// The packet line that begins at `first` (from 1) of the mail, its wrapping undone.
fn unwrapped(first: usize) -> String {
    let begins = |line: &str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let mut words: Vec<&str> = Vec::new();
    for (number, line) in MAIL.lines().enumerate().skip(first.saturating_sub(1)) {
        let ended = line.trim().is_empty() || line.trim_start().starts_with("//");
        let is_packet = begins(line) && line.contains(" IP ");
        if number + 1 > first && (ended || is_packet) {
            break;
        }
        words.extend(line.split_whitespace());
    }
    words.join(" ")
}
