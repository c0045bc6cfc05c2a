//! The connections of a report as CSV, one a row.

use std::io;

use diagnose::ExchangeShare;
use packet::Dir;
use units::Duration;

use super::DiagnosisReport;
use super::selection::codes;

const COLUMNS: [&str; 21] = [
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
    "requests",
    "first_byte_s",
    "network_s",
    "client_s",
    "server_s",
    "transfer_s",
];

impl DiagnosisReport {
    /// Writes all connections of TCP as CSV with a line of names, in their order. With `is_safe` names that a spreadsheet
    /// takes for formulas have an apostrophe before them.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, out: impl io::Write, is_safe: bool) -> io::Result<()> {
        let mut table = csv::Writer::from_writer(out);
        table.write_record(COLUMNS)?;
        let seconds = |time: Duration| time.as_secs_f64().to_string();
        let name = |name: String| match name.as_bytes() {
            [b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r', ..] if is_safe => format!("'{name}"),
            _ => name,
        };
        for file in &self.files {
            for one in &file.connections {
                let analysis = one.analysis();
                let flow = analysis.main();
                let counts = flow.map(|flow| flow.counts).unwrap_or_default();
                let [client, server] = one.ends(&analysis);
                let sender = if analysis.main_dir() == Dir::Forward { "client" } else { "server" };
                let findings: Vec<_> = codes(one.codes).collect();
                let exchange = analysis.exchange.as_deref();
                let spent = |share| exchange.map_or(String::new(), |one| seconds(one.of(share)));
                table.write_record([
                    name(file.file.name.clone()),
                    one.number().to_string(),
                    name(client),
                    name(server),
                    sender.to_owned(),
                    one.bytes.to_string(),
                    analysis.first.as_secs_f64().to_string(),
                    seconds(one.duration),
                    one.goodput_bps.to_string(),
                    (counts.new + counts.retransmitted).to_string(),
                    counts.retransmitted.to_string(),
                    flow.and_then(|flow| flow.rtt).map_or(String::new(), |(min, ..)| seconds(min)),
                    seconds(one.cost),
                    one.primary.unwrap_or_default().to_owned(),
                    findings.join(" "),
                    exchange.map_or(String::new(), |one| one.requests().to_string()),
                    exchange.and_then(|one| one.first_byte.mean()).map_or(String::new(), seconds),
                    spent(ExchangeShare::Network),
                    spent(ExchangeShare::Client),
                    spent(ExchangeShare::Server),
                    spent(ExchangeShare::Transfer),
                ])?;
            }
        }
        table.flush()
    }
}
