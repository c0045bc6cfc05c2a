//! The trace of the freebsd-net post, line by line.

use packet::wire::Endpoints;
use packet::{Dir, Segment};
use record::{Event, EventSource, Recorder, SenderState, SentKind};
use trace::tcpdump::{self, LineOptions, Style, TcpdumpLine, TcpdumpWriter};
use units::Instant;

use super::TRACE;
use crate::cases::{CaseError, CaseRow, Workers, load, run};

/// The trace of the post with its comments.
const MAIL: &str = include_str!("../../../data/slow-start-lro.txt");

/// Observes the sender's tap and the window at each flight.
struct TraceWatcher {
    writer: TcpdumpWriter<Vec<u8>>,
    left: usize,
    /// Congestion window in segments at each transmission of new data, with the time.
    cwnd: Vec<(Instant, u64)>,
    failed: Option<std::io::Error>,
}

impl Recorder for TraceWatcher {
    const ON: bool = true;

    fn record(
        &mut self,
        at: Instant,
        source: EventSource,
        event: Event,
        state: Option<&SenderState>,
    ) {
        let new_data = matches!(event, Event::Sent { kind: SentKind::New, .. });
        if let Some(state) = state.filter(|_| new_data && source.host.0 == 0) {
            self.cwnd.push((at, state.cwnd.get() / state.mss.get()));
        }
    }
}

impl sim::Observer for TraceWatcher {
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

/// The model's trace of the first `lines` packets as text, and the congestion windows of the
/// flights.
fn replay(
    lines: usize,
    set: &[&str],
    workers: &Workers<'_>,
) -> Result<(String, Vec<(Instant, u64)>), CaseError> {
    let loaded = load(TRACE, "slow-start-lro.toml", set)?;
    let names = vec![
        ([192, 0, 2, 1].into(), "sender".to_owned()),
        ([192, 0, 2, 2].into(), "sink".to_owned()),
    ];
    let mut watcher = TraceWatcher {
        writer: TcpdumpWriter::new(Vec::new(), Style::brief(names)),
        left: lines,
        cwnd: Vec::new(),
        failed: None,
    };
    run(&loaded, &mut watcher, workers)?;
    if let Some(error) = watcher.failed {
        return Err(CaseError(error.to_string()));
    }
    let written = watcher.writer.finish().map_err(|error| CaseError(error.to_string()))?;
    Ok((String::from_utf8_lossy(&written).into_owned(), watcher.cwnd))
}

fn read(text: &str) -> Result<Vec<TcpdumpLine<'_>>, CaseError> {
    tcpdump::read(text).map_err(|error| CaseError(error.to_string()))
}

/// The rows of the trace, and both traces side by side.
pub(super) fn rows(workers: &Workers<'_>) -> Result<(Vec<CaseRow>, String), CaseError> {
    let published = read(MAIL)?;
    let (ours, cwnd) = replay(published.len(), &[], workers)?;
    let measured = read(&ours)?;
    let mut rows = handshake(&published, &measured, &ours);
    rows.extend(flights(&published, &measured));
    rows.extend(windows_of_flights(&cwnd));
    rows.extend(times(&published, &measured));
    rows.extend(sink_windows(&published, &measured));
    Ok((rows, side_by_side(&published, &ours)))
}

/// One SYN option as a number.
type SynField = (&'static str, fn(&LineOptions) -> Option<f64>);

const FIELDS: [SynField; 4] = [
    ("mss", |o| o.mss.map(f64::from)),
    ("wscale", |o| o.window_scale.map(f64::from)),
    ("TS val", |o| o.timestamps.map(|stamps| f64::from(stamps.val))),
    ("TS ecr", |o| o.timestamps.map(|stamps| f64::from(stamps.ecr))),
];

/// The kinds of options of a packet line in order: `mss,nop,wscale,sackOK,TS`.
fn option_order(line: &str) -> Option<String> {
    let (_, after) = line.split_once("options [")?;
    let (inside, _) = after.split_once(']')?;
    let kinds = inside.split(',').map(|option| option.split_whitespace().next().unwrap_or(""));
    Some(kinds.collect::<Vec<_>>().join(","))
}

/// Options and windows of the three segments of the handshake.
fn handshake(
    published: &[TcpdumpLine<'_>],
    measured: &[TcpdumpLine<'_>],
    ours: &str,
) -> Vec<CaseRow> {
    let mut rows = Vec::new();
    let names = ["SYN", "SYN-ACK", "first ACK"];
    for (number, (name, line)) in names.into_iter().zip(published).enumerate() {
        let own = measured.get(number);
        if let Some(order) = option_order(&unwrapped(line.line)) {
            let own = ours.lines().nth(number).and_then(option_order);
            rows.push(CaseRow::text(format!("{name}: options"), &order, own));
        }
        for (field, value) in FIELDS {
            if let Some(published) = line.options.as_ref().and_then(value) {
                let own = own.and_then(|own| own.options.as_ref().and_then(value));
                let name = format!("{name}: {field}");
                rows.push(match field {
                    "TS val" => CaseRow::calibrated(name, "", published, own)
                        .note("the host's timestamp clock and its phase are set to it"),
                    "wscale" => CaseRow::exact(name, "", published, own)
                        .note("follows from the size of the host's buffers, inferred from it"),
                    _ => CaseRow::exact(name, "", published, own),
                });
            }
        }
        let window = own.map(|own| f64::from(own.window));
        rows.push(CaseRow::exact(format!("{name}: win"), "", f64::from(line.window), window));
    }
    rows
}

fn flights(published: &[TcpdumpLine<'_>], measured: &[TcpdumpLine<'_>]) -> Vec<CaseRow> {
    let data = |lines: &[TcpdumpLine<'_>]| -> Vec<(u32, String)> {
        let with_data = lines.iter().filter(|line| line.length > 0);
        with_data.map(|line| (line.length, line.flags.to_string())).collect()
    };
    let (published, measured) = (data(published), data(measured));
    let mut rows = Vec::new();
    for (number, (length, flags)) in published.iter().enumerate() {
        let ours = measured.get(number);
        let name = format!("flight {}", number + 1);
        let length_row =
            CaseRow::exact(&name, "B", f64::from(*length), ours.map(|(len, _)| f64::from(*len)));
        rows.push(length_row);
        let flags_of_ours = ours.map(|(_, flags)| flags.clone());
        rows.push(CaseRow::text(format!("{name}: flags"), flags, flags_of_ours));
    }
    rows
}

/// The comments of the post: cwnd 10 MSS, then 2 MSS more per ACK.
fn windows_of_flights(cwnd: &[(Instant, u64)]) -> Vec<CaseRow> {
    let mut at_flight: Vec<(Instant, u64)> = cwnd.to_vec();
    at_flight.dedup_by_key(|&mut (_, segments)| segments);
    let published = [10_u64, 12, 14, 16];
    let rows = published.iter().enumerate().map(|(number, &segments)| {
        let ours = at_flight.get(number).map(|&(_, segments)| segments as f64);
        CaseRow::exact(format!("cwnd at flight {}", number + 1), "MSS", segments as f64, ours)
    });
    rows.collect()
}

fn times(published: &[TcpdumpLine<'_>], measured: &[TcpdumpLine<'_>]) -> Vec<CaseRow> {
    let rows = published.iter().enumerate().map(|(number, line)| {
        let ours = measured.get(number).map(|line| line.at.as_secs_f64());
        CaseRow::exact(format!("time of line {}", number + 1), "s", line.at.as_secs_f64(), ours)
            .note("to the millisecond; one host delay, inferred from lines 4 and 9, for all")
    });
    rows.collect()
}

/// The sink's advertised window depends on its kernel's memory accounting, which the post does not
/// describe.
fn sink_windows(published: &[TcpdumpLine<'_>], measured: &[TcpdumpLine<'_>]) -> Vec<CaseRow> {
    let acks = |lines: &[TcpdumpLine<'_>]| -> Vec<f64> {
        let acks = lines.iter().filter(|line| line.src.host == "sink" && line.options.is_none());
        acks.map(|line| f64::from(line.window)).collect()
    };
    let (published, measured) = (acks(published), acks(measured));
    let rows = published.iter().enumerate().map(|(number, &window)| {
        CaseRow::info(
            format!("window of the sink's ACK {}", number + 1),
            "x 2^7 B",
            window,
            measured.get(number).copied(),
        )
        .note("the sink's kernel and its memory accounting are not stated")
    });
    rows.collect()
}

/// Published and measured lines in pairs, with differences marked.
fn side_by_side(published: &[TcpdumpLine<'_>], ours: &str) -> String {
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

/// The packet line of the post that begins at line `first` (from 1), unwrapped.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_trace_has_eleven_lines() {
        assert_eq!(read(MAIL).unwrap().len(), 11);
    }

    #[test]
    fn options_are_listed_in_order() {
        let line = "0.0 IP a > b: Flags [S], win 1, options [mss 9,nop,TS val 1 ecr 0], length 0";
        assert_eq!(option_order(line).as_deref(), Some("mss,nop,TS"));
        assert_eq!(option_order("0.0 IP a > b: Flags [.], ack 1, win 1, length 0"), None);
    }

    #[test]
    fn wrapped_lines_are_joined() {
        let line = read(MAIL).unwrap()[2].line;
        assert_eq!(
            unwrapped(line),
            "0.100 IP sender > sink: Flags [.], ack 1, win 65, options \
             [nop,nop,TS val 495212626 ecr 563185696], length 0"
        );
    }

    #[test]
    fn the_published_times_bound_the_host_delay() {
        // By hand: with a delay d the lines are at 0, 100+2d, 100+2d, 100+3d, 200+5d, 200+5d,
        // 300+7d, 300+7d, 400+9d, 400+9d, 400+10d ms, so 3d >= 0.5 and 7d < 1.5.
        let published = read(MAIL).unwrap();
        let holds = |delay: u32| {
            let (sender, sink) =
                (format!("host.sender.delay={delay}us"), format!("host.sink.delay={delay}us"));
            let (ours, _) = replay(published.len(), &[&sender, &sink], &Workers::one()).unwrap();
            times(&published, &read(&ours).unwrap()).iter().all(|row| row.holds == Some(true))
        };
        assert!([167, 180, 200, 214].into_iter().all(holds));
        assert!(![0, 100, 166, 215, 300].into_iter().any(holds));
    }
}
