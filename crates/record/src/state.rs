//! The sender's state as a row, and the senders it is read from.

use units::{Bytes, Duration, Offset, Rate};

/// Writes down what there is to know of a sender once, for the row and for who is asked for it.
macro_rules! sender {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty,)+) => {
        /// What a sender knows at one moment. Offsets count from 0 at the first payload byte.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct SenderState {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        /// A sender whose state may be read whole, or in the parts that are wanted: who wants but
        /// two of them pays for no more.
        pub trait Sender {
            $($(#[doc = $doc])+ fn $field(&self) -> $type;)+

            /// All of it.
            #[inline]
            fn row(&self) -> SenderState {
                SenderState { $($field: self.$field(),)+ }
            }
        }

        impl Sender for SenderState {
            $(#[inline(always)]
            fn $field(&self) -> $type {
                self.$field
            })+
        }
    };
}

sender! {
    /// Oldest byte not yet acknowledged.
    snd_una: Offset,
    /// Next byte to send.
    snd_nxt: Offset,
    /// End of what was ever sent.
    snd_max: Offset,
    /// Congestion window.
    cwnd: Bytes,
    /// Slow-start threshold; `None` while unset.
    ssthresh: Option<Bytes>,
    /// Window the peer offers.
    snd_wnd: Bytes,
    /// Payload of a full segment, options deducted.
    mss: Bytes,
    /// Bytes in the send buffer, sent or not.
    buffered: Bytes,
    /// Size of the send buffer.
    send_buffer: Bytes,
    /// Smoothed round-trip time; `None` before the first sample.
    srtt: Option<Duration>,
    /// Retransmission timeout in force.
    rto: Duration,
    /// Is a fast recovery running?
    in_recovery: bool,
    /// Bytes under way: of QUIC the packets in flight with their headers, against which the
    /// window is held; of TCP what is sent and not acknowledged.
    in_flight: Bytes,
    /// Bytes acknowledged that count towards the next step of the window, where the controller
    /// counts them (`partialBytesAcked` of INET's QUIC); else 0.
    partial_acked: Bytes,
    /// Bytes the stack takes to be in the network: sent, neither acknowledged nor reported, and not
    /// taken for lost (`pipe` of RFC 6675); of QUIC the packets in flight.
    pipe: Bytes,
    /// What the stack paces at, or would pace at if it did (`sk_pacing_rate` of Linux); `None`
    /// where it has no such rate, or none yet.
    pacing: Option<Rate>,
}

impl SenderState {
    /// Bytes sent and not yet acknowledged.
    pub fn flight(&self) -> Bytes {
        self.snd_max.since(self.snd_una)
    }
}
