//! The image of `packaging/Dockerfile` without a daemon: its steps, run in an empty root.
//!
//! The program of tests needs the C library, which is copied beside it; the one of releases is static.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::test_directory::TestDirectory;

const DOCKERFILE: &str = include_str!("../../../../packaging/Dockerfile");

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn the_image_needs_nothing_of_a_system() {
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout != b"0\n" {
        eprintln!("skipped: only root can change the root directory");
        return;
    }
    let root = TestDirectory::new("image");
    let mut isolated = Command::new("unshare");
    isolated.env_clear().arg("--root").arg(&root.0);
    let mut entry = None;
    for line in DOCKERFILE.lines().filter(|line| !line.starts_with('#')) {
        let (step, rest) = line.split_once(' ').unwrap();
        match (step, rest) {
            ("FROM", "scratch") => {}
            ("COPY", "ackclock /ackclock") => copy_program(&root.0),
            ("WORKDIR", path) => {
                fs::create_dir_all(root.0.join(path.trim_start_matches('/'))).unwrap();
                isolated.arg("--wd").arg(path);
            }
            ("USER", ids) => {
                let (user, group) = ids.split_once(':').unwrap();
                isolated.args(["--setuid", user, "--setgid", group]);
            }
            ("ENTRYPOINT", list) => {
                entry = Some(serde_json::from_str::<Vec<String>>(list).unwrap());
            }
            _ => panic!("a step that this test does not know: {line}"),
        }
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux");
    fs::copy(golden.join("h1_rwnd_cubic/sender.pcap.xz"), root.0.join("data/slow.pcap.xz"))
        .unwrap();

    let done = isolated.args(entry.unwrap()).args(["diagnose", "slow.pcap.xz"]).output().unwrap();
    let (printed, errors) =
        (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap());
    assert_eq!(done.status.code(), Some(0), "{printed}\n{errors}");
    assert!(printed.contains("CC401"), "{printed}");
}

/// The program and the libraries that it is linked with, at the paths they have here.
fn copy_program(root: &Path) {
    let program = env!("CARGO_BIN_EXE_ackclock");
    fs::copy(program, root.join("ackclock")).unwrap();
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for path in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        let place = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(path, place).unwrap();
    }
}
