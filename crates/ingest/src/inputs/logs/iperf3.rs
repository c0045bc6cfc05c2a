//! Results of `iperf3 --json`.

use std::io::{self, Read};

use diagnose::StateSample;
use diagnose::socket::SocketSample;
use logs::iperf3::{Iperf3Interval, Iperf3Stream, Iperf3Test};
use units::{Bytes, Duration, Instant};

use super::super::File;
use super::{LogEpoch, LogFile};

/// Payload of a segment if the output has none: that of Ethernet with timestamps.
const USUAL_MSS: u64 = 1_448;

pub(super) fn read(input: impl Read, file: &mut File) -> io::Result<LogFile> {
    let mut logs = LogFile { times: LogEpoch::Since1970, ..LogFile::default() };
    let output = logs::iperf3::read(input);
    output.problems.iter().for_each(|problem| file.problems.push(problem));
    for test in &output.tests {
        if let Some(error) = &test.error {
            file.problems.push(&format!("the test ended with an error: {error}"));
        }
        for stream in &test.streams {
            stream_samples(test, stream, file, &mut logs);
        }
    }
    Ok(logs)
}

fn stream_samples(test: &Iperf3Test, stream: &Iperf3Stream, file: &mut File, logs: &mut LogFile) {
    let ends = (stream.local, stream.remote);
    let begin = Instant::ZERO + Duration::from_secs(1) * test.began_s;
    let first = SocketSample { at: Some(begin), ..SocketSample::default() };
    let mut last = SocketSample { mss: Some(test.mss.unwrap_or(USUAL_MSS)), ..first };
    let is_throttled = test.target_bps.is_some();
    for one in &stream.intervals {
        file.frames += 1;
        let at = begin + one.end;
        last.at = Some(at);
        add(&mut last, one, stream.is_sender);
        let sample = StateSample {
            cwnd: one.cwnd.map(Bytes),
            srtt: one.rtt,
            snd_wnd: one.peer_window.map(Bytes),
            ..LogFile::blank()
        };
        logs.word(ends, Some(at.as_nanos()), sample);
    }
    if let Some((min, mean)) = stream.rtt {
        (last.min_rtt, last.srtt) = (Some(min), Some(mean));
    }
    // The rate that -b sets is the application's.
    last.app_limited = is_throttled && reaches(test, &last, begin);
    if let Some(log) = logs.by_ends.get_mut(&ends) {
        log.is_of_server = test.is_server;
        log.sockets = Some([SocketSample { app_limited: true, ..first }, last]);
    }
}

fn add(sample: &mut SocketSample, one: &Iperf3Interval, is_sender: bool) {
    let mss = sample.mss.unwrap_or(USUAL_MSS);
    let bytes = if is_sender { &mut sample.acked } else { &mut sample.received };
    *bytes = Some(bytes.unwrap_or(0).saturating_add(one.bytes));
    let packets = one.bytes / mss;
    sample.sent_packets = Some(sample.sent_packets.unwrap_or(0).saturating_add(packets));
    if let Some(count) = one.retransmits {
        sample.retransmitted = Some(sample.retransmitted.unwrap_or(0).saturating_add(count));
    }
    sample.min_rtt = sample.min_rtt.into_iter().chain(one.rtt).min();
    sample.srtt = one.rtt.or(sample.srtt);
    sample.cwnd = one.cwnd.map(|bytes| bytes / mss).or(sample.cwnd);
    sample.peer_window = one.peer_window.or(sample.peer_window);
}

/// Whether a stream has 95 % of the rate that it is limited to.
fn reaches(test: &Iperf3Test, last: &SocketSample, begin: Instant) -> bool {
    let ns = last.at.unwrap_or(begin).since(begin).as_nanos();
    let bits = u128::from(last.acked.unwrap_or(0)) * 8 * 1_000_000_000;
    test.target_bps.is_some_and(|rate| bits * 100 >= u128::from(rate) * u128::from(ns) * 95)
}
