use std::fs;

use record::NullRecorder;
use scenario::{Overrides, load};

use super::*;

/// A file of a user below the directory of temporary files.
struct UserFile(PathBuf);

impl UserFile {
    fn new(name: &str, text: &str) -> Self {
        let file = format!("ackclock-{}-{name}.py", std::process::id());
        let path = std::env::temp_dir().join(file);
        fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for UserFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn has_python() -> bool {
    std::process::Command::new("python3").arg("--version").output().is_ok()
}

const SCENARIO: &str = "duration = \"5s\"\n[host.a]\nprofile = \"linux-6.18\"\ncc = \"own\"\n\
     [host.b]\nprofile = \"linux-6.18\"\n[[path]]\nfrom = \"a\"\nto = \"b\"\n\
     forward = [{ link = { rate = \"10Mbit/s\", buffer = \"30kB\" } }, { delay = \"20ms\" }]\n\
     return = [{ delay = \"20ms\" }]\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n\
     bulk = \"unlimited\"\n";

fn run(controller: ExternalAlgorithm) -> Result<(u64, u64), String> {
    let overrides = Overrides { controllers: vec![controller], ..Overrides::default() };
    let loaded = load(SCENARIO, "own.toml", &overrides).map_err(|errors| errors[0].to_string())?;
    let outcome =
        sim::run(&loaded.scenario, &mut NullRecorder).map_err(|error| error.to_string())?;
    Ok((outcome.segments, outcome.flows[0].retransmitted_segments))
}

#[test]
fn a_class_in_a_file_runs_as_a_controller_and_each_world_alike() {
    if !has_python() {
        return;
    }
    let text = "import random\nimport ackclock\ncount = 0\nclass Mine(ackclock.Controller):\n    \
         def on_report(self, report):\n        global count\n        count += 1\n        \
         return report.cwnd_bytes + report.mss_bytes * (1 + count % 2) * random.random()\n    \
         def on_loss(self, loss):\n        return max(loss.cwnd_bytes / 2, 2 * loss.mss_bytes)\n";
    let file = UserFile::new("mine", text);
    let controller = python_controller("own", &file.0, "Mine").unwrap();
    let first = run(controller).unwrap();
    // 10 Mbit/s for 5 s are 4166 packets.
    assert!(first.0 > 2_000, "{first:?}");
    assert_eq!(run(controller), Ok(first));
}

#[test]
fn errors_of_a_file_name_its_line() {
    if !has_python() {
        return;
    }
    let error = |name: &str, text: &str| {
        let file = UserFile::new(name, text);
        python_controller("own", &file.0, "Mine").unwrap_err().0
    };
    let misspelt = "class Mine:\n    def on_report(self, r):\n        pass\n    def on_los(self, l):\n        pass\n";
    let found = error("misspelt", misspelt);
    assert!(found.contains("`on_los`") && found.contains("did you mean `on_loss`?"), "{found}");
    assert!(error("bare", "class Mine:\n    pass\n").contains("no method `on_report`"));
    assert!(error("syntax", "class Mine:\n  def\n").contains("line 2"));
    assert!(error("other", "class Other:\n    pass\n").contains("no class Mine"));
    let every = "class Mine:\n    every = 'tick'\n    def on_report(self, r):\n        pass\n";
    assert!(error("every", every).contains("found \"tick\""));
}

#[test]
fn an_exception_ends_the_run_with_file_and_line() {
    if !has_python() {
        return;
    }
    let text = "class Mine:\n    def on_report(self, report):\n        return report.cwnd\n";
    let file = UserFile::new("raises", text);
    let error = run(python_controller("own", &file.0, "Mine").unwrap()).unwrap_err();
    assert!(error.contains("on_report") && error.contains("line 3"), "{error}");
}

#[test]
fn a_class_is_named_with_its_file() {
    assert_eq!(python_class("a/mine.py:Mine"), Some((PathBuf::from("a/mine.py"), "Mine")));
    for other in ["cubic", "linux-6.18/cubic", "mine.py", "mine.py:", "mine.txt:Mine"] {
        assert_eq!(python_class(other), None);
    }
}

#[test]
fn names_near_a_hook_are_refused() {
    let check = |names: &[&str]| check_hooks(names.iter().copied());
    assert_eq!(check(&["on_report", "on_loss", "every", "_private", "window", "losses"]), Ok(()));
    assert!(check(&["on_report", "on_lost"]).unwrap_err().contains("`on_loss`"));
    assert!(check(&["on_report", "on_timeout"]).unwrap_err().contains("the hooks are"));
    assert!(check(&["on_loss"]).unwrap_err().contains("no method `on_report`"));
}
