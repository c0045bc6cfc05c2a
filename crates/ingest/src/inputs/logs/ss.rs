//! Polls of `ss -ti`.

use std::io::{self, BufRead};

use diagnose::StateSample;
use logs::ss::{Item, Reader, Socket};
use units::{Bytes, Duration};

use super::super::File;
use super::{Logs, Times};

/// Times before this count from the first packet of the capture (`t_us=...`): 1 January 1990.
const EARLIEST: Duration = Duration::from_secs(631_152_000);
/// Payload of a segment where ss does not tell it: that of Ethernet with timestamps.
const USUAL_MSS: u64 = 1_448;

pub(super) fn read(input: impl BufRead, file: &mut File) -> io::Result<Logs> {
    let mut logs = Logs { times: Times::Since1970, ..Logs::default() };
    let mut untimed = 0_u64;
    for item in Reader::new(input) {
        let socket = match item? {
            Item::Problem(problem) => {
                file.problems.tell(&problem);
                continue;
            }
            Item::Socket(socket) => socket,
        };
        file.frames += 1;
        untimed += u64::from(socket.at.is_none());
        if socket.at.is_some_and(|at| at < EARLIEST) {
            logs.times = Times::SinceFirst;
        }
        let at = socket.at.map(Duration::as_nanos);
        logs.word((socket.local, socket.remote), at, sample(&socket));
    }
    if untimed > 0 {
        file.problems.tell(&format!(
            "{untimed} sockets without a time: put a line such as that of `date +%s.%N` before a poll"
        ));
    }
    Ok(logs)
}

fn sample(socket: &Socket) -> StateSample {
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
        ..Logs::blank()
    }
}
