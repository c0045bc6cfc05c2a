//! Names of events (enum tcp_log_events of tcp_log_buf.h).

use core::fmt;

/// Number of an event; newer kernels have numbers without a name here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BblogEvent(pub u8);

/// Names by number, from 1.
const NAMES: [&str; 70] = [
    "IN",
    "OUT",
    "TIMER",
    "SB_WAKE",
    "BAD_RETRAN",
    "PRR",
    "REORDER",
    "HPTS",
    "BBRUPD",
    "BBRSND",
    "ACKCLEAR",
    "INQUEUE",
    "TIMERSTAR",
    "TIMERCANC",
    "ENTREC",
    "EXITREC",
    "CWND",
    "BWSAMP",
    "MSGSIZE",
    "BBRRTT",
    "JUSTRET",
    "STATE",
    "PKT_EPOCH",
    "PERSIST",
    "FLOWEND",
    "RTO",
    "DOSEG_DONE",
    "EXIT_GAIN",
    "THRESH_CALC",
    "MAPCHG",
    "USERSEND",
    "RSM_CLEARED",
    "STATE_TARGET",
    "TIME_EPOCH",
    "TO_PROCESS",
    "BBRTSO",
    "HPTSDIAG",
    "LOWGAIN",
    "PROGRESS",
    "SOCKET_OPT",
    "TIMERPREP",
    "ENOBUF_JMP",
    "HPTSI_CALC",
    "RTT_SHRINKS",
    "BW_RED_EV",
    "REDUCE",
    "RTT",
    "SETTINGS_CHG",
    "SRTT_GAIN",
    "REASS",
    "HDWR_PACE_SIZE",
    "HDWR_PACE",
    "TSTMP_VAL",
    "CONNEND",
    "LRO",
    "SACK_FILTER_RES",
    "SAD",
    "TIMELY",
    "USER_EVENT",
    "SENDFILE",
    "REQ_T",
    "ACCOUNTING",
    "FSB",
    "RACK_DSACK_HANDLING",
    "HYSTART",
    "CHG_QUERY",
    "RACK_LOG_COLLAPSE",
    "RACK_TP_TRIGGERED",
    "HYBRID_PACING",
    "PRU",
];

impl BblogEvent {
    /// A packet was received.
    pub const IN: Self = Self(1);
    /// A packet is sent.
    pub const OUT: Self = Self(2);
    /// A timer event: `flex1` says which ([`BblogEvent::timer_processing`]).
    pub const TIMER: Self = Self(3);
    /// A retransmission proved unnecessary.
    pub const BAD_RETRAN: Self = Self(5);
    /// A recovery begins.
    pub const ENTREC: Self = Self(15);
    /// A recovery ends.
    pub const EXITREC: Self = Self(16);
    /// The congestion window changed.
    pub const CWND: Self = Self(17);
    /// The retransmission timer fired.
    pub const RTO: Self = Self(26);
    /// The application wrote data.
    pub const USERSEND: Self = Self(31);
    /// The connection ends.
    pub const CONNEND: Self = Self(54);
    /// An event of the application.
    pub const USER_EVENT: Self = Self(59);
    /// A call of sendfile.
    pub const SENDFILE: Self = Self(60);
    /// A request of the application.
    pub const REQ_T: Self = Self(61);

    /// Its name; `None` for 0 and for numbers of newer kernels.
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(usize::from(self.0).checked_sub(1)?).copied()
    }

    /// `flex1` of [`BblogEvent::TIMER`] when timer number `timer` is being processed: 0 RXT,
    /// 1 PERSIST, 2 KEEP, 3 2MSL, 4 DELACK.
    pub const fn timer_processing(timer: u32) -> u32 {
        // The second byte is the action: 0 processing, 1 processed, 2 starting, 3 stopping.
        timer & 0xff
    }
}

/// The name, or the number of an event without one.
impl fmt::Display for BblogEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => f.pad(&self.0.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_numbers() {
        let named = |number| BblogEvent(number).to_string();
        assert_eq!([1, 2, 26, 29, 54].map(named), ["IN", "OUT", "RTO", "THRESH_CALC", "CONNEND"]);
        assert_eq!([0, 70, 71, 255].map(named), ["0", "PRU", "71", "255"]);
        assert_eq!(BblogEvent::ENTREC.name(), Some("ENTREC"));
        assert_eq!(BblogEvent::USERSEND.name(), Some("USERSEND"));
        assert_eq!(BblogEvent::REQ_T.name(), Some("REQ_T"));
    }
}
