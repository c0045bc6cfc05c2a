//! Loss detectors in a user's own program.
//!
//! The rest of recovery remains that of RFC 8985: the scoreboard, PRR (RFC 9937), tail loss probes
//! and timeouts, no undo. A [`UserDetector`] decides which segments of the scoreboard are lost.

use core::fmt::Debug;

use units::{Duration, Instant, Offset};

use crate::rack::{DeliveredSegment, RackInput, RackLosses};
use crate::sendmap::SendMap;

/// Makes the detectors of connections.
pub trait DetectorFactory: Debug + Send + Sync {
    /// Makes the detector of one connection.
    fn make(&self) -> Box<dyn UserDetector>;
}

/// A user-defined loss detector of one connection. It must be deterministic: its state and its
/// arguments alone decide.
pub trait UserDetector: Debug + Send + Sync {
    /// A segment was acknowledged or SACKed at `now`; it is passed with the time of its last
    /// transmission, and the minimum round trip so far.
    fn on_delivered(&mut self, segment: &DeliveredSegment, now: Instant, min_rtt: Duration) {
        let _ = (segment, now, min_rtt);
    }

    /// A D-SACK reports duplicate data; `una` and `max` are the ends of what is outstanding.
    fn on_duplicate(&mut self, una: Offset, max: Offset) {
        let _ = (una, max);
    }

    /// Marks the segments that are lost now, by [`SendMap::lose`], and returns how many it has
    /// marked. Called after each acknowledgment, and when the timer expires that the last call has asked
    /// for.
    fn detect(&mut self, map: &mut SendMap, input: &RackInput) -> RackLosses;

    /// Marks what a retransmission timeout loses: everything in flight, unless the detector knows
    /// better. The first segment must be marked.
    fn on_timeout(&mut self, map: &mut SendMap, input: &RackInput) {
        let _ = input;
        map.mark_all_lost();
    }

    /// A recovery, or the retransmission after a timeout, is complete.
    fn on_recovered(&mut self) {}

    /// Copies the detector with its state.
    fn fork(&self) -> Box<dyn UserDetector>;
}

/// A factory of detectors. It lives as long as the program, so that profiles stay plain data.
#[derive(Debug, Clone, Copy)]
pub struct ExternalDetection(&'static dyn DetectorFactory);

impl ExternalDetection {
    /// Registers `factory`, which is never freed.
    pub fn new(factory: impl DetectorFactory + 'static) -> Self {
        Self(Box::leak(Box::new(factory)))
    }

    /// The detector of a new connection.
    pub fn make(self) -> ExternalDetector {
        ExternalDetector(self.0.make())
    }
}

/// Equal if the factory is the same.
impl PartialEq for ExternalDetection {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(self.0, other.0)
    }
}

impl Eq for ExternalDetection {}

/// A user-defined detector as part of a connection's state.
#[derive(Debug)]
pub struct ExternalDetector(pub Box<dyn UserDetector>);

impl Clone for ExternalDetector {
    fn clone(&self) -> Self {
        Self(self.0.fork())
    }
}
