//! Polls of `ss -ti`.

use std::collections::BTreeSet;
use std::io::{self, BufRead};

use diagnose::StateSample;
use diagnose::socket::SocketSample;
use logs::ss::{SsItem, SsReader, SsSocket};
use units::{Bytes, Duration, Instant};

use super::super::File;
use super::{LogEpoch, LogFile};

/// Times before this date count from the first packet of the capture (`t_us=...`): 1 January 1990.
const EARLIEST: Duration = Duration::from_secs(631_152_000);
/// Payload of a segment if ss does not print it: that of Ethernet with timestamps.
const USUAL_MSS: u64 = 1_448;

pub(super) fn read(input: impl BufRead, file: &mut File) -> io::Result<LogFile> {
    let mut logs = LogFile { times: LogEpoch::Since1970, ..LogFile::default() };
    // A single poll needs no time.
    let (mut untimed, mut polled, mut is_polled_again) = (0_u64, BTreeSet::new(), false);
    for item in SsReader::new(input) {
        let socket = match item? {
            SsItem::Problem(problem) => {
                file.problems.push(&problem);
                continue;
            }
            SsItem::Socket(socket) => socket,
        };
        file.frames += 1;
        let is_again = !polled.insert((socket.local, socket.remote));
        untimed += u64::from(socket.at.is_none());
        is_polled_again |= is_again && socket.at.is_none();
        if socket.at.is_some_and(|at| at < EARLIEST) {
            logs.times = LogEpoch::SinceFirst;
        }
        let at = socket.at.map(Duration::as_nanos);
        let now = account(&socket);
        if let Some(log) = logs.word((socket.local, socket.remote), at, sample(&socket)) {
            let [_, last] = log.sockets.get_or_insert([now; 2]);
            *last = now;
        }
    }
    if is_polled_again {
        file.problems.push(&format!(
            "{untimed} sockets without a time: put a line such as that of `date +%s.%N` before a poll"
        ));
    }
    Ok(logs)
}

/// The kernel's account of a socket. ss omits zeros.
fn account(socket: &SsSocket) -> SocketSample {
    let info = &socket.info;
    let zero = |value: Option<u64>| Some(value.unwrap_or(0));
    let zero_time = |time: Option<Duration>| Some(time.unwrap_or_default());
    SocketSample {
        at: socket.at.map(|at| Instant::ZERO + at),
        mss: info.mss,
        cwnd: info.cwnd,
        unacked: zero(info.unacked),
        srtt: info.rtt,
        min_rtt: info.min_rtt,
        peer_window: info.snd_wnd,
        unsent: zero(info.notsent),
        unread: Some(socket.receive_queue),
        acked: zero(info.bytes_acked),
        received: zero(info.bytes_received),
        sent_packets: zero(info.data_segs_out),
        retransmitted: zero(info.retrans.map(|(_, total)| total)),
        dsacks: zero(info.dsack_dups),
        reordered: zero(info.reord_seen),
        reordering: info.reordering,
        busy: zero_time(info.busy).filter(|_| info.cwnd.is_some()),
        rwnd_limited: zero_time(info.rwnd_limited),
        sndbuf_limited: zero_time(info.sndbuf_limited),
        app_limited: info.app_limited,
    }
}

fn sample(socket: &SsSocket) -> StateSample {
    let info = &socket.info;
    let mss = info.mss.unwrap_or(USUAL_MSS);
    // Windows of Linux are in packets.
    let packets = |n: u64| Bytes(n.saturating_mul(mss));
    StateSample {
        cwnd: info.cwnd.map(packets),
        ssthresh: info.ssthresh.map(packets),
        srtt: info.rtt,
        rttvar: info.rttvar,
        inflight: info.unacked.map(packets),
        snd_wnd: info.snd_wnd.map(Bytes),
        send_buffer: Some(Bytes(socket.send_queue)),
        in_recovery: None,
        ..LogFile::blank()
    }
}
