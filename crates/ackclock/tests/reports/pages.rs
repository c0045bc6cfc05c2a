//! Pages of runs and sweeps draw the measured values.

use std::path::Path;

use serde_json::json;

use super::browser::Browser;
use super::{SCENARIOS, ackclock, dir, picture};

/// Screen sizes of a desktop and a phone.
const DESK: (u32, u32) = (1_280, 900);
const PHONE: (u32, u32) = (390, 844);

/// Screenshots of a page in both themes, on desktop and phone; no console error is allowed.
fn look(browser: &mut Browser, file: &Path) {
    let stem = file.with_extension("");
    for (screen, is_dark, name) in [
        (DESK, false, "light"),
        (DESK, true, "dark"),
        (PHONE, false, "phone"),
        (PHONE, true, "phone-dark"),
    ] {
        browser.open(file, screen, is_dark);
        let png = browser.picture(true);
        picture::keep(
            &png,
            &stem.with_file_name(format!(
                "{}-{name}.png",
                stem.file_name().unwrap().to_string_lossy()
            )),
        );
        let wide = browser.number("document.documentElement.scrollWidth");
        assert!(wide <= f64::from(screen.0), "the page is {wide} pixels wide on {screen:?}");
        assert_eq!(browser.errors(), [""; 0], "{name}");
    }
}

/// Position of a panel's plot on the screen: left edge, width, and vertical centre.
fn frame(browser: &mut Browser, panel: usize) -> (f64, f64, f64) {
    let over = format!("document.querySelectorAll('.over')[{panel}]");
    browser.value(&format!("{over}.scrollIntoView({{ block: 'center' }})"));
    browser.settle();
    let found = browser.value(&format!(
        "(() => {{ const box = {over}.getBoundingClientRect(); return [box.left, box.width, box.top + box.height / 2]; }})()"
    ));
    let number = |index: usize| found[index].as_f64().unwrap();
    // The margins of panel.js, with a second unit on the right.
    (number(0) + 58.0, number(1) - 58.0 - 46.0, number(2))
}

/// The congestion window at a time, from the table of all events.
fn cwnd_at(csv: &str, nanos: f64) -> (u64, u64) {
    let mut known = (0, 0);
    for line in csv.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let at = cells[0].parse::<f64>().unwrap() * 1e9;
        if at > nanos {
            break;
        }
        // The sender is host 0.
        if cells[1] == "0" && !cells[10].is_empty() {
            known = (cells[10].parse().unwrap(), cells[14].parse().unwrap());
        }
    }
    known
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn a_run_is_zoomed_and_read() {
    let dir = dir("run");
    let scenario = format!("{SCENARIOS}/rough-path.toml");
    ackclock(&dir, &["run", &scenario, "--report", "run.html", "--csv", "run.csv"]);
    let csv = std::fs::read_to_string(dir.join("run.csv")).unwrap();
    let Some(mut browser) = Browser::start(&dir) else { return };
    look(&mut browser, &dir.join("run.html"));
    browser.open(&dir.join("run.html"), DESK, false);
    let view = |browser: &mut Browser| {
        let view = browser.value("ackclock.view('flow-0')");
        (view[0].as_f64().unwrap(), view[1].as_f64().unwrap())
    };
    let tip = "[...document.querySelectorAll('.tip')].find(tip => tip.style.visibility === 'visible')?.textContent ?? ''";

    // The second panel has the windows.
    let (left, width, middle) = frame(&mut browser, 1);
    let full = view(&mut browser);
    for part in [0.2, 0.5, 0.83] {
        let x = left + width * part;
        browser.mouse("mouseMoved", (x, middle), &json!({}));
        browser.settle();
        let text = browser.text(tip);
        let at = full.0 + (full.1 - full.0) * part;
        let (cwnd, mss) = cwnd_at(&csv, at);
        let expected = format!("cwnd{} B ({}", grouped(cwnd), cwnd / mss);
        assert!(text.contains(&expected), "{text}: {expected}");
    }

    // Ctrl and the wheel zoom around the pointer.
    let x = left + width * 0.25;
    browser.mouse(
        "mouseWheel",
        (x, middle),
        &json!({ "deltaX": 0, "deltaY": -700, "modifiers": 2 }),
    );
    browser.settle();
    let near = view(&mut browser);
    assert!(near.1 - near.0 < 0.5 * (full.1 - full.0), "{near:?}");
    let fixed = |view: (f64, f64)| view.0 + (view.1 - view.0) * 0.25;
    assert!((fixed(near) - fixed(full)).abs() < 0.002 * (full.1 - full.0), "{near:?} {full:?}");

    // Dragging zooms to the selection; a double click resets the view.
    browser.drag((left + width * 0.25, middle), (left + width * 0.75, middle + 2.0));
    let drawn = view(&mut browser);
    assert!(((drawn.1 - drawn.0) / (near.1 - near.0) - 0.5).abs() < 0.02, "{drawn:?} {near:?}");
    for count in 1..=2 {
        let click = json!({ "button": "left", "clickCount": count });
        browser.mouse("mousePressed", (x, middle), &click);
        browser.mouse("mouseReleased", (x, middle), &click);
    }
    browser.settle();
    assert_eq!(view(&mut browser), full);

    // By keyboard: zoom in, read, move, reset.
    browser.value("document.querySelectorAll('.over')[1].focus()");
    browser.key("+", &json!({}));
    let zoomed = view(&mut browser);
    assert!(((zoomed.1 - zoomed.0) / (full.1 - full.0) - 0.5).abs() < 0.01);
    browser.key("ArrowRight", &json!({}));
    let live = "document.querySelector('[aria-live]').textContent";
    browser.wait_for(&format!("{live}.includes('cwnd')"));
    let read = browser.text(live);
    let at = read.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e9;
    let (cwnd, _) = cwnd_at(&csv, at);
    assert!(read.contains(&format!("cwnd {} B", grouped(cwnd))), "{read}");
    browser.key("ArrowRight", &json!({ "modifiers": 8 }));
    assert!(view(&mut browser).0 > zoomed.0);
    browser.key("0", &json!({}));
    assert_eq!(view(&mut browser), full);

    // An event of the table jumps to its time; legends hide series; the theme can be selected.
    browser.value("document.querySelector('.jump').click()");
    browser.settle();
    assert!(view(&mut browser).1 < 0.5 * full.1);
    let hidden = "(() => { const entry = [...document.querySelectorAll('.legend button')].find(e => e.textContent === 'cwnd'); entry.click(); return entry.getAttribute('aria-pressed'); })()";
    assert_eq!(browser.text(hidden), "false");
    let themes = [(); 3].map(|()| {
        browser.text(
            "(document.getElementById('theme').click(), document.documentElement.dataset.theme)",
        )
    });
    assert_eq!(themes, ["light", "dark", "light"]);
    assert_eq!(browser.errors(), [""; 0]);
}

#[test]
fn a_sweep_is_shown_along_its_axes() {
    let dir = dir("sweep");
    let scenario = format!("{SCENARIOS}/loss-sweep.toml");
    let short = ["--set", "duration=3s", "--repeat", "2", "--out", "out"];
    let sweep = [&["sweep", &scenario, "--report", "sweep.html"][..], &short].concat();
    ackclock(&dir, &sweep);
    // The page of a finished sweep is the same.
    ackclock(&dir, &["table", "out", "--report", "again.html"]);
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    assert!(read("sweep.html") == read("again.html"));
    let Some(mut browser) = Browser::start(&dir) else { return };
    look(&mut browser, &dir.join("sweep.html"));
    browser.open(&dir.join("sweep.html"), DESK, false);
    let cells =
        "[...document.querySelectorAll('.heat td')].map(cell => cell.firstChild.textContent)";
    assert_eq!(browser.value(&format!("{cells}.length")), 9);

    // A cell is the mean of its two runs.
    let csv = std::fs::read_to_string(dir.join("out/runs.csv")).unwrap();
    let mean = means(&csv, "goodput_bps", 2)[0];
    let shown: f64 = browser.text(&format!("{cells}[0]")).parse().unwrap();
    assert!((shown - mean / 1e6).abs() < 0.01, "{shown} {mean}");

    // Another figure, and another row axis.
    let choose = |browser: &mut Browser, label: &str, value: &str| {
        browser.value(&format!(
            "(() => {{ const select = [...document.querySelectorAll('.choices label')].find(l => l.firstChild.textContent === '{label}').querySelector('select'); select.value = '{value}'; select.dispatchEvent(new Event('change')); }})()"
        ));
    };
    choose(&mut browser, "Across", "2");
    assert_eq!(browser.value(&format!("{cells}.length")), 6);
    choose(&mut browser, "Figure", "1");
    assert_eq!(browser.errors(), [""; 0]);
}

/// Means of a column of runs.csv over groups of `runs` runs.
fn means(csv: &str, column: &str, runs: usize) -> Vec<f64> {
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let at = head.iter().position(|name| *name == column).unwrap();
    let value = |line: &str| line.split(',').nth(at).unwrap().parse::<f64>().unwrap();
    let all: Vec<f64> = csv.lines().skip(1).map(value).collect();
    all.chunks(runs).map(|chunk| chunk.iter().sum::<f64>() / runs as f64).collect()
}

#[test]
fn a_sweep_over_one_axis_is_a_line() {
    let dir = dir("line");
    let scenario = format!("{SCENARIOS}/loss-sweep.toml");
    let axis = "path.forward.delay,path.return.delay=(10ms,10ms)";
    let short = ["-m", axis, "--set", "duration=3s", "--repeat", "3", "--out", "out"];
    ackclock(&dir, &[&["sweep", &scenario, "--report", "line.html"][..], &short].concat());
    let csv = std::fs::read_to_string(dir.join("out/runs.csv")).unwrap();
    let means = means(&csv, "goodput_bps", 3);
    let Some(mut browser) = Browser::start(&dir) else { return };
    look(&mut browser, &dir.join("line.html"));
    browser.open(&dir.join("line.html"), DESK, false);
    let points = "[...document.querySelectorAll('.lines .point')].map(point => { const box = \
                  point.firstChild.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })";
    let found = browser.value(points);
    let place_of = |n: usize| (found[n][0].as_f64().unwrap(), found[n][1].as_f64().unwrap());
    assert_eq!(found.as_array().unwrap().len(), 3);
    // Losses of 0.01, 0.1 and 1 % are equally spaced on a logarithmic axis.
    assert!(
        (place_of(1).0 - place_of(0).0 - (place_of(2).0 - place_of(1).0)).abs() < 1.0,
        "{found}"
    );
    // Heights above zero are proportional to the means.
    let zero =
        browser.number("document.querySelector('.lines rect').getBoundingClientRect().bottom");
    let high = |n: usize| zero - place_of(n).1;
    for n in [1, 2] {
        let (drawn, measured) = (high(n) / high(0), means[n] / means[0]);
        assert!((drawn - measured).abs() < 0.01, "{n}: {drawn} {measured}");
    }
    // A point shows its value on hover and on keyboard focus.
    let tip = "(() => { const tip = document.querySelector('.lines .tip'); return tip.style.visibility === 'visible' ? tip.textContent : ''; })()";
    let number = |text: &str| {
        text.split_once(": ").unwrap().1.split(' ').next().unwrap().parse::<f64>().unwrap()
    };
    browser.mouse("mouseMoved", place_of(1), &json!({}));
    browser.settle();
    let printed = browser.text(tip);
    assert!(printed.starts_with("0.1%: ") && printed.contains("Mbit/s ±"), "{printed}");
    assert!((number(&printed) - means[1] / 1e6).abs() < 1e-3, "{printed} {}", means[1]);
    browser.value("document.querySelectorAll('.lines .point')[2].focus()");
    let printed = browser.text(tip);
    assert!(
        printed.starts_with("1%: ") && (number(&printed) - means[2] / 1e6).abs() < 1e-3,
        "{printed}"
    );
    assert_eq!(browser.errors(), [""; 0]);
}

#[test]
fn flows_that_share_a_link_are_shown() {
    let dir = dir("sharing");
    let scenario = format!("{SCENARIOS}/fairness-late-comer.toml");
    let set = ["--set", "duration=30s", "--json"];
    let run = [&["run", &scenario, "--report", "sharing.html"][..], &set].concat();
    let json = ackclock(&dir, &run);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let Some(mut browser) = Browser::start(&dir) else { return };
    look(&mut browser, &dir.join("sharing.html"));
    browser.open(&dir.join("sharing.html"), DESK, false);
    let figure = |browser: &mut Browser, name: &str| {
        browser.text(&format!("[...document.querySelectorAll('.figures dt')].find(dt => dt.textContent === {name:?}).nextSibling.textContent"))
    };
    let jain = json["fairness"]["mean_jain_index"].as_f64().unwrap();
    assert_eq!(figure(&mut browser, "mean over its seconds"), format!("{jain:.3}"));
    // The goodput of a second, read from the plot.
    browser
        .value("document.querySelector('#plots-shares .over').scrollIntoView({ block: 'center' })");
    browser.settle();
    let frame = browser.value("(() => { const box = document.querySelector('#plots-shares .over').getBoundingClientRect(); return [box.left + 58, box.width - 58 - 12, box.top + box.height / 2]; })()");
    let number = |n: usize| frame[n].as_f64().unwrap();
    browser.mouse("mouseMoved", (number(0) + number(1) * 20.5 / 30.0, number(2)), &json!({}));
    browser.settle();
    let printed = browser.text("[...document.querySelectorAll('.tip')].find(tip => tip.style.visibility === 'visible')?.textContent ?? ''");
    let second = json["by_second"]["goodput_bps"][0][20].as_f64().unwrap() / 1e6;
    let (_, first) = printed.split_once("first").unwrap();
    let (first, _) = first.split_once(" Mbit/s").unwrap();
    let first: f64 = first.parse().unwrap();
    assert!((first / second - 1.0).abs() < 1e-4, "{printed}: {second} Mbit/s");
    assert_eq!(browser.errors(), [""; 0]);
}

#[test]
fn a_quic_run_shows_its_ack_ranges() {
    let dir = dir("quic");
    let scenario = format!("{SCENARIOS}/mathis.toml");
    ackclock(&dir, &["run", &scenario, "--set", "duration=3s", "--report", "quic.html"]);
    let Some(mut browser) = Browser::start(&dir) else { return };
    look(&mut browser, &dir.join("quic.html"));
    browser.open(&dir.join("quic.html"), DESK, false);
    let names = browser.text("[...document.querySelectorAll('.legend button')].map(entry => entry.textContent).join(' ')");
    assert!(names.contains("ACK ranges") && !names.contains("SACK"), "{names}");
    assert_eq!(browser.errors(), [""; 0]);
}

#[test]
fn a_published_case_is_shown() {
    let dir = dir("reproduce");
    ackclock(&dir, &["reproduce", "slow-start-lro", "--report", "reproduce.html"]);
    let Some(mut browser) = Browser::start(&dir) else { return };
    look(&mut browser, &dir.join("reproduce.html"));
    browser.open(&dir.join("reproduce.html"), DESK, false);
    let rows = browser.number(
        "[...document.querySelectorAll('caption')].find(c => c.textContent === 'Published and measured').parentElement.rows.length",
    );
    assert!(rows > 20.0, "{rows}");
    assert!(browser.number("ackclock.points('mail')") > 50.0);
    // The freebsd-net post: the third flight, sent at 0.301 s and acknowledged at 0.402 s, is
    // 20,272 bytes.
    browser.value("ackclock.show('mail', 0, 1e9)");
    browser.value(
        "document.querySelectorAll('#plots-mail .over')[1].scrollIntoView({ block: 'center' })",
    );
    browser.settle();
    assert_eq!(browser.value("ackclock.view('mail')"), json!([0, 1_000_000_000]));
    let frame = browser.value("(() => { const box = document.querySelectorAll('#plots-mail .over')[1].getBoundingClientRect(); return [box.left + 58, box.width - 58 - 46, box.top + box.height / 2]; })()");
    let number = |n: usize| frame[n].as_f64().unwrap();
    let at = (number(0) + number(1) * 0.35, number(2));
    browser.mouse("mouseMoved", at, &json!({}));
    browser.settle();
    let printed = browser.text("[...document.querySelectorAll('.tip')].find(tip => tip.style.visibility === 'visible')?.textContent ?? ''");
    assert!(printed.contains("in flight20,272 B (14 MSS)"), "{printed}");
    let wheel = json!({ "deltaX": 0, "deltaY": -700, "modifiers": 2 });
    browser.mouse("mouseWheel", at, &wheel);
    browser.settle();
    let view = browser.value("ackclock.view('mail')");
    let (from, to) = (view[0].as_f64().unwrap(), view[1].as_f64().unwrap());
    assert!(from < 0.35e9 && 0.35e9 < to && to - from < 0.5e9, "{view}");
    assert_eq!(browser.errors(), [""; 0]);
}

#[test]
fn a_diagnosis_shows_its_findings_on_the_graph() {
    let dir = dir("diagnose");
    let capture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../golden/linux/h1_rwnd_cubic/sender.pcap.xz");
    ackclock(&dir, &["diagnose", &capture.display().to_string(), "--report", "diagnose.html"]);
    let Some(mut browser) = Browser::start(&dir) else { return };
    look(&mut browser, &dir.join("diagnose.html"));
    browser.open(&dir.join("diagnose.html"), DESK, false);
    // 2,781 data packets and as many acknowledgments.
    assert!(browser.number("ackclock.points('file-0-flow-0')") > 4_000.0);
    // The cure has its gain above the findings.
    let shown = browser.text("document.querySelector('.verdict').innerText");
    assert!(shown.contains("3.27 s → 7"), "{shown}");
    assert!(shown.contains("with receiver: net.ipv4.tcp_rmem=\"4096 131072 6291456\""), "{shown}");
    assert!(shown.contains("receive window 2.86 s, 86 %"), "{shown}");
    let rows = "[...document.querySelectorAll('caption')].find(c => c.textContent === 'Findings').parentElement";
    assert!(browser.text(&format!("{rows}.textContent")).contains("CC401"));
    // Its code jumps to its time in the graph.
    let before = browser.picture(false);
    browser.value(&format!("{rows}.querySelector('button.jump').click()"));
    browser.settle();
    assert_ne!(browser.picture(false), before);
    assert_eq!(browser.errors(), [""; 0]);
}
