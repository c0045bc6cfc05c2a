//! A token bucket of tbf or htb with what is below it.

use super::element::{PathElement, QueueModel};
use super::netem::NetemOptions;
use super::quantity::count;
use super::tokens::{Given, ImportError, ScriptToken, TokenReader};
use crate::emulator::ETHERNET_HEADER;

/// Bytes of a full IP packet.
const FULL_PACKET: u64 = 1_500;

/// A token bucket.
#[derive(Debug)]
pub(super) struct RateLimit<'t> {
    /// In bit/s.
    pub(super) rate: Given<'t, u64>,
    /// In bytes.
    pub(super) burst: u64,
    /// Its own queue, a size of a scenario.
    pub(super) buffer: String,
    /// What it counts beside the Ethernet header and the IP packet.
    pub(super) frame: LineFrame,
    pub(super) notes: Vec<String>,
    /// A limit that has no effect if another queue is below it.
    pub(super) unused_limit: Option<String>,
}

impl<'t> RateLimit<'t> {
    /// Returns the shaper with its own queue.
    pub(super) fn alone(self) -> PathElement {
        let buffer = self.buffer.clone();
        self.shaper(&buffer)
    }

    fn shaper(self, buffer: &str) -> PathElement {
        let (rate, burst) = (self.rate.value, self.burst);
        let frame = self.frame.keys();
        let text = format!(
            "shaper = {{ rate = \"{rate}bit/s\", burst = \"{burst}B\", buffer = \"{buffer}\", \
             header = {ETHERNET_HEADER}{frame} }}"
        );
        PathElement::new(self.rate.token, text).notes(self.notes)
    }

    /// Returns the elements if packets wait in a netem below: the delay, then the rate.
    pub(super) fn below_netem(
        mut self,
        netem: &NetemOptions<'t>,
        kind: ScriptToken<'t>,
    ) -> Result<Vec<PathElement>, ImportError> {
        let (buffer, comment) = netem.buffer_below(self.rate.value, kind)?;
        self.notes.push(comment);
        self.note_unused("netem");
        let mut elements = netem.elements(kind);
        elements.push(self.shaper(&format!("{buffer}p")));
        Ok(elements)
    }

    /// Returns the element after a slower rate with its own queue: only bursts of that wait here.
    pub(super) fn after_slower(mut self, packets: u64) -> PathElement {
        self.note_unused("a slower rate");
        self.shaper(&format!("{packets}p"))
    }

    /// Returns the element if packets wait in another queue below.
    pub(super) fn with_queue(mut self, queue: QueueModel) -> PathElement {
        self.note_unused(&queue.kind);
        self.notes.extend(queue.notes);
        let Some(discipline) = &queue.queue else { return self.shaper(&queue.buffer) };
        // A shaper has no discipline: the link has the rate, and no burst.
        if self.frame != LineFrame::default() {
            let kind = &queue.kind;
            self.notes
                .push(format!("`overhead`, `mpu` and `linklayer` above {kind} are not modelled"));
        }
        let (rate, buffer) = (self.rate.value, &queue.buffer);
        let text = format!(
            "link = {{ rate = \"{rate}bit/s\", buffer = \"{buffer}\", queue = {discipline} }}"
        );
        let burst =
            format!("the burst of {} bytes above {} is not modelled", self.burst, queue.kind);
        PathElement::new(self.rate.token, text)
            .comment(burst)
            .comment(header(rate))
            .notes(self.notes)
    }

    fn note_unused(&mut self, below: &str) {
        if let Some(limit) = self.unused_limit.take() {
            self.notes.push(format!("{limit} has no effect with {below} below"));
        }
    }
}

/// Options of a rate that say what a packet takes of it (`tc_core.c`, `struct tc_ratespec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LineFrame {
    overhead: u64,
    mpu: u64,
    is_atm: bool,
}

impl LineFrame {
    /// Reads `overhead`, `mpu` or `linklayer`; returns false for any other option.
    pub(super) fn option<'t>(
        &mut self,
        option: ScriptToken<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<bool, ImportError> {
        let bytes = |token: ScriptToken<'t>| {
            let value = count(token, "bytes")?;
            match value {
                0..=4_096 => Ok(value),
                _ => Err(token.error(format!("`{}`: expected at most 4096 bytes", token.text))),
            }
        };
        match option.text {
            "overhead" => self.overhead = bytes(reader.value("bytes")?)?,
            "mpu" => self.mpu = bytes(reader.value("bytes")?)?,
            "linklayer" => {
                let layer = reader.value("ethernet or atm")?;
                self.is_atm = match layer.text {
                    "ethernet" => false,
                    "atm" | "adsl" => true,
                    other => {
                        let message = format!("linklayer `{other}` is not known");
                        return Err(layer.error(message).hint("expected ethernet, atm or adsl"));
                    }
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the bytes that a full packet takes of a bucket.
    pub(super) fn full_packet(self) -> u64 {
        let bytes = (FULL_PACKET + ETHERNET_HEADER + self.overhead).max(self.mpu);
        if self.is_atm { bytes.div_ceil(48) * 53 } else { bytes }
    }

    /// Returns keys of a shaper.
    fn keys(self) -> String {
        let mut keys = String::new();
        if self.overhead > 0 {
            keys += &format!(", overhead = {}", self.overhead);
        }
        if self.mpu > 0 {
            keys += &format!(", mpu = {}", self.mpu);
        }
        if self.is_atm {
            keys += ", cell = 48, cell_overhead = 5";
        }
        keys
    }
}

/// What tc counts beside the bytes of IP packets.
fn header(rate: u64) -> String {
    let full =
        u128::from(rate) * u128::from(FULL_PACKET) / u128::from(FULL_PACKET + ETHERNET_HEADER);
    format!(
        "tc counts the Ethernet header of 14 bytes, this element does not: packets of {FULL_PACKET} bytes have {full} bit/s there"
    )
}
