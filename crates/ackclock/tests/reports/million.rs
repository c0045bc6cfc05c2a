//! A page with a million points responds quickly.

use report::page::{Page, PagePart};
use report::plots::{PlotAxis, PlotPanel, PlotSeries, Plots, SeriesMark, SeriesRole};

use super::browser::Browser;
use super::{dir, picture};

/// A page with `n` values as in a run, three times: bars, a line and dots.
fn page(n: i64) -> Page {
    // Incompressible numbers (Knuth's multiplicative hash).
    let random = |x: i64| (x.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 40) & 0xffff;
    let saw = |x: i64| 200_000 + (x % 997) * 1_448 + random(x);
    let mut bars = PlotSeries::new("data", SeriesRole::Data, SeriesMark::Bars);
    bars.x = (0..n).map(|x| x * 100_000 + random(x)).collect();
    bars.y = (0..n).map(|x| x * 1_448).collect();
    bars.top = (0..n).map(|x| x * 1_448 + 1_448).collect();
    let line = PlotSeries::new("cwnd", SeriesRole::Window, SeriesMark::Step);
    let dots = PlotSeries::new("measured", SeriesRole::Sample, SeriesMark::Dots);
    let points = || (0..n).map(|x| (x * 100_000 + random(x), saw(x)));
    let panels = [bars, line.with_points(points()), dots.with_points(points())];
    let panel = |series: PlotSeries| {
        PlotPanel::new(PlotAxis::new(&series.name.clone(), "B", 0), vec![series])
    };
    let plots = Plots {
        id: "many".into(),
        title: "Many points".into(),
        x: PlotAxis::new("time", "s", 9),
        panels: panels.map(panel).into(),
    };
    Page { title: "Many points".into(), parts: vec![PagePart::Plots(plots)], ..Page::default() }
}

#[test]
#[expect(clippy::print_stderr, reason = "how long it took is what one wants to know")]
fn a_million_points_stay_fluid() {
    let dir = dir("million");
    let Some(mut browser) = Browser::start(&dir) else { return };
    let mut html = Vec::new();
    page(340_000).write(&mut html).unwrap();
    let file = dir.join("million.html");
    std::fs::write(&file, &html).unwrap();
    browser.open(&file, (1_280, 900), false);
    assert!(browser.number("ackclock.points('many')") >= 1e6);
    let ready = browser.number("Number(document.documentElement.dataset.ready)");
    // Zooming in and out, one step per frame.
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
    picture::keep(&browser.picture(false), &dir.join("million.png"));
    assert_eq!(browser.errors(), [""; 0]);
    // Loose bounds for loaded machines: an endless wait would exceed them.
    assert!(ready < 10_000.0 && middle < 100.0, "{ready} {middle}");
}
