//! Commands that run several worlds: their output is the same for any number of threads.

use std::path::Path;

use crate::test_directory::TestDirectory;

/// A directory with captures of three transfers.
fn captures(name: &str) -> TestDirectory {
    let dir = TestDirectory::new(name);
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/linux");
    for transfer in ["f2_few_losses_cubic", "h1_rwnd_cubic", "l1_healthy_cubic"] {
        let capture = golden.join(transfer).join("sender.pcap.xz");
        dir.write(&format!("{transfer}.pcap.xz"), std::fs::read(capture).unwrap());
    }
    dir
}

/// Checks that a command prints the same with one thread, two and five.
fn prints_the_same(dir: &TestDirectory, command: &[&str]) {
    let with = |jobs| dir.run(&[command, &["--jobs", jobs]].concat()).ok();
    let one = with("1");
    assert!(!one.is_empty());
    for jobs in ["2", "5"] {
        assert_eq!(with(jobs), one, "{command:?} with {jobs} threads");
    }
}

#[test]
fn what_if_answers_the_same_on_any_number_of_threads() {
    let dir = captures("what_if_answers_the_same_on_any_number_of_threads");
    let compare = "linux-6.18/reno,freebsd-14.3";
    let command = ["whatif", "f2_few_losses_cubic.pcap.xz", "--compare", compare, "--json"];
    prints_the_same(&dir, &command);
}

#[test]
fn a_folder_is_diagnosed_the_same_on_any_number_of_threads() {
    let dir = captures("a_folder_is_diagnosed_the_same_on_any_number_of_threads");
    prints_the_same(&dir, &["diagnose", ".", "--json"]);
}

#[test]
fn labels_are_compared_the_same_on_any_number_of_threads() {
    let dir = captures("labels_are_compared_the_same_on_any_number_of_threads");
    let labels = "\
        .\tf2_few_losses_cubic.pcap.xz\tCC205\n\
        .\th1_rwnd_cubic.pcap.xz\tCC401\n\
        .\tl1_healthy_cubic.pcap.xz\thealthy\n";
    dir.write("labels.tsv", labels);
    let with = |jobs| dir.run(&["diagnose", "--against", "labels.tsv", ".", "--jobs", jobs]);
    let (one, two) = (with("1"), with("2"));
    assert!(one.out.contains("of 3 right"), "{}{}", one.out, one.err);
    assert_eq!((one.out, one.code), (two.out, two.code));
}
