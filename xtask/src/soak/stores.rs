//! Sweeps that are killed, and that lose in a power cut what they had not synced: the bytes at the end are those of a
//! sweep without interruption.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use units::RandomStream;

use super::{SoakTally, is_same};

const SCENARIO: &str = r#"[host.a]
profile = "linux-6.18"
[host.b]
profile = "linux-6.18"
[[path]]
from = "a"
to = "b"
forward = [{ link = { rate = "10Mbit/s", buffer = "50kB" } }, { delay = "5ms" }, { loss = "1%" }]
return = [{ delay = "5ms" }]
[[flow]]
name = "f"
from = "a"
to = "b"
bulk = "300kB"
[sweep]
repeat = 12
series = { columns = ["cwnd"], every = "50ms" }
[sweep.axes]
"path.forward.delay" = ["5ms", "20ms"]
"#;

/// Files whose end may be lost: they are appended to, and synced at the end.
const UNSYNCED: [&str; 3] = ["runs.part.jsonl", "runs.sums", "series.sums"];
/// Most bytes at the end of a file that a power cut takes.
const PAGE: u64 = 4_096;
/// Most kills of a sweep.
const MOST_KILLS: u64 = 30;

/// A sweep without interruption, and where others are.
pub(super) struct Stores {
    program: PathBuf,
    folder: PathBuf,
}

impl Stores {
    pub(super) fn of(program: &Path, out: &Path) -> Result<Self, String> {
        let folder = out.join("store");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        fs::write(folder.join("s.toml"), SCENARIO).map_err(|error| error.to_string())?;
        let stores = Self { program: program.to_owned(), folder };
        let whole = stores.start("whole").and_then(|mut child| child.wait());
        match whole {
            Ok(status) if status.success() => Ok(stores),
            Ok(status) => Err(format!("the sweep without interruption: {status}")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn start(&self, name: &str) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(["sweep", "s.toml", "--jobs", "2", "--resume", "--out", name]);
        command.current_dir(&self.folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }

    /// Kills a sweep some times, with a power cut after each kill or not, until it ends.
    #[expect(clippy::disallowed_methods, reason = "a kill comes at a moment of wall-clock time")]
    pub(super) fn round(
        &self,
        round: u64,
        has_cuts: bool,
        draws: &mut RandomStream,
        tally: &mut SoakTally,
    ) {
        let store = self.folder.join("cut");
        let _ = fs::remove_dir_all(&store);
        let mut kills = 0;
        let ended = loop {
            let mut child = match self.start("cut") {
                Ok(child) => child,
                Err(error) => break Err(error.to_string()),
            };
            if kills < MOST_KILLS {
                thread::sleep(Duration::from_millis(draws.below(80)));
                let _ = child.kill();
            }
            match child.wait() {
                Ok(status) if status.success() => break Ok(()),
                // A signal: it was killed.
                Ok(status) if status.code().is_none() => kills += 1,
                Ok(status) => break Err(format!("{status}")),
                Err(error) => break Err(error.to_string()),
            }
            // The rows in their place: checksums were synced before.
            if has_cuts && !store.join("runs.jsonl").exists() {
                for name in UNSYNCED {
                    tear(&store.join(name), draws);
                }
            }
        };
        let failure = ended.and_then(|()| self.compare(&store)).err().map(|reason| {
            let kept = self.folder.join(format!("failed-{round}-{has_cuts}"));
            let _ = fs::rename(&store, &kept);
            format!("{reason}: {}", kept.display())
        });
        let kind = if has_cuts { "power cuts of sweeps" } else { "kills of sweeps" };
        tally.add(kind, kills, failure);
    }

    /// The error of a store that differs from that of the sweep without interruption.
    fn compare(&self, store: &Path) -> Result<(), String> {
        let whole = self.folder.join("whole");
        let mut names: Vec<PathBuf> =
            ["runs.jsonl", "runs.csv", "runs.sums", "series.sums", "sweep.json", "scenario.toml"]
                .map(PathBuf::from)
                .into();
        names.extend((0..24).map(|run| Path::new("series").join(format!("{run}.csv"))));
        match names.iter().find(|name| !is_same(&whole.join(name), &store.join(name))) {
            Some(name) => Err(format!("{} differs", name.display())),
            None => Ok(()),
        }
    }
}

/// Drops the end of a file, or fills part of it with zeros, as blocks that were never written are.
fn tear(file: &Path, draws: &mut RandomStream) {
    let Ok(mut bytes) = fs::read(file) else { return };
    let lost = draws.below(PAGE.min(bytes.len() as u64) + 1) as usize;
    let from = bytes.len() - lost;
    match draws.below(3) {
        0 => bytes.truncate(from),
        1 => bytes[from..].fill(0),
        _ => return,
    }
    let _ = fs::write(file, bytes);
}
