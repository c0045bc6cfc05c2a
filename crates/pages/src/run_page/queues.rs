//! Queues over time.

use report::page::PagePart;
use report::plots::{PlotAxis, PlotPanel, PlotSeries, Plots, SeriesMark, SeriesRole};
use runner::sharing::{QueueInterval, Sharing};
use sim::RunOutcome;

use super::{amount, panels, span};

/// Links with their own curve.
const LINKS: usize = 12;

/// Delay, length and losses of the queue of each link over time; nothing if they were not recorded.
pub(super) fn over_time(sharing: &Sharing, outcome: &RunOutcome, prefix: &str) -> Option<PagePart> {
    let used = |(_, (_, all)): &(&str, (_, Vec<QueueInterval>))| {
        all.iter().any(|interval| interval.packets + interval.lost > 0)
    };
    let links: Vec<_> = sharing.queues(outcome.ended).filter(used).take(LINKS).collect();
    let (_, (width, _)) = links.first()?;
    let note = format!("The maximum of each {}.", runner::run_report::spaced(*width));
    let curves = |value: &dyn Fn(&QueueInterval) -> i64| -> Vec<PlotSeries> {
        let curve = |(place, (name, (width, all))): (usize, &(&str, (_, Vec<QueueInterval>)))| {
            let at = |n: usize| span(*width).saturating_mul(n as i64);
            let mut points: Vec<(i64, i64)> = Vec::new();
            for (number, interval) in all.iter().enumerate() {
                let value = value(interval);
                // Equal neighbours are one step.
                if points.last().is_none_or(|(_, last)| *last != value) {
                    points.push((at(number), value));
                }
            }
            points.extend(points.last().map(|(_, last)| (at(all.len()), *last)));
            let mark = if place < 8 { SeriesMark::Step } else { SeriesMark::DashedStep };
            PlotSeries::new(name, SeriesRole::Nth(place as u8), mark).with_points(points)
        };
        links.iter().enumerate().map(curve).collect()
    };
    let panel = |name: &str, unit: &str, digits, value: &dyn Fn(&QueueInterval) -> i64| {
        PlotPanel::new(PlotAxis::new(name, unit, digits), curves(value)).height(170).note(&note)
    };
    let mut panels = vec![
        panel("queue delay", "s", 9, &|one| span(one.longest)),
        panel("bytes at the link", "B", 0, &|one| amount(one.most_bytes)),
        panel("packets at the link", "", 0, &|one| amount(one.most_packets)),
    ];
    if links.iter().any(|(_, (_, all))| all.iter().any(|interval| interval.lost > 0)) {
        let lost = panel("packets dropped", "", 0, &|one| amount(one.lost));
        panels.push(lost.note(note.replace("maximum", "sum")));
    }
    Some(PagePart::Plots(Plots {
        id: format!("{prefix}queues"),
        title: "Queues over time".into(),
        x: panels::time(),
        panels,
    }))
}
