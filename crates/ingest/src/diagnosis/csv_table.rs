//! The connections of a report as CSV, one a row.

use std::io;

use packet::Dir;

use super::DiagnosisReport;
use super::selection::codes;

const COLUMNS: [&str; 15] = [
    "file",
    "id",
    "client",
    "server",
    "sender",
    "bytes",
    "start_s",
    "duration_s",
    "goodput_bps",
    "packets",
    "retransmitted_packets",
    "rtt_s",
    "lost_s",
    "primary",
    "findings",
];

impl DiagnosisReport {
    /// Writes all connections of TCP as CSV with a line of names, in their order.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: impl io::Write) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(out);
        table.write_record(COLUMNS)?;
        let seconds = |ns: u64| (ns as f64 / 1e9).to_string();
        for file in &self.files {
            for one in &file.connections {
                let analysis = one.analysis();
                let flow = analysis.main();
                let counts = flow.map(|flow| flow.counts).unwrap_or_default();
                let [client, server] = one.ends(&analysis);
                let sender = if analysis.main_dir() == Dir::Forward { "client" } else { "server" };
                let findings: Vec<_> = codes(one.codes).collect();
                table.write_record([
                    file.file.name.clone(),
                    one.number().to_string(),
                    client,
                    server,
                    sender.to_owned(),
                    one.bytes.to_string(),
                    seconds(analysis.first.as_nanos()),
                    seconds(one.duration),
                    one.goodput_bps.to_string(),
                    (counts.new + counts.retransmitted).to_string(),
                    counts.retransmitted.to_string(),
                    flow.and_then(|flow| flow.rtt).map_or(String::new(), |(min, ..)| seconds(min)),
                    seconds(one.cost),
                    one.primary.unwrap_or_default().to_owned(),
                    findings.join(" "),
                ])?;
            }
        }
        table.flush()
    }
}
