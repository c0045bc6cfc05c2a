//! Runs of a scenario: results, series, pages.

use std::collections::BTreeMap;

use charts::downsample::ThinnedSeries;
use logs::series::{Collector, Downsampling, SeriesColumns};
use pages::run_page::RunPageRecorder;
use record::{Digest, Event, EventSource, PacketEvent, Recorder, Sender, SenderState};
use report::page::Page;
use runner::run_report::{RunReport, table};
use runner::series::{SenderSeries, sender};
use runner::sharing::Sharing;
use scenario::{Loaded, Overrides, SeriesPlan};
use serde::Serialize;
use serde_json::{Value, json};
use sim::scenario::FlowSpec;
use sim::{Observer, ObserverPair};
use units::Instant;

use crate::queues::{self, PathQueue};
use crate::requests::Failure;

/// Columns of the series.
const COLUMNS: &str = "cwnd_bytes, flight_bytes, ssthresh_bytes, snd_una_bytes, srtt_us";
/// Name of a scenario's text in messages.
pub(crate) const NAME: &str = "scenario";

/// Reads a scenario.
pub(crate) fn loaded(text: &str) -> Result<Loaded, Failure> {
    scenario::load(text, NAME, &Overrides::default()).map_err(Failure::Scenario)
}

/// Runs a scenario: its result as JSON and as a table, the series of its senders, and of a path the
/// queue, the controls, and the name of its first flow.
pub(crate) fn run(text: &str, controlled: usize, points: usize) -> Result<Value, Failure> {
    let loaded = loaded(text)?;
    let scenario = &loaded.scenario;
    let columns = SeriesColumns::parse(COLUMNS).map_err(|unknown| unknown.0)?;
    let plan = SeriesPlan { columns, thinning: Downsampling::Points(points), queues: false };
    let mut series = SenderSeries::new(scenario, &plan);
    let is_on_path = |flow: &&FlowSpec| flow.path == controlled;
    let shown = scenario.flows.iter().find(is_on_path).or(scenario.flows.first());
    let path = shown.map_or(0, |flow| flow.path);
    let data = usize::from(shown.is_some_and(|flow| {
        scenario.paths.get(path).is_some_and(|path| path.from != sender(flow))
    }));
    let line = queues::slowest(scenario, path)[data];
    let mut queue = QueueSeries::new(line, points);
    let mut watched = ObserverPair(&mut series, &mut queue);
    let outcome = sim::run_shared(scenario, &mut watched)?;
    let report = RunReport::new(&loaded, &outcome);
    Ok(json!({
        "text": text,
        "controls": crate::controls::of(text, controlled),
        "paths": crate::controls::paths(text),
        "report": report,
        "table": table(&loaded, &outcome),
        "shown": shown.map(|flow| &flow.name),
        "flows": flows(series.into_collector()),
        "queue": queue.finish(),
    }))
}

/// The series of a flow, column by column.
#[derive(Serialize)]
struct FlowSeries {
    name: String,
    time_s: Vec<f64>,
    columns: BTreeMap<&'static str, Vec<Option<u64>>>,
}

fn flows(mut collector: Collector) -> Vec<FlowSeries> {
    let names = collector.columns().names();
    let mut flows: Vec<FlowSeries> = Vec::new();
    // Nothing fails in memory.
    let _ = collector.rows(|at, flow, values| {
        let known = flows.iter().position(|one| one.name == flow);
        let index = known.unwrap_or_else(|| {
            flows.push(FlowSeries {
                name: flow.to_owned(),
                time_s: Vec::new(),
                columns: names.iter().map(|name| (*name, Vec::new())).collect(),
            });
            flows.len() - 1
        });
        flows[index].time_s.push(at.as_secs_f64());
        for (name, value) in names.iter().zip(values) {
            if let Some(column) = flows[index].columns.get_mut(name) {
                column.push(*value);
            }
        }
        Ok::<(), ()>(())
    });
    flows
}

/// Bytes that wait at a line, over time.
struct QueueSeries {
    line: Option<PathQueue>,
    /// Size of each packet.
    sizes: Vec<u32>,
    held: i64,
    series: ThinnedSeries,
    dropped: Vec<f64>,
}

impl QueueSeries {
    fn new(line: Option<PathQueue>, points: usize) -> Self {
        let series = ThinnedSeries::new(points);
        Self { line, sizes: Vec::new(), held: 0, series, dropped: Vec::new() }
    }

    fn finish(self) -> Value {
        let Some(line) = self.line else { return Value::Null };
        let (points, _) = self.series.finish();
        json!({
            "rate_bps": line.rate_bps,
            "limit_bytes": line.limit.0,
            "limit_packets": line.limit.1,
            "time_s": points.iter().map(|point| point.x as f64 / 1e9).collect::<Vec<_>>(),
            "bytes": points.iter().map(|point| point.y).collect::<Vec<_>>(),
            "dropped_s": self.dropped,
        })
    }

    fn size(&self, packet: record::PacketNumber) -> i64 {
        self.sizes.get(packet.0 as usize).copied().unwrap_or(0).into()
    }
}

impl Recorder for QueueSeries {
    const ON: bool = true;
    const PACKETS: bool = true;

    fn record(&mut self, _: Instant, _: EventSource, _: Event, _: Option<&SenderState>) {}

    fn record_sender(
        &mut self,
        _: Instant,
        _: EventSource,
        _: impl FnOnce() -> Event,
        _: &impl Sender,
    ) {
    }

    fn record_packet(&mut self, at: Instant, movement: PacketEvent) {
        let Some(line) = self.line else { return };
        let change = match movement {
            PacketEvent::Sent { packet, size, .. } => {
                let index = packet.0 as usize;
                if self.sizes.len() <= index {
                    self.sizes.resize(index + 1, 0);
                }
                self.sizes[index] = size;
                return;
            }
            PacketEvent::Accepted { hop_index, packet } if hop_index.0 == line.element => {
                self.size(packet)
            }
            PacketEvent::Forwarded { hop_index, packet } if hop_index.0 == line.element => {
                -self.size(packet)
            }
            PacketEvent::Dropped { hop_index, .. } if hop_index.0 == line.element => {
                if self.dropped.len() < 10_000 {
                    self.dropped.push(at.as_secs_f64());
                }
                return;
            }
            _ => return,
        };
        self.held = (self.held + change).max(0);
        self.series.push(i64::try_from(at.as_nanos()).unwrap_or(i64::MAX), self.held);
    }
}

impl Observer for QueueSeries {}

/// The page of a run.
pub(crate) fn page(text: &str) -> Result<Page, Failure> {
    let loaded = loaded(text)?;
    let mut scenario = loaded.scenario.clone();
    let mut story = RunPageRecorder::of(&mut scenario);
    let mut sharing = Sharing::detailed(&scenario);
    let outcome = sim::run_shared(&scenario, &mut ObserverPair(&mut story, &mut sharing))?;
    Ok(story.page(&loaded, &outcome, NAME, Some(&sharing)))
}

/// The result of a run as `ackclock run --json` prints it, and the digest of its events.
pub(crate) fn report(text: &str) -> Result<Value, Failure> {
    let loaded = loaded(text)?;
    let scenario = &loaded.scenario;
    let mut digest = Digest::default();
    let mut sharing = Sharing::detailed(scenario);
    let outcome = sim::run_shared(scenario, &mut ObserverPair(&mut sharing, &mut digest))?;
    let report = RunReport::new(&loaded, &outcome).with(&sharing, &loaded, &outcome);
    Ok(json!({
        "json": report.to_json(),
        "digest": format!("{:016x}", digest.value()),
        "events": digest.events(),
    }))
}
