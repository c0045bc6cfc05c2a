//! Names that assertions can use: fields of tcp_info (`tcpi_*`) and constants of states.

use record::SenderState;
use tcp::info::{CaState, TcpInfo};
use tcp::profile::Family;
use tcp::{TcpEndpoint, TcpState};
use units::{Bytes, Duration, Instant};

use super::counters::{EcnSeen, SegmentCounters};
use super::{Result, Runner, ScriptStop};
use crate::ast::Statement;
use crate::code::{self, EvaluationError};

/// TCP_INFINITE_SSTHRESH.
const SSTHRESH_UNSET: i64 = 0x7fff_ffff;

impl Runner<'_> {
    pub(super) fn check(&mut self, statements: &[Statement]) -> Result<()> {
        let real = self.real_info();
        let connection = self.world.connection.as_ref();
        let info = connection.map(TcpEndpoint::info);
        let family = self.world.host.profile.family;
        let bytes = match family {
            Family::FreeBsd => connection.map(TcpEndpoint::sender_state),
            Family::Linux | Family::Rfc => None,
        };
        let now = self.world.now();
        let counters = &self.world.counters;
        let newest = self.world.host.counts_ecn_fields();
        let known = |name: &str| {
            if let Some(real) = &real {
                return real.field(name).or_else(|| constant(name, family));
            }
            // Other systems have none of these, or with other meanings.
            let linux = connection.filter(|_| family == Family::Linux);
            if let Some(end) = connection
                && let Some(last) = last_event(end, info.as_ref(), linux.map(|_| counters), name)
            {
                return i64::try_from(end.elapsed_ms(last, now)).ok();
            }
            if let Some(end) = linux
                && let Some(limit) = limited(name)
            {
                return i64::try_from(counters.limited(now, end)[limit] * 1_000).ok();
            }
            if linux.is_some()
                && let Some(count) =
                    counted(counters, name).or_else(|| ecn_counted(counters, name, newest))
            {
                return i64::try_from(count).ok();
            }
            let freebsd = bytes.as_ref().and_then(|state| freebsd_field(state, name));
            freebsd.or_else(|| constant(name, family)).or_else(|| match (&info, name) {
                (Some(info), "tcpi_options") => {
                    let seen = match counters.ecn_seen {
                        EcnSeen::No => false,
                        EcnSeen::WithoutEcn => newest,
                        EcnSeen::WithEcn => family == Family::Linux,
                    };
                    field(info, name, family).map(|options| options | i64::from(seen) << 4)
                }
                (Some(info), _) => field(info, name, family),
                // A socket before connect or listen.
                (None, "tcpi_state") => constant("TCPI_CLOSED", family),
                (None, _) => None,
            })
        };
        let run = code::run(statements, &mut self.environment, &known);
        for line in core::mem::take(&mut self.environment.printed) {
            self.world.print(line);
        }
        match run {
            Ok(()) => Ok(()),
            Err(EvaluationError::Unknown { span, name }) => {
                self.unsupported(span, format!("`{name}` is not known here"))
            }
            Err(EvaluationError::InvalidOperation { span, why }) => {
                Err(ScriptStop::Failed(self.at(span, why)))
            }
            Err(EvaluationError::False { span, values, message }) => {
                let values = if values.is_empty() { "what is false".to_owned() } else { values };
                let said = message.map(|message| format!("the script says: {message}"));
                let error = self.at(span, "this is not so").found(values);
                Err(ScriptStop::Failed(error.hint(said)))
            }
        }
    }
}

/// Returns a field that FreeBSD counts in bytes (tcp_fill_info).
fn freebsd_field(state: &SenderState, name: &str) -> Option<i64> {
    // TCP_MAXWIN << TCP_MAX_WINSHIFT while it is unset.
    const UNSET: u64 = 65_535 << 14;
    let bytes = match name {
        "tcpi_snd_cwnd" => state.cwnd.get(),
        "tcpi_snd_ssthresh" => state.ssthresh.map_or(UNSET, Bytes::get),
        _ => return None,
    };
    i64::try_from(bytes).ok()
}

fn constant(name: &str, family: Family) -> Option<i64> {
    let of = |linux: i64, freebsd: i64| if family == Family::FreeBsd { freebsd } else { linux };
    Some(match name {
        "TCPI_CLOSED" => of(7, 0),
        "TCPI_LISTEN" => of(10, 1),
        "TCPI_SYN_SENT" => 2,
        "TCPI_SYN_RECEIVED" => 3,
        "TCPI_ESTABLISHED" => of(1, 4),
        "TCPI_CLOSE_WAIT" => of(8, 5),
        "TCPI_FIN_WAIT_1" => of(4, 6),
        "TCPI_CLOSING" => of(11, 7),
        "TCPI_LAST_ACK" => of(9, 8),
        "TCPI_FIN_WAIT_2" => of(5, 9),
        "TCPI_TIME_WAIT" => of(6, 10),
        "TCPI_OPT_TIMESTAMPS" => 1,
        "TCPI_OPT_SACK" => 2,
        "TCPI_OPT_WSCALE" => 4,
        "TCPI_OPT_ECN" => 8,
        "TCPI_OPT_ECN_SEEN" => 16,
        "TCPI_OPT_SYN_DATA" => 32,
        "TCP_CA_Open" => CaState::Open as i64,
        "TCP_CA_Disorder" => CaState::Disorder as i64,
        "TCP_CA_CWR" => CaState::Cwr as i64,
        "TCP_CA_Recovery" => CaState::Recovery as i64,
        "TCP_CA_Loss" => CaState::Loss as i64,
        "TCP_ESTABLISHED" => 1,
        "TCP_SYN_SENT" => 2,
        "TCP_SYN_RECV" => 3,
        "TCP_FIN_WAIT1" => 4,
        "TCP_FIN_WAIT2" => 5,
        "TCP_TIME_WAIT" => 6,
        "TCP_CLOSE" => 7,
        "TCP_CLOSE_WAIT" => 8,
        "TCP_LAST_ACK" => 9,
        "TCP_LISTEN" => 10,
        "TCP_CLOSING" => 11,
        _ => return None,
    })
}

/// Returns when what a field in milliseconds counts from has happened.
fn last_event(
    end: &TcpEndpoint,
    info: Option<&TcpInfo>,
    counters: Option<&SegmentCounters>,
    name: &str,
) -> Option<Instant> {
    match name {
        "tcpi_last_data_recv" => info.and_then(|info| info.last_data),
        "tcpi_last_data_sent" => counters?.last_data_sent,
        "tcpi_last_ack_recv" => counters?.last_ack_recv,
        _ => None,
    }
    .filter(|_| end.state() != TcpState::Listen)
}

/// Returns the place of a time in [`SegmentCounters::limited`].
fn limited(name: &str) -> Option<usize> {
    ["tcpi_busy_time", "tcpi_rwnd_limited", "tcpi_sndbuf_limited"]
        .iter()
        .position(|&field| field == name)
}

/// Returns a counter of segments.
fn counted(counters: &SegmentCounters, name: &str) -> Option<u64> {
    Some(match name {
        "tcpi_segs_in" => counters.segs_in,
        "tcpi_segs_out" => counters.segs_out,
        "tcpi_data_segs_in" => counters.data_segs_in,
        "tcpi_data_segs_out" => counters.data_segs_out,
        "tcpi_bytes_sent" => counters.bytes_sent,
        "tcpi_bytes_retrans" => counters.bytes_retrans,
        "tcpi_total_retrans" => counters.total_retrans,
        "tcpi_rcv_ooopack" => counters.rcv_ooopack,
        "tcpi_delivered_ce" => counters.delivered_ce,
        _ => return None,
    })
}

/// Returns a counter of accurate ECN, which Linux 6.18 has for every connection. The option that reports bytes is used
/// with accurate ECN only.
fn ecn_counted(counters: &SegmentCounters, name: &str, newest: bool) -> Option<u64> {
    let [ect1, ect0, ce] = counters.received_ecn_bytes;
    Some(match name {
        _ if !newest => return None,
        "tcpi_received_ce" => counters.received_ce,
        "tcpi_received_e1_bytes" => ect1,
        "tcpi_received_e0_bytes" => ect0,
        "tcpi_received_ce_bytes" => ce,
        "tcpi_delivered_e1_bytes"
        | "tcpi_delivered_e0_bytes"
        | "tcpi_delivered_ce_bytes"
        | "tcpi_accecn_fail_mode"
        | "tcpi_accecn_opt_seen" => 0,
        _ => return None,
    })
}

/// Returns a field of tcp_info in the kernel's units; `None` for fields that are not modelled.
fn field(info: &TcpInfo, name: &str, family: Family) -> Option<i64> {
    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let micros = |span: Duration| count(span.as_micros());
    Some(match name {
        "tcpi_state" if family == Family::FreeBsd => freebsd_state(info.state),
        "tcpi_state" => state(info.state),
        "tcpi_options" => {
            i64::from(info.timestamps)
                | i64::from(info.sack) << 1
                | i64::from(info.snd_scale.is_some()) << 2
                | i64::from(info.ecn) << 3
                | i64::from(info.syn_data) << 5
        }
        "tcpi_snd_wscale" => i64::from(info.snd_scale.unwrap_or(0)),
        "tcpi_advmss" => count(info.advmss),
        "tcpi_ca_state" => info.ca_state as i64,
        "tcpi_snd_cwnd" => count(info.snd_cwnd),
        "tcpi_snd_ssthresh" => info.snd_ssthresh.map_or(SSTHRESH_UNSET, count),
        "tcpi_unacked" => count(info.unacked),
        "tcpi_sacked" => count(info.sacked),
        "tcpi_lost" => count(info.lost),
        "tcpi_retrans" => count(info.retrans),
        "tcpi_snd_mss" => count(info.snd_mss),
        "tcpi_rcv_mss" => count(info.rcv_mss),
        "tcpi_backoff" | "tcpi_retransmits" => i64::from(info.backoff),
        "tcpi_probes" => i64::from(info.probes),
        "tcpi_rto" => micros(info.rto),
        "tcpi_rtt" => info.rtt.map_or(0, micros),
        "tcpi_min_rtt" => info.min_rtt.map_or(0xffff_ffff, micros),
        "tcpi_reordering" => i64::from(info.reordering),
        "tcpi_reord_seen" => i64::from(info.reord_seen),
        "tcpi_dsack_dups" => i64::from(info.dsack_dups),
        "tcpi_notsent_bytes" => count(info.unsent.1),
        "tcpi_delivered" => count(info.delivered),
        "tcpi_snd_wnd" => count(info.window.get()),
        _ if family != Family::Linux => return None,
        "tcpi_rttvar" => micros(info.rtt_deviation?),
        // ~0 before there is a rate.
        "tcpi_pacing_rate" => info.pacing_rate.map_or(-1, count),
        "tcpi_max_pacing_rate" => -1,
        "tcpi_delivery_rate" => count(info.delivery_rate?.0),
        "tcpi_delivery_rate_app_limited" => i64::from(info.delivery_rate?.1),
        "tcpi_fastopen_client_fail" => i64::from(info.fast_open_failure),
        "tcpi_pmtu" => count(info.mtu),
        "tcpi_ato" => micros(info.ato),
        "tcpi_bytes_acked" => count(info.acked),
        "tcpi_bytes_received" => count(info.received),
        "tcpi_rcv_wnd" => count(info.rcv_wnd),
        "tcpi_rcv_wscale" => i64::from(info.rcv_scale.unwrap_or(0)),
        "tcpi_rcv_ssthresh" => count(info.receiver?.0),
        "tcpi_rcv_space" => count(info.receiver?.1),
        "tcpi_rcv_rtt" => micros(info.rcv_rtt),
        // Linux does not set them any more.
        "tcpi_fackets" | "tcpi_last_ack_sent" => 0,
        _ => return None,
    })
}

/// TCPS_* of FreeBSD.
const fn freebsd_state(state: TcpState) -> i64 {
    match state {
        TcpState::Closed => 0,
        TcpState::Listen => 1,
        TcpState::SynSent => 2,
        TcpState::SynReceived => 3,
        TcpState::Established => 4,
        TcpState::CloseWait => 5,
        TcpState::FinWait1 => 6,
        TcpState::Closing => 7,
        TcpState::LastAck => 8,
        TcpState::FinWait2 => 9,
        TcpState::TimeWait => 10,
    }
}

const fn state(state: TcpState) -> i64 {
    match state {
        TcpState::Established => 1,
        TcpState::SynSent => 2,
        TcpState::SynReceived => 3,
        TcpState::FinWait1 => 4,
        TcpState::FinWait2 => 5,
        TcpState::TimeWait => 6,
        TcpState::Closed => 7,
        TcpState::CloseWait => 8,
        TcpState::LastAck => 9,
        TcpState::Listen => 10,
        TcpState::Closing => 11,
    }
}
