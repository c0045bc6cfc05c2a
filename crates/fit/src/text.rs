//! A fit as a scenario file.

use core::fmt::Write;

use crate::fitted::Late;
use crate::{Fitted, System, Writes};

/// What a path is taken for whose bottleneck was never seen busy.
const FAST: u64 = 10_000_000_000;
/// A queue that never fills.
const ROOMY: &str = "1GB";
/// Packets of a full segment that fit into an aggregate of 64 KiB.
const MOST_MERGED: u64 = 45;
/// What systems let a send buffer grow to by themselves: `net.ipv4.tcp_wmem` and
/// `net.inet.tcp.sendbuf_max`.
const LINUX_ROOM: u64 = 4 << 20;
const FREEBSD_ROOM: u64 = 2 << 20;
/// Of an advertised window, the buffer that a Linux receiver needs: `scaling_ratio` of packets
/// that were not merged is 160 of 256.
const RMEM: (u64, u64) = (256, 160);

/// What scenario files take at most: a duration in ns, a rate in bit/s, a queue in bytes.
const LONGEST: u64 = 1_000_000_000_000_000;
const FASTEST: u64 = 100_000_000_000_000;
const DEEPEST: u64 = 1_000_000_000_000_000_000;
/// Sizes that the knobs of socket buffers take.
const BUFFERS: (u64, u64) = (4_096, 1 << 30);

/// How losses are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chance {
    /// The very packets that were lost.
    Same,
    /// As many, by chance: for a sender that sends others.
    Random,
}

impl Fitted {
    /// The scenario with a sender of `profile` and, if named, congestion control `cc`.
    pub fn scenario(&self, profile: &str, cc: Option<&str>, chance: Chance, seed: u64) -> String {
        let mut out = String::new();
        // A String takes every text.
        let _ = self.write(&mut out, profile, cc, chance, seed);
        out
    }

    /// Room that a send buffer needs beyond what its system gives by itself: the flight that was
    /// seen was in it.
    fn sender_room(&self, linux: bool) -> Option<u64> {
        let own = if linux { LINUX_ROOM } else { FREEBSD_ROOM };
        (self.flight > own).then(|| (self.flight * 2).min(BUFFERS.1))
    }

    fn write(
        &self,
        out: &mut String,
        profile: &str,
        cc: Option<&str>,
        chance: Chance,
        seed: u64,
    ) -> core::fmt::Result {
        writeln!(out, "# Fitted to a capture. What each figure rests on:")?;
        for basis in &self.bases {
            writeln!(out, "#   {}: {}", basis.what, basis.why)?;
        }
        let limit = ((self.time / 1_000_000_000 + 1) * 20 + 60).min(LONGEST / 1_000_000_000);
        writeln!(out, "title = \"fitted to a capture\"\nseed = {seed}\nduration = \"{limit}s\"\n")?;
        let cc = cc.map(|cc| format!("cc = \"{cc}\"\n")).unwrap_or_default();
        let linux = |profile: &str| profile.starts_with("linux");
        writeln!(out, "[host.sender]\nprofile = \"{profile}\"\n{cc}mtu = \"{}B\"", self.mtu())?;
        if self.bursts {
            writeln!(out, "tso = true")?;
        }
        if let Some(room) = self.sender_room(linux(profile)) {
            if linux(profile) {
                let knob = "net.ipv4.tcp_wmem";
                writeln!(
                    out,
                    "\n[host.sender.knobs]\n\"{knob}\" = [\"4KiB\", \"16KiB\", \"{room}B\"]"
                )?;
            } else {
                writeln!(out, "\n[host.sender.knobs]\n\"kern.ipc.maxsockbuf\" = \"{room}B\"")?;
                writeln!(out, "\"net.inet.tcp.sendbuf_max\" = \"{room}B\"")?;
            }
        }
        let receiver = if self.receiver == System::FreeBsd { "freebsd-14.3" } else { "linux-6.18" };
        writeln!(out, "\n[host.receiver]\nprofile = \"{receiver}\"\nmtu = \"{}B\"", self.mtu())?;
        if let Some(segments) = self.per_ack {
            // Merging waits no longer than a flight lasts.
            let wait = (self.rtt / 20_000).clamp(1, 1_000);
            if linux(receiver) {
                let most = segments.min(MOST_MERGED);
                writeln!(
                    out,
                    "gro = {{ max_packets = {most}, flush = \"{wait}us\", ends_at_push = false, same_timestamps = false }}"
                )?;
            } else {
                writeln!(out, "lro = {{ flush = \"{wait}us\" }}")?;
            }
        }
        if let Some(window) = self.window {
            let (knob, value) = if linux(receiver) {
                let room = (window * RMEM.0 / RMEM.1).clamp(BUFFERS.0, BUFFERS.1);
                ("net.ipv4.tcp_rmem", format!("[\"4KiB\", \"{room}B\", \"{room}B\"]"))
            } else {
                let window = window.clamp(BUFFERS.0, BUFFERS.1);
                ("net.inet.tcp.recvspace", format!("\"{window}B\""))
            };
            writeln!(out, "\n[host.receiver.knobs]\n\"{knob}\" = {value}")?;
            if !linux(receiver) {
                writeln!(out, "\"net.inet.tcp.recvbuf_auto\" = 0")?;
            }
        }
        let rate = self.rate.unwrap_or(FAST).clamp(1, FASTEST);
        let buffer =
            self.buffer.map_or(ROOMY.to_owned(), |bytes| format!("{}B", bytes.min(DEEPEST)));
        writeln!(out, "\n[[path]]\nfrom = \"sender\"\nto = \"receiver\"\nforward = [")?;
        match chance {
            _ if self.losses.packets.is_empty() => {}
            Chance::Same => {
                let numbers: Vec<String> =
                    self.losses.packets.iter().map(|(number, _)| number.to_string()).collect();
                let numbers = numbers.join(", ");
                writeln!(out, "  {{ loss = {{ packets = [{numbers}] }}, only = \"data\" }},")?;
            }
            Chance::Random => {
                let percent = self.losses.rate().min(1.0) * 100.0;
                writeln!(out, "  {{ loss = \"{percent:.6}%\", only = \"data\" }},")?;
            }
        }
        for span in &self.losses.outages {
            let (from, until) = in_micros(*span);
            writeln!(out, "  {{ outage = {{ from = \"{from}us\", until = \"{until}us\" }} }},")?;
        }
        if let Some(span) = self.held {
            let (from, until) = in_micros(span);
            writeln!(
                out,
                "  {{ outage = {{ from = \"{from}us\", until = \"{until}us\", hold = true }} }},"
            )?;
        }
        writeln!(out, "  {{ link = {{ rate = \"{rate}bps\", buffer = \"{buffer}\" }} }},")?;
        match self.late {
            Some(Late::Reversed(group)) => {
                writeln!(
                    out,
                    "  {{ reorder = {{ reverse = {group}, gap = \"0s\", timeout = \"500us\" }}, only = \"data\" }},"
                )?;
            }
            Some(Late::Share(share, by)) => {
                let (percent, by) = (share.min(1.0) * 100.0, by.clamp(1_000, LONGEST) / 1_000);
                writeln!(
                    out,
                    "  {{ reorder = {{ fraction = \"{percent:.4}%\", by = \"{by}us\" }}, only = \"data\" }},"
                )?;
            }
            None => {}
        }
        // What a full packet takes on the link is part of the round trip that was measured.
        let on_link = self.mtu() * 8_000_000_000 / rate;
        let way = (self.rtt.saturating_sub(on_link) / 2).min(LONGEST);
        writeln!(out, "  {{ delay = \"{way}ns\" }},\n]\nreturn = [")?;
        writeln!(out, "  {{ delay = \"{way}ns\" }},\n]\n")?;
        writeln!(out, "[[flow]]\nname = \"transfer\"\nfrom = \"sender\"\nto = \"receiver\"")?;
        let bytes = self.bytes;
        match self.writes {
            Writes::Bulk => writeln!(out, "bulk = \"{bytes}B\"")?,
            Writes::Paced(chunk, every) => writeln!(
                out,
                "paced = {{ chunk = \"{chunk}B\", every = \"{}us\", bytes = \"{bytes}B\" }}",
                every.clamp(1_000, LONGEST) / 1_000
            )?,
        }
        if let Some(rate) = self.reads {
            // At least a whole byte at a time.
            let (every, rate) = if rate < 8_000 { ("1s", rate.max(8)) } else { ("10ms", rate) };
            let rate = rate.min(FASTEST);
            writeln!(out, "reads = {{ rate = \"{rate}bps\", every = \"{every}\" }}")?;
        }
        Ok(())
    }
}

/// A time in whole microseconds that is not empty.
fn in_micros((from, until): (u64, u64)) -> (u64, u64) {
    let end = LONGEST - 1_000;
    (from.min(end) / 1_000, until.min(end) / 1_000 + 1)
}
