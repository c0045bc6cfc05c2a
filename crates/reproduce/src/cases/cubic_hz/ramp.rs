//! Recovery of the window after one loss.

use cc::cubic::CubicVariant;
use record::{Event, EventSource, Recorder, SenderState};
use units::Instant;

use super::SCENARIO;
use super::world::NEWRENO;
use crate::cases::{CaseError, CaseRow, Workers, load, run};

/// Observes the window from the first recovery on.
#[derive(Default)]
struct WindowWatcher {
    before: u64,
    began: Option<Instant>,
    back: Option<Instant>,
    low: Option<u64>,
}

impl Recorder for WindowWatcher {
    const ON: bool = true;

    fn record(&mut self, at: Instant, source: EventSource, _: Event, state: Option<&SenderState>) {
        let Some(state) = state.filter(|_| source.host.0 == 0) else { return };
        // The part of the window beyond the receiver's is not used.
        let cwnd = state.cwnd.min(state.snd_wnd).get();
        match self.began {
            None if state.in_recovery => self.began = Some(at),
            None => self.before = cwnd,
            Some(_) if state.in_recovery => {}
            Some(_) => {
                self.low.get_or_insert(cwnd);
                if self.back.is_none() && cwnd * 100 >= self.before * 95 {
                    self.back = Some(at);
                }
            }
        }
    }
}

impl sim::Observer for WindowWatcher {}

/// Seconds to 95 % of the window before the loss, for each variant.
pub(super) fn rows(workers: &Workers<'_>) -> Result<Vec<CaseRow>, CaseError> {
    // Linux's own CUBIC requires its stack.
    let variants =
        cc::cubic::VARIANTS.iter().filter(|(_, variant)| *variant != CubicVariant::Linux);
    let variants = variants.map(|&(name, _)| name);
    let names: Vec<&str> = [NEWRENO].into_iter().chain(variants).collect();
    workers.map(&names, |name| {
        let set = [
            format!("host.sender.cc={name}"),
            "host.sender.knobs.\"kern.hz\"=1000".to_owned(),
            "host.sender.knobs.\"net.inet.tcp.sendspace\"=4MiB".to_owned(),
            "host.sender.knobs.\"net.inet.tcp.sendbuf_auto\"=0".to_owned(),
            // The receiver's window ends slow start at 200 segments.
            "host.sink.knobs.\"net.inet.tcp.recvspace\"=289600B".to_owned(),
            "host.sink.knobs.\"net.inet.tcp.recvbuf_auto\"=0".to_owned(),
            "path.0.forward.1={ loss = { bytes = \"2896000B..2896001B\" } }".to_owned(),
            "path.0.forward.2.delay=25ms".to_owned(),
            "path.0.return.1.delay=25ms".to_owned(),
            "duration=25s".to_owned(),
        ];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let loaded = load(SCENARIO, "cubic-hz.toml", &set)?;
        let mut watcher = WindowWatcher::default();
        run(&loaded, &mut watcher, workers)?;
        let span = watcher.began.zip(watcher.back).map(|(from, to)| to.since(from).as_secs_f64());
        let segments = |bytes: u64| bytes as f64 / 1_448.0;
        Ok(CaseRow::predicted(format!("{name}: back after one loss, 50 ms"), "s", None, span).note(
            format!(
                "from {:.0} to 95 % of {:.0} segments; hz 1000",
                segments(watcher.low.unwrap_or(0)),
                segments(watcher.before)
            ),
        ))
    })
}
