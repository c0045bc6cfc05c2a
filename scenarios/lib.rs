//! The scenarios of this folder as text. A command takes `preset:NAME` where it takes a scenario file, so that the
//! program runs without the repository.

/// Prefix of the name of a sample where a file is expected.
pub const PREFIX: &str = "preset:";

/// A scenario that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Name of its file without folder `presets` and ending, such as `lte` or `c4/black-hole`.
    pub name: &'static str,
    /// The file, in TOML.
    pub text: &'static str,
}

impl Sample {
    /// Returns the title that the file states.
    pub fn title(&self) -> &'static str {
        let line = self.text.lines().find_map(|line| line.strip_prefix("title = \""));
        line.and_then(|rest| rest.split_once('"')).map_or("", |(title, _)| title)
    }

    /// Whether it is a path with hosts and a transfer around it: `preset = "NAME"` of a path takes both directions.
    pub fn is_path(&self) -> bool {
        PATHS.contains(&self.name)
    }
}

/// Names of the samples of folder `presets`.
pub const PATHS: [&str; 5] = ["satellite", "lte", "datacenter", "home-wifi", "transatlantic"];

macro_rules! sample {
    ($name:literal, $file:literal) => {
        Sample { name: $name, text: include_str!($file) }
    };
}

/// All samples, by name.
pub const SAMPLES: &[Sample] = &[
    sample!("bufferbloat", "bufferbloat.toml"),
    sample!("c4/background-first", "c4/background-first.toml"),
    sample!("c4/background-last", "c4/background-last.toml"),
    sample!("c4/bad-wifi", "c4/bad-wifi.toml"),
    sample!("c4/bad-wifi-short-queue", "c4/bad-wifi-short-queue.toml"),
    sample!("c4/bad-wifi-two", "c4/bad-wifi-two.toml"),
    sample!("c4/bbr-bad-wifi", "c4/bbr-bad-wifi.toml"),
    sample!("c4/bbr-long-last", "c4/bbr-long-last.toml"),
    sample!("c4/bbr-two-long", "c4/bbr-two-long.toml"),
    sample!("c4/bbr-two-short", "c4/bbr-two-short.toml"),
    sample!("c4/black-hole", "c4/black-hole.toml"),
    sample!("c4/cubic-bad-wifi", "c4/cubic-bad-wifi.toml"),
    sample!("c4/cubic-long-last", "c4/cubic-long-last.toml"),
    sample!("c4/cubic-two-long", "c4/cubic-two-long.toml"),
    sample!("c4/cubic-two-short", "c4/cubic-two-short.toml"),
    sample!("c4/cubic-two-shorter", "c4/cubic-two-shorter.toml"),
    sample!("c4/drop-and-back", "c4/drop-and-back.toml"),
    sample!("c4/geo-satellite", "c4/geo-satellite.toml"),
    sample!("c4/long-background-last", "c4/long-background-last.toml"),
    sample!("c4/low-and-up", "c4/low-and-up.toml"),
    sample!("c4/short-to-long", "c4/short-to-long.toml"),
    sample!("c4/simple-1.5mbps", "c4/simple-1.5mbps.toml"),
    sample!("c4/simple-200mbps", "c4/simple-200mbps.toml"),
    sample!("c4/simple-20mbps", "c4/simple-20mbps.toml"),
    sample!("c4/simple-20mbps-short-queue", "c4/simple-20mbps-short-queue.toml"),
    sample!("c4/simple-512kbps", "c4/simple-512kbps.toml"),
    sample!("c4/two-long", "c4/two-long.toml"),
    sample!("c4/two-short", "c4/two-short.toml"),
    sample!("c4/wifi-fade", "c4/wifi-fade.toml"),
    sample!("c4/wifi-fader", "c4/wifi-fader.toml"),
    sample!("c4/wifi-suspension", "c4/wifi-suspension.toml"),
    sample!("cubic-hz", "cubic-hz.toml"),
    sample!("cubic-tables", "cubic-tables.toml"),
    sample!("datacenter", "presets/datacenter.toml"),
    sample!("example", "example.toml"),
    sample!("fairness-bbr-cubic", "fairness-bbr-cubic.toml"),
    sample!("fairness-cubic-newreno", "fairness-cubic-newreno.toml"),
    sample!("fairness-late-comer", "fairness-late-comer.toml"),
    sample!("home-wifi", "presets/home-wifi.toml"),
    sample!("incast", "incast.toml"),
    sample!("interop-path", "interop-path.toml"),
    sample!("loss-sweep", "loss-sweep.toml"),
    sample!("lte", "presets/lte.toml"),
    sample!("mathis", "mathis.toml"),
    sample!("netem-jitter", "netem-jitter.toml"),
    sample!("netem-loss", "netem-loss.toml"),
    sample!("parking-lot", "parking-lot.toml"),
    sample!("prr", "prr.toml"),
    sample!("reordering", "reordering.toml"),
    sample!("rough-path", "rough-path.toml"),
    sample!("satellite", "presets/satellite.toml"),
    sample!("shared-bottleneck", "shared-bottleneck.toml"),
    sample!("short-flows", "short-flows.toml"),
    sample!("slow-start-freebsd", "slow-start-freebsd.toml"),
    sample!("slow-start-lro", "slow-start-lro.toml"),
    sample!("slow-start-ramp", "slow-start-ramp.toml"),
    sample!("transatlantic", "presets/transatlantic.toml"),
    sample!("video", "video.toml"),
    sample!("web", "web.toml"),
];

/// Returns the sample of that name.
pub fn find(name: &str) -> Option<&'static Sample> {
    SAMPLES.iter().find(|sample| sample.name == name)
}

/// Returns the text of a sample, for constants.
///
/// # Panics
/// No sample has that name.
pub const fn text(name: &str) -> &'static str {
    let mut at = 0;
    while at < SAMPLES.len() {
        if is_same(SAMPLES[at].name.as_bytes(), name.as_bytes()) {
            return SAMPLES[at].text;
        }
        at += 1;
    }
    panic!("no sample has that name")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_a_sample() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        for (folder, prefix) in [("", ""), ("c4", "c4/"), ("presets", "")] {
            for entry in fs::read_dir(root.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                let is_scenario = path.extension().is_some_and(|end| end == "toml")
                    && path.file_name().is_some_and(|name| name != "Cargo.toml");
                if is_scenario {
                    let stem = path.file_stem().unwrap().to_str().unwrap();
                    found.push((format!("{prefix}{stem}"), fs::read_to_string(&path).unwrap()));
                }
            }
        }
        found.sort();
        let known: Vec<_> =
            SAMPLES.iter().map(|s| (s.name.to_owned(), s.text.to_owned())).collect();
        assert_eq!(known, found);
    }

    #[test]
    fn every_sample_has_a_title() {
        for sample in SAMPLES {
            assert!(!sample.title().is_empty(), "{}", sample.name);
        }
    }

    #[test]
    fn names_are_found() {
        assert_eq!(find("lte").map(Sample::is_path), Some(true));
        assert_eq!(find("mathis").map(Sample::is_path), Some(false));
        assert_eq!(find("nothing"), None);
        assert_eq!(text("mathis"), find("mathis").unwrap().text);
    }
}
