//! Transfers of real kernels as text, to compare models with where no kernel is at hand.
//!
//! ```text
//! # transfer NAME KERNEL
//! # scenario
//! the scenario as TOML
//! # packets
//! FLOW >|< NS SEQ LEN ACK FLAGS WINDOW [LEFT-RIGHT...]
//! # tcp_info
//! FLOW NS CWND SSTHRESH|-
//! ```
//!
//! `>`: from the host that opened the connection, at whose network card all packets were seen. NS: nanoseconds since the
//! line before, in the same part of the text. Numbers are relative to the SYN, windows in bytes. A row of `tcp_info`
//! is written where the window or the threshold of the connecting end has changed.

use std::fmt::Write as _;

use units::Instant;

use crate::compare::{ComparedPacket, PacketRecord, WindowSample};

/// A recorded transfer.
#[derive(Debug)]
pub struct Recording {
    /// Name, unique in its file.
    pub name: String,
    /// The kernel (`linux-6.12.117`).
    pub kernel: String,
    /// The scenario's text.
    pub scenario: String,
    /// Packets and windows of every flow.
    pub record: PacketRecord,
}

impl Recording {
    /// The text of a transfer with `flows` flows.
    pub fn to_text(&self, flows: usize) -> String {
        let Self { name, kernel, scenario, record } = self;
        let mut text = format!("# transfer {name} {kernel}\n# scenario\n{}\n", scenario.trim_end());
        text += "# packets\n";
        let ways = [('>', true), ('<', false)];
        let packets = (0..flows).flat_map(|flow| {
            ways.into_iter().flat_map(move |(way, forward)| {
                record.packets(flow, forward).iter().map(move |packet| (flow, way, packet))
            })
        });
        let mut packets: Vec<_> = packets.collect();
        packets.sort_by_key(|(_, _, packet)| packet.at_ns);
        let mut before = 0;
        for (flow, way, packet) in packets {
            let ComparedPacket { at_ns, seq, len, ack, flags, sack, window } = packet;
            let ns = at_ns - before;
            before = *at_ns;
            // Writing to a string cannot fail.
            let _ = write!(text, "{flow} {way} {ns} {seq} {len} {ack} {flags} {window}");
            for (left, right) in sack {
                let _ = write!(text, " {left}-{right}");
            }
            text.push('\n');
        }
        text += "# tcp_info\n";
        let rows = (0..flows)
            .flat_map(|flow| record.windows(flow).iter().map(move |window| (flow, window)));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|(_, window)| window.at);
        let mut before = Instant::ZERO;
        for (flow, window) in rows {
            let ns = window.at.since(before).as_nanos();
            before = window.at;
            let ssthresh =
                window.ssthresh.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
            let _ = writeln!(text, "{flow} {ns} {} {ssthresh}", window.cwnd);
        }
        text
    }

    /// Reads the transfers of a file, one behind the other.
    ///
    /// # Errors
    /// The first line that is not as described above, with its number.
    pub fn read_all(text: &str) -> Result<Vec<Self>, String> {
        let mut found: Vec<Parts> = Vec::new();
        let mut part = "";
        for (index, line) in text.lines().enumerate() {
            let wrong = || format!("line {}: {line:?} does not belong into {part:?}", index + 1);
            if let Some(title) = line.strip_prefix("# transfer ") {
                let (name, kernel) = title.split_once(' ').ok_or_else(wrong)?;
                found.push(Parts::new(name, kernel));
                part = "transfer";
                continue;
            }
            let current = found.last_mut().ok_or_else(wrong)?;
            match (line.strip_prefix("# "), part) {
                (Some(next @ ("scenario" | "packets" | "tcp_info")), _) => part = next,
                (None, "scenario") => {
                    current.scenario += line;
                    current.scenario.push('\n');
                }
                (None, "packets") => current.packet(line).ok_or_else(wrong)?,
                (None, "tcp_info") => current.window(line).ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        Ok(found.into_iter().map(Parts::finish).collect())
    }
}

/// A transfer while it is read.
struct Parts {
    name: String,
    kernel: String,
    scenario: String,
    packets: Vec<[Vec<ComparedPacket>; 2]>,
    windows: Vec<Vec<WindowSample>>,
    packet_ns: u64,
    window_ns: u64,
}

/// Flows that a recording may have: a number of flow beyond is an error of the file.
const MOST_FLOWS: usize = 1_000;

impl Parts {
    fn new(name: &str, kernel: &str) -> Self {
        let [name, kernel] = [name, kernel].map(str::to_owned);
        let (packets, windows) = (Vec::new(), Vec::new());
        Self { name, kernel, scenario: String::new(), packets, windows, packet_ns: 0, window_ns: 0 }
    }

    fn flow(&mut self, text: &str) -> Option<usize> {
        let flow = text.parse().ok().filter(|&flow: &usize| flow < MOST_FLOWS)?;
        let flows = self.packets.len().max(flow + 1);
        self.packets.resize_with(flows, Default::default);
        self.windows.resize_with(flows, Default::default);
        Some(flow)
    }

    fn packet(&mut self, line: &str) -> Option<()> {
        let mut fields = line.split(' ');
        let flow = self.flow(fields.next()?)?;
        let way = [">", "<"].iter().position(|way| Some(*way) == fields.clone().next())?;
        fields.next();
        self.packet_ns = self.packet_ns.checked_add(fields.next()?.parse().ok()?)?;
        let mut number = || fields.next()?.parse::<u32>().ok();
        let (seq, len, ack) = (number()?, number()?, number()?);
        let flags = fields.next()?.to_owned();
        let window = fields.next()?.parse().ok()?;
        let block = |text: &str| {
            let (left, right) = text.split_once('-')?;
            Some((left.parse().ok()?, right.parse().ok()?))
        };
        let sack = fields.map(block).collect::<Option<_>>()?;
        let at_ns = self.packet_ns;
        self.packets[flow][way].push(ComparedPacket { at_ns, seq, len, ack, flags, sack, window });
        Some(())
    }

    fn window(&mut self, line: &str) -> Option<()> {
        let mut fields = line.split(' ');
        let flow = self.flow(fields.next()?)?;
        self.window_ns = self.window_ns.checked_add(fields.next()?.parse().ok()?)?;
        let cwnd = fields.next()?.parse().ok()?;
        let ssthresh = match fields.next()? {
            "-" => None,
            bytes => Some(bytes.parse().ok()?),
        };
        let at = Instant::from_nanos(self.window_ns);
        self.windows[flow].push(WindowSample { at, cwnd, ssthresh });
        fields.next().is_none().then_some(())
    }

    fn finish(self) -> Recording {
        let Self { name, kernel, scenario, packets, windows, .. } = self;
        Recording { name, kernel, scenario, record: PacketRecord::recorded(packets, windows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = "# transfer one linux-6.12.117\n# scenario\nduration = \"5s\"\n\n[host.a]\n# packets\n\
            0 > 0 0 0 0 S 64240\n1 > 5 0 0 0 S 64240\n0 < 20000 0 0 1 S. 65160\n0 > 3 1 1448 1 . 64256 5-9 12-14\n\
            # tcp_info\n0 10000000 14480 -\n0 10000000 7240 7240\n";
        let twice = format!("{text}{}", text.replace("transfer one", "transfer two"));
        let read = Recording::read_all(&twice).unwrap();
        let [one, two] = &read[..] else { panic!("{read:?}") };
        assert_eq!((one.name.as_str(), two.name.as_str()), ("one", "two"));
        assert_eq!(one.scenario, "duration = \"5s\"\n\n[host.a]\n");
        let [syn, data] = one.record.packets(0, true) else { panic!() };
        assert_eq!((syn.at_ns, data.at_ns, data.len), (0, 20_008, 1_448));
        assert_eq!(data.sack, [(5, 9), (12, 14)]);
        assert_eq!(one.record.packets(1, true)[0].at_ns, 5);
        assert_eq!(one.record.windows(0)[1].at, Instant::from_nanos(20_000_000));
        assert_eq!(one.to_text(2), text);
        assert_eq!(two.to_text(2), text.replace("transfer one", "transfer two"));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, line) in [
            ("# packets\n", 1),
            ("# transfer one\n", 1),
            ("# transfer one k\n# packets\n0 > 0 0 0 0 S\n", 3),
            ("# transfer one k\n# packets\n0 - 0 0 0 0 S 5\n", 3),
            ("# transfer one k\n# packets\n99999999 > 0 0 0 0 S 5\n", 3),
            ("# transfer one k\n# packets\n0 > 0 0 0 0 S 5 7\n", 3),
            ("# transfer one k\n# tcp_info\n0 5 7 - 9\n", 3),
            ("# transfer one k\n# other\n", 2),
        ] {
            let error = Recording::read_all(text).unwrap_err();
            assert!(error.starts_with(&format!("line {line}: ")), "{error}");
        }
    }
}
