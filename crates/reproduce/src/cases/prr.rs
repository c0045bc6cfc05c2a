//! Case `prr`: proportional rate reduction, ACK by ACK.
//!
//! RFC 6937 section 3.1 has what each algorithm sends in response to each ACK of the first round trip
//! after a loss of one segment, and of fifteen, with a window of 20 segments. Linux uses the bound
//! PRR-CRB while nothing is acknowledged in order, FreeBSD PRR-SSRB. RFC 9937 section 8, figures 1
//! and 2, has the same two losses with corrected tables. Its rows for RFC 6675 without PRR are left out:
//! no modelled stack recovers so.

use record::{Event, EventSource, Recorder, SenderState, SentKind};
use units::{Instant, Offset};

use super::{CaseError, CaseInput, CaseRow, Measured, Workers, load, run};

/// The scenario of the case.
const SCENARIO: &str = samples::text("prr");

/// The overrides that lose the first fifteen of the twenty segments.
const FIFTEEN: &str = "path.0.forward.1.loss.bytes=14480B..36200B";
/// Linux sends at least two segments at once; the documents count single ones.
const SINGLE: &str = "host.sender.knobs.net.ipv4.tcp_min_tso_segs=1";
/// The overrides that make the sender FreeBSD, whose first window is ten segments too.
const FREEBSD: [&str; 3] = [
    "host.sender.profile=freebsd-main",
    "host.sender.cc=newreno",
    "host.sender.knobs.net.inet.tcp.initcwnd_segments=10",
];

/// What a sender did in response to an ACK.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct AckResponse {
    new: u32,
    retransmitted: u32,
    /// Segments in the network after the ACK, before anything was sent; `None` if no event has it.
    pipe: Option<u64>,
    /// Congestion window in segments then.
    cwnd: Option<u64>,
}

impl AckResponse {
    /// Keeps the window of the first event that has it.
    fn see_window(&mut self, state: Option<&SenderState>) {
        if let (None, Some(state)) = (self.cwnd, state) {
            self.cwnd = Some(state.cwnd.get() / state.mss.get().max(1));
        }
    }

    /// As in the tables of the RFC: `N`, `R`, `2R`; `.` for nothing.
    fn in_words(self) -> String {
        let times = |count: u32, kind: &str| match count {
            0 => String::new(),
            1 => kind.to_owned(),
            more => format!("{more}{kind}"),
        };
        let text = times(self.retransmitted, "R") + &times(self.new, "N");
        if text.is_empty() { ".".to_owned() } else { text }
    }
}

/// Collects the responses to duplicate ACKs until the first ACK in order.
#[derive(Debug, Default)]
struct ResponseRecorder {
    responses: Vec<AckResponse>,
    /// Bytes acknowledged in order.
    una: Offset,
}

/// The first window; the next one loses segments.
const FIRST_WINDOW: Offset = Offset(14_480);

impl ResponseRecorder {
    fn sent(&mut self, kind: SentKind, state: Option<&SenderState>) {
        let Some(response) = self.responses.last_mut() else { return };
        match kind {
            SentKind::New => response.new += 1,
            SentKind::Retransmission(_) => response.retransmitted += 1,
            _ => return,
        }
        response.see_window(state);
        let sent = u64::from(response.new + response.retransmitted);
        if response.pipe.is_none()
            && let Some(pipe) = state.map(pipe_in_segments)
        {
            response.pipe = Some(pipe - sent.min(pipe));
        }
    }
}

fn pipe_in_segments(state: &SenderState) -> u64 {
    state.pipe.get() / state.mss.get().max(1)
}

impl Recorder for ResponseRecorder {
    const ON: bool = true;

    fn record(&mut self, _: Instant, who: EventSource, event: Event, state: Option<&SenderState>) {
        if who.host.0 != 0 {
            return;
        }
        if let Event::Acked { una, .. } = event {
            self.una = una;
        }
        if self.una != FIRST_WINDOW {
            return;
        }
        match event {
            Event::DupAck { .. } => self.responses.push(AckResponse::default()),
            Event::Sent { kind, .. } => self.sent(kind, state),
            Event::Window { .. } => {
                let is_first =
                    |response: &&mut AckResponse| response.new + response.retransmitted == 0;
                if let Some(response) = self.responses.last_mut().filter(is_first) {
                    response.pipe = state.map(pipe_in_segments);
                    response.cwnd = None;
                    response.see_window(state);
                }
            }
            _ => {}
        }
    }
}

impl sim::Observer for ResponseRecorder {}

/// The responses to the ACKs of the segments that arrived of the window of twenty.
fn responses(
    count: usize,
    set: &[&str],
    workers: &Workers<'_>,
) -> Result<Vec<AckResponse>, CaseError> {
    let linux = !set.contains(&FREEBSD[0]);
    let set: Vec<&str> = set.iter().copied().chain(linux.then_some(SINGLE)).collect();
    let loaded = load(SCENARIO, "prr.toml", &set)?;
    let mut recorder = ResponseRecorder::default();
    run(&loaded, &mut recorder, workers)?;
    recorder.responses.truncate(count);
    Ok(recorder.responses)
}

fn sent(responses: &[AckResponse]) -> String {
    responses.iter().map(|one| one.in_words()).collect::<Vec<_>>().join(" ")
}

fn pipes(responses: &[AckResponse]) -> String {
    numbers(responses, |one| one.pipe)
}

fn windows(responses: &[AckResponse]) -> String {
    numbers(responses, |one| one.cwnd)
}

fn numbers(responses: &[AckResponse], of: impl Fn(&AckResponse) -> Option<u64>) -> String {
    let text = |one| of(one).map_or_else(|| "-".to_owned(), |number| number.to_string());
    responses.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Runs the case.
pub(super) fn measure(workers: &Workers<'_>) -> Result<Measured, CaseError> {
    let one = responses(21, &[], workers)?;
    let fifteen = responses(5, &[FIFTEEN], workers)?;
    let freebsd_set: Vec<&str> = FREEBSD.into_iter().chain([FIFTEEN]).collect();
    let freebsd = responses(5, &freebsd_set, workers)?;
    let part = |responses: &[AckResponse], from: usize, until: usize| {
        responses.get(from - 1..until).map(<[AckResponse]>::to_vec)
    };
    let sent_in = |responses: &[AckResponse], from, until| {
        part(responses, from, until).map(|part| sent(&part))
    };
    let pipe_in = |responses: &[AckResponse], from, until| {
        part(responses, from, until).map(|part| pipes(&part))
    };
    let (linux, bsd) = ("linux-6.18", "freebsd-main");
    let window_in = |responses: &[AckResponse], from, until| {
        part(responses, from, until).map(|part| windows(&part))
    };
    let mut rows = vec![
        CaseRow::text(
            "one loss, PRR: sent at ACKs 1 to 16",
            "N N R . N . N . N . N . N . N .",
            sent_in(&one, 1, 16),
        )
        .by(linux),
        CaseRow::text("one loss, PRR: pipe at ACKs 1 to 4", "19 19 18 18", pipe_in(&one, 1, 4))
            .by(linux),
        CaseRow::predicted_text("one loss, PRR: pipe at ACKs 5 to 19", pipe_in(&one, 5, 19))
            .by(linux)
            .note(
                "the table has 18 17 17 16 16 15 15 14 14 13 13 12 12 11 10; at ACK 5 its pipe is as at \
                 ACK 4, although a segment has arrived and none was sent, so all later ones are one \
                 ACK late",
            ),
        CaseRow::predicted_text("one loss, PRR: sent at ACKs 17 to 19", sent_in(&one, 17, 19))
            .by(linux)
            .note(
                "the table has . N N; by the formula of section 3 the sender may send \
                 ceil(15 * 10 / 20) - 7 = 1 segment at ACK 17, and none at the next two",
            ),
        CaseRow::text("15 losses, PRR-CRB: sent", "N N R R R", sent_in(&fifteen, 1, 5)).by(linux),
        CaseRow::text("15 losses, PRR-CRB: pipe", "19 19 4 4 4", pipe_in(&fifteen, 1, 5)).by(linux),
        CaseRow::text("15 losses, PRR-SSRB: sent at ACKs 15 and 16", "N N", sent_in(&freebsd, 1, 2))
            .by(bsd),
        CaseRow::text(
            "15 losses, PRR-SSRB: sent at ACKs 18 and 19",
            "2R 2R",
            sent_in(&freebsd, 4, 5),
        )
        .by(bsd),
        CaseRow::predicted_text("15 losses, PRR-SSRB: sent at ACK 17", sent_in(&freebsd, 3, 3))
            .by(bsd)
            .note(
                "the table has 2R; FreeBSD begins recovery with a window of one segment \
                 (tcp_input.c, the third duplicate ACK), and applies PRR from the next ACK on",
            ),
    ];
    rows.extend([
        CaseRow::text(
            "RFC 9937 figure 1, PRR: sent at ACKs 1 to 18",
            "N N R . N . N . N . N . N . N . N .",
            sent_in(&one, 1, 18),
        ),
        CaseRow::text(
            "RFC 9937 figure 1, PRR: cwnd at ACKs 1 to 18",
            "20 20 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11",
            window_in(&one, 1, 18),
        ),
        CaseRow::text(
            "RFC 9937 figure 1, PRR: inflight at ACKs 1 to 19",
            "19 19 18 18 17 17 16 16 15 15 14 14 13 13 12 12 11 11 10",
            pipe_in(&one, 1, 19),
        ),
        CaseRow::predicted_text(
            "RFC 9937 figure 1, PRR: sent at ACKs 19 to 21",
            sent_in(&one, 19, 21),
        )
        .note(
            "the figure has N . N, and a window of 11 at ACK 19; by section 6.2 nothing may be sent \
             there, as inflight, 10, is not above ssthresh, so that SndCnt is at most ssthresh - \
             inflight = 0",
        ),
        CaseRow::text("RFC 9937 figure 2, PRR: sent", "N N R R R", sent_in(&fifteen, 1, 5)),
        CaseRow::text("RFC 9937 figure 2, PRR: cwnd", "20 20 5 5 5", window_in(&fifteen, 1, 5)),
        CaseRow::text("RFC 9937 figure 2, PRR: inflight", "19 19 4 4 4", pipe_in(&fifteen, 1, 5)),
    ].map(|row| row.by(linux)));
    let exhibit = format!(
        "one loss, Linux\n  sent {}\n  pipe {}\n15 losses, Linux\n  sent {}\n  pipe {}\n15 losses, \
         FreeBSD\n  sent {}\n  pipe {}\n",
        sent(&one),
        pipes(&one),
        sent(&fifteen),
        pipes(&fifteen),
        sent(&freebsd),
        pipes(&freebsd)
    );
    Ok(Measured { knobs: knobs(), rows, exhibit })
}

fn knobs() -> Vec<CaseInput> {
    vec![
        CaseInput::new(
            "host.sender.profile",
            "linux-6.18 with reno; freebsd-main with newreno for PRR-SSRB",
            "the document: standard AIMD; the bound is that of the stack",
        ),
        CaseInput::new(
            "cwnd = FlightSize = pipe",
            "20 segments: the second round trip of slow start from 10",
            "the document has 20 segments",
        ),
        CaseInput::new(
            "loss",
            "the first segment of that round trip, or its first 15",
            "the document",
        ),
        CaseInput::new(
            "host.receiver.profile",
            "rfc: an ACK for every packet out of order",
            "the document; Linux's receiver compresses SACKs",
        ),
        CaseInput::new("path", "100 Mbit/s, 50 ms each way", "inferred: any path gives the same"),
    ]
}
