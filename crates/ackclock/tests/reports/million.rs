//! A million points stay fluid.

use report::page::{Page, Part};
use report::plots::{Axis, Mark, Panel, Plots, Role, Series};

use super::browser::Browser;
use super::{picture, place};

/// `n` values as a run might have them, three times: bars, a line and dots.
fn page(n: i64) -> Page {
    // Numbers that no packer foresees (Knuth's multiplicative hash).
    let chance = |x: i64| (x.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 40) & 0xffff;
    let saw = |x: i64| 200_000 + (x % 997) * 1_448 + chance(x);
    let mut bars = Series::new("data", Role::Data, Mark::Bars);
    bars.x = (0..n).map(|x| x * 100_000 + chance(x)).collect();
    bars.y = (0..n).map(|x| x * 1_448).collect();
    bars.top = (0..n).map(|x| x * 1_448 + 1_448).collect();
    let line = Series::new("cwnd", Role::Window, Mark::Step);
    let dots = Series::new("measured", Role::Sample, Mark::Dots);
    let points = || (0..n).map(|x| (x * 100_000 + chance(x), saw(x)));
    let panels = [bars, line.with_points(points()), dots.with_points(points())];
    let panel = |series: Series| Panel::new(Axis::new(&series.name.clone(), "B", 0), vec![series]);
    let plots = Plots {
        id: "many".into(),
        title: "Many points".into(),
        x: Axis::new("time", "s", 9),
        panels: panels.map(panel).into(),
    };
    Page { title: "Many points".into(), parts: vec![Part::Plots(plots)], ..Page::default() }
}

#[test]
#[expect(clippy::print_stderr, reason = "how long it took is what one wants to know")]
fn a_million_points_stay_fluid() {
    let place = place("million");
    let Some(mut browser) = Browser::start(&place) else { return };
    let mut html = Vec::new();
    page(340_000).write(&mut html).unwrap();
    let file = place.join("million.html");
    std::fs::write(&file, &html).unwrap();
    browser.open(&file, (1_280, 900), false);
    assert!(browser.number("ackclock.points('many')") >= 1e6);
    let ready = browser.number("Number(document.documentElement.dataset.ready)");
    // Zooming in and out again, a step each picture.
    let zoom = "(async () => { const [from, to] = ackclock.view('many'); ackclock.frames('many').length = 0; \
                for (let n = 0; n < 60; n++) { const part = Math.abs(30 - n) / 30; \
                ackclock.show('many', from, from + (to - from) * (0.002 + 0.998 * part)); \
                await new Promise(requestAnimationFrame); } \
                return ackclock.frames('many').slice().sort((a, b) => a - b); })()";
    let frames = browser.value(zoom);
    let frames: Vec<f64> = frames.as_array().unwrap().iter().map(|f| f.as_f64().unwrap()).collect();
    assert!(frames.len() >= 50, "{}", frames.len());
    let (middle, worst) = (frames[frames.len() / 2], frames[frames.len() - 1]);
    eprintln!(
        "a million points: {} kB, first paint after {ready} ms, a zoom's frame takes {middle:.1} ms \
         in the middle and {worst:.1} ms at worst",
        html.len() / 1_000
    );
    picture::keep(&browser.picture(false), &place.join("million.png"));
    assert_eq!(browser.errors(), [""; 0]);
    // Loose bounds, for machines that do other things as well: an endless wait would break them.
    assert!(ready < 10_000.0 && middle < 100.0, "{ready} {middle}");
}
