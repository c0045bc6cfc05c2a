//! The faults that are drawn, with their strengths.

mod apply;
mod kinds;
mod origin;

pub(crate) use apply::{receive_buffer, send_buffer};
pub use kinds::FaultKind;
pub(crate) use kinds::KINDS;

use FaultKind as K;

use crate::random::DrawRandom;
use crate::world::{MSS, World};

/// A fault with its strength.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    kind: FaultKind,
    /// Its strength, in the unit of its kind.
    strength: u64,
    /// A second quantity, of the kinds that have one.
    second: u64,
}

impl Fault {
    /// Draws the strength of a fault of this kind for a world.
    pub(crate) fn draw(kind: FaultKind, world: &World, random: &mut DrawRandom) -> Self {
        let round_trip = world.round_trip();
        let bdp = world.bdp().max(8 * MSS);
        let part = |random: &mut DrawRandom| bdp * random.within(10..=60) / 100;
        let (strength, second) = match kind {
            K::RandomLoss => (random.magnitude(10..=300), 0),
            K::BurstLoss | K::NoSack => (random.magnitude(10..=100), random.within(30..=70)),
            K::BurstsInTime => {
                (random.magnitude(2_000..=40_000), random.magnitude(200_000..=1_000_000))
            }
            K::Policer => {
                (world.rate * random.within(10..=70) / 100, random.magnitude(6_000..=60_000))
            }
            K::ShortQueue => ((bdp * random.within(2..=15) / 100 / 1_500).max(3), 0),
            K::SmallReceiveBuffer | K::SmallSendBuffer => (part(random).max(6 * MSS), 0),
            K::SlowReader => {
                (world.rate * random.within(10..=70) / 100, random.magnitude(1_000..=50_000))
            }
            K::SlowWriter => {
                let chunk = random.magnitude(2_000..=50_000);
                // Between a tenth and seven tenths of the rate.
                (chunk * 8_000 / (world.rate * random.within(10..=70) / 100).max(1), chunk)
            }
            // Below the rests of healthy players and idle connections, which are longer.
            K::ServerThinks | K::ClientThinks | K::WaitInRequest => {
                (random.magnitude(40_000..=500_000), 0)
            }
            K::RoundTrips => (random.magnitude(30..=200), random.magnitude(100..=4_000)),
            K::NagleDelayedAcks => (random.within(20..=600), 0),
            K::IdleRestart => ((2 * round_trip).max(random.magnitude(300_000..=800_000)), 0),
            K::AppWindow => (part(random).max(2 * MSS), 0),
            K::Reordering => {
                (round_trip * random.within(10..=60) / 100, random.magnitude(50..=500))
            }
            K::Outage => (random.magnitude(300..=3_000), random.within(1..=3)),
            K::TailLoss => (1, 0),
            K::SynLost | K::SynAckLost => (random.within(1..=2), 0),
            K::EcnSyns | K::NoScaling => (1, 0),
            // A quarter of the links report what is too large.
            K::MtuHole => (random.within(600..=1_450), u64::from(random.once_in(4))),
            K::Proxy => (random.magnitude(100..=500), random.within(40..=160)),
            K::Forgotten => (random.magnitude(1_000..=3_000), 0),
            K::BoxReset => (world.size * random.within(10..=80) / 100, 0),
            K::Backlog => (random.magnitude(100..=2_000), random.within(1..=3)),
            K::SlowAckPath => (world.rate * random.within(2..=10) / 1_000, 0),
            K::ThinnedAcks => (random.magnitude(8..=64), round_trip.clamp(4_000, 40_000)),
            K::Marks => (random.magnitude(50..=500), 0),
            K::CompetingTraffic => (random.within(1..=3), 0),
            K::SlowOpening => (random.magnitude(200_000..=1_500_000), 0),
            K::RateDrop => (world.rate * random.within(10..=40) / 100, random.within(20..=60)),
        };
        Self { kind, strength: strength.max(1), second }
    }

    /// The waits of the client that a restart after idle needs.
    pub(crate) fn rests(&self) -> Option<Self> {
        let rests = Self { kind: K::ClientThinks, strength: self.strength, second: 0 };
        (self.kind == K::IdleRestart).then_some(rests)
    }

    /// Its kind.
    pub const fn kind(&self) -> FaultKind {
        self.kind
    }

    /// Its strength, in the unit of its kind.
    pub(crate) const fn strength(&self) -> u64 {
        self.strength
    }

    /// Name and strength, for reports.
    pub fn describe(&self) -> String {
        let Self { kind, strength, second } = self;
        match kind {
            K::RandomLoss => format!("random loss of {}.{:02} %", strength / 100, strength % 100),
            K::Proxy => {
                format!("{} with {strength} lost of 10,000 behind it, {second} ms", kind.name())
            }
            K::Policer | K::SlowReader | K::SlowAckPath | K::RateDrop => {
                format!("{} of {strength} kbit/s", kind.name())
            }
            K::SmallReceiveBuffer
            | K::SmallSendBuffer
            | K::AppWindow
            | K::MtuHole
            | K::BoxReset => {
                format!("{} of {strength} B", kind.name())
            }
            K::ServerThinks
            | K::ClientThinks
            | K::WaitInRequest
            | K::SlowOpening
            | K::IdleRestart => {
                format!("{} of {} ms", kind.name(), strength / 1_000)
            }
            K::SlowWriter => format!("{second} B written each {} ms", strength / 1_000),
            K::Outage | K::Forgotten | K::Backlog => format!("{} of {strength} ms", kind.name()),
            _ => format!("{} of {strength}", kind.name()),
        }
    }
}
