//! State of a connection as its kernel logged it: `BBLog`, siftr, `tcp_probe`, `ss`.

use packet::Dir;
use units::{Bytes, Duration, Instant};

use crate::socket::{SocketSample, SocketVerdict};

/// A sender's own state at an instant. Fields that the source lacks are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateSample {
    /// Time on the clock of the packets (`CapturedPacket::at`).
    pub at: Instant,
    /// Direction that the logging host sends in.
    pub of: Dir,
    /// Congestion window.
    pub cwnd: Option<Bytes>,
    /// Slow-start threshold; a value of "infinite" is `None`.
    pub ssthresh: Option<Bytes>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    pub rttvar: Option<Duration>,
    /// Bytes in flight as the sender counts them.
    pub inflight: Option<Bytes>,
    /// The peer's advertised window, as the sender last received it.
    pub snd_wnd: Option<Bytes>,
    /// Bytes in the send buffer.
    pub send_buffer: Option<Bytes>,
    /// The kernel's tick counter (FreeBSD's `ticks`, wrapping).
    pub ticks: Option<u32>,
    /// Ticks per second, where the log declares them (`kern.hz`).
    pub hz: Option<u32>,
    /// Is the sender in fast recovery?
    pub in_recovery: Option<bool>,
}

impl StateSample {
    /// A sample without values.
    pub const fn new(at: Instant, of: Dir) -> Self {
        Self {
            at,
            of,
            cwnd: None,
            ssthresh: None,
            srtt: None,
            rttvar: None,
            inflight: None,
            snd_wnd: None,
            send_buffer: None,
            ticks: None,
            hz: None,
            in_recovery: None,
        }
    }
}

/// Summary of the kernel logs of a connection, by host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KernelStateSummary {
    /// Samples of each host.
    pub samples: [u64; 2],
    /// Ticks per second that were declared.
    pub declared_hz: Option<u32>,
    /// First and last sample with a tick counter: time and counter.
    pub ticks: Option<[(Instant, u32); 2]>,
    /// Number of samples with a changed counter, and the sum of the changes.
    pub tick_steps: (u64, u64),
    /// Largest congestion window of each host, in bytes.
    pub cwnd_max: [u64; 2],
    /// Lowest slow-start threshold of each host, in bytes.
    pub ssthresh_min: [Option<u64>; 2],
    /// Last congestion window of each host, in bytes.
    pub cwnd_last: [u64; 2],
    /// Last smoothed round-trip time of each host.
    pub srtt: [Option<Duration>; 2],
    /// First and last account of each host's socket; equal if there is only one.
    pub sockets: [Option<Box<[SocketSample; 2]>>; 2],
}

/// The main direction of a connection by the account of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccountedTransfer {
    pub(crate) dir: Dir,
    pub(crate) bytes: u64,
    /// Time of the account.
    pub(crate) time: Duration,
}

impl KernelStateSummary {
    /// What limited the socket of a host by its kernel's account: between the first and the last
    /// sample, or if there is only one, since the connection began.
    pub fn socket_verdict(&self, of: Dir) -> Option<SocketVerdict> {
        let [first, last] = &**self.sockets[of as usize].as_ref()?;
        Some(SocketVerdict::of(Some(first).filter(|first| *first != last), last))
    }

    /// What the connection transferred by the accounts of its hosts' kernels; `None` without one.
    pub(crate) fn transfer(&self) -> Option<AccountedTransfer> {
        let of = |host: Dir| {
            let verdict = self.socket_verdict(host)?;
            let dir = if verdict.is_receiver { host.reversed() } else { host };
            Some(AccountedTransfer { dir, bytes: verdict.bytes, time: verdict.time })
        };
        let hosts = [Dir::Reverse, Dir::Forward];
        hosts.into_iter().filter_map(of).max_by_key(|transfer| transfer.bytes)
    }

    pub(crate) fn push(&mut self, sample: &StateSample) {
        let end = sample.of as usize;
        self.samples[end] += 1;
        self.declared_hz = sample.hz.or(self.declared_hz);
        if let Some(ticks) = sample.ticks {
            let here = (sample.at, ticks);
            match &mut self.ticks {
                None => self.ticks = Some([here; 2]),
                Some([_, last]) => {
                    let moved = ticks.wrapping_sub(last.1);
                    if moved > 0 && moved < 1 << 31 {
                        self.tick_steps.0 += 1;
                        self.tick_steps.1 += u64::from(moved);
                    }
                    if here.0 >= last.0 {
                        *last = here;
                    }
                }
            }
        }
        if let Some(cwnd) = sample.cwnd {
            self.cwnd_max[end] = self.cwnd_max[end].max(cwnd.get());
            self.cwnd_last[end] = cwnd.get();
        }
        if let Some(ssthresh) = sample.ssthresh {
            let min = &mut self.ssthresh_min[end];
            *min = Some(min.map_or(ssthresh.get(), |old| old.min(ssthresh.get())));
        }
        self.srtt[end] = sample.srtt.or(self.srtt[end]);
    }

    /// Ticks per second: as declared, or from the counter against the clock of the log.
    pub fn hz(&self) -> Option<f64> {
        if let Some(hz) = self.declared_hz {
            return Some(f64::from(hz));
        }
        let [(from, first), (to, last)] = self.ticks?;
        let ticks = last.wrapping_sub(first);
        // Fewer than fifty ticks cannot distinguish 100 from 102 Hz.
        (to > from && (50..1 << 31).contains(&ticks))
            .then(|| f64::from(ticks) * 1e9 / to.since(from).as_nanos() as f64)
    }
}
