//! Pages of a run and of a sweep: what is drawn is what was measured.

use std::path::Path;

use serde_json::json;

use super::browser::Browser;
use super::{SCENARIOS, ackclock, picture, place};

/// Screens: a desk and a phone.
const DESK: (u32, u32) = (1_280, 900);
const PHONE: (u32, u32) = (390, 844);

/// Pictures of a page in both themes and on a phone; no error may be told.
fn look(browser: &mut Browser, file: &Path) {
    let stem = file.with_extension("");
    for (screen, is_dark, name) in
        [(DESK, false, "light"), (DESK, true, "dark"), (PHONE, false, "phone")]
    {
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

/// The middle of a panel's plot on the screen, and pixels for each nanosecond: left edge, width,
/// height of the middle.
fn frame(browser: &mut Browser, panel: usize) -> (f64, f64, f64) {
    let over = format!("document.querySelectorAll('.over')[{panel}]");
    browser.value(&format!("{over}.scrollIntoView({{ block: 'center' }})"));
    browser.settle();
    let found = browser.value(&format!(
        "(() => {{ const box = {over}.getBoundingClientRect(); return [box.left, box.width, box.top + box.height / 2]; }})()"
    ));
    let number = |index: usize| found[index].as_f64().unwrap();
    // The gutters that panel.js leaves, with a second unit on the right.
    (number(0) + 58.0, number(1) - 58.0 - 46.0, number(2))
}

/// The window at a moment, by the table of all events.
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
    let place = place("run");
    let scenario = format!("{SCENARIOS}/rough-path.toml");
    ackclock(&place, &["run", &scenario, "--report", "run.html", "--csv", "run.csv"]);
    let csv = std::fs::read_to_string(place.join("run.csv")).unwrap();
    let Some(mut browser) = Browser::start(&place) else { return };
    look(&mut browser, &place.join("run.html"));
    browser.open(&place.join("run.html"), DESK, false);
    let view = |browser: &mut Browser| {
        let view = browser.value("ackclock.view('flow-0')");
        (view[0].as_f64().unwrap(), view[1].as_f64().unwrap())
    };
    let tip = "[...document.querySelectorAll('.tip')].find(tip => tip.style.visibility === 'visible')?.textContent ?? ''";

    // The second panel holds the windows.
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

    // Ctrl and the wheel zoom about the pointer.
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

    // Dragging shows what was marked; a double click shows all again.
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

    // By keys alone: zoom in, read, move on, show all.
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

    // An event of the table leads to its place; legends hide series; the theme can be chosen.
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
fn a_sweep_is_looked_at_along_its_axes() {
    let place = place("sweep");
    let scenario = format!("{SCENARIOS}/loss-sweep.toml");
    let short = ["--set", "duration=3s", "--repeat", "2", "--out", "out"];
    let sweep = [&["sweep", &scenario, "--report", "sweep.html"][..], &short].concat();
    ackclock(&place, &sweep);
    // The page of a finished sweep is the same.
    ackclock(&place, &["table", "out", "--report", "again.html"]);
    let read = |name: &str| std::fs::read(place.join(name)).unwrap();
    assert!(read("sweep.html") == read("again.html"));
    let Some(mut browser) = Browser::start(&place) else { return };
    look(&mut browser, &place.join("sweep.html"));
    browser.open(&place.join("sweep.html"), DESK, false);
    let cells =
        "[...document.querySelectorAll('.heat td')].map(cell => cell.firstChild.textContent)";
    assert_eq!(browser.value(&format!("{cells}.length")), 9);

    // A cell is the mean of its two runs.
    let csv = std::fs::read_to_string(place.join("out/runs.csv")).unwrap();
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let column = head.iter().position(|name| *name == "goodput_bps").unwrap();
    let goodput = |line: &str| line.split(',').nth(column).unwrap().parse::<f64>().unwrap();
    let mean = csv.lines().skip(1).take(2).map(goodput).sum::<f64>() / 2.0;
    let shown: f64 = browser.text(&format!("{cells}[0]")).parse().unwrap();
    assert!((shown - mean / 1e6).abs() < 0.01, "{shown} {mean}");

    // Another figure, and another axis down the side.
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

#[test]
fn a_published_case_is_told() {
    let place = place("reproduce");
    ackclock(&place, &["reproduce", "slow-start-lro", "--report", "reproduce.html"]);
    let Some(mut browser) = Browser::start(&place) else { return };
    look(&mut browser, &place.join("reproduce.html"));
    browser.open(&place.join("reproduce.html"), DESK, false);
    let rows = browser.number(
        "[...document.querySelectorAll('caption')].find(c => c.textContent === 'Published and measured').parentElement.rows.length",
    );
    assert!(rows > 20.0, "{rows}");
    assert!(browser.number("ackclock.points('mail')") > 50.0);
    assert_eq!(browser.errors(), [""; 0]);
}
