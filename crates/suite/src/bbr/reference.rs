//! Files that a stack can compare with: the scenario, the named state as CSV, and a qlog of recovery metrics and congestion
//! states.

use core::fmt::Write as _;
use std::io;

use logs::qlog::{Metrics, QlogData, QlogEvent, QlogFormat, QlogWriter, Trace, Vantage};
use units::Duration;

use super::course::{BbrCourse, PHASES};

/// The course of the last run of a case on a path.
#[derive(Debug, Clone)]
pub struct BbrReference {
    /// The case.
    pub case: &'static str,
    /// The path.
    pub path: &'static str,
    /// The scenario file of the run.
    pub scenario: String,
    /// The named state over time.
    pub course: BbrCourse,
}

impl BbrReference {
    /// Name of its files, without extension.
    pub fn name(&self) -> String {
        format!("{}-{}", self.case, self.path)
    }

    /// The named state as CSV: one row for each change of a discrete part. Times are nanoseconds, data bytes, rates bytes
    /// per second, gains thousandths; an empty cell is infinite or unset.
    pub fn csv(&self) -> String {
        let mut text = format!(
            "time_s,read_bytes,sent_packets,lost_packets,{}\n",
            self.course.names.join(",")
        );
        for sample in &self.course.samples {
            let _ = write!(
                text,
                "{:.9},{},{},{}",
                sample.at.as_secs_f64(),
                sample.read,
                sample.sent,
                sample.lost
            );
            for (name, value) in self.course.names.iter().zip(&sample.values) {
                match value {
                    Some(number) if *name == "state" => {
                        let _ = write!(text, ",{}", PHASES.get(*number as usize).unwrap_or(&"?"));
                    }
                    Some(number) => {
                        let _ = write!(text, ",{number}");
                    }
                    None => text.push(','),
                }
            }
            text.push('\n');
        }
        text
    }

    /// The qlog.
    ///
    /// # Errors
    /// None: it is written to memory.
    pub fn qlog(&self) -> io::Result<Vec<u8>> {
        let trace = Trace {
            title: format!("suite bbr: {}", self.name()),
            description: "named state of BBR at the sender".to_owned(),
            vantage: Vantage::Client,
            vantage_name: "sender".to_owned(),
            group_id: self.name(),
            protocols: vec!["QUIC".to_owned()],
            epoch: None,
        };
        let mut writer = QlogWriter::new(Vec::new(), &trace, QlogFormat::Current)?;
        let mut state = None;
        for (at, sample) in self.course.samples.iter().enumerate() {
            let now = self.course.get(at, "state");
            if now != state {
                let name = |number: u64| PHASES.get(number as usize).map(|&name| name.to_owned());
                writer.event(&QlogEvent::new(
                    sample.at,
                    QlogData::CongestionStateUpdated {
                        old: state.and_then(name),
                        new: now.and_then(name).unwrap_or_default(),
                        trigger: None,
                    },
                ))?;
                state = now;
            }
            let metrics = Metrics {
                min_rtt: self.course.get(at, "min_rtt").map(Duration::from_nanos),
                congestion_window: self.course.get(at, "cwnd"),
                bytes_in_flight: self.course.get(at, "inflight"),
                pacing_rate: self.course.get(at, "pacing_rate").map(|rate| rate.saturating_mul(8)),
                ..Metrics::default()
            };
            writer.event(&QlogEvent::new(sample.at, QlogData::MetricsUpdated(metrics)))?;
        }
        writer.finish()
    }
}
