//! Reduction of points without visible change.

use std::io;

use super::ChartPoint;
use super::number::Px;

/// A point in pixels.
pub(super) type Dot = (Px, Px);

/// The relevant points of a series in a pixel column: first, lowest, highest and last (Jugel et
/// al., "M4: a visualization-oriented time series data aggregation", 2014).
#[derive(Debug, Clone, Copy)]
struct PixelColumn {
    number: i64,
    dots: [(usize, Dot); 4],
}

impl PixelColumn {
    fn new(number: i64, index: usize, dot: Dot) -> Self {
        Self { number, dots: [(index, dot); 4] }
    }

    fn add(&mut self, index: usize, dot: Dot) {
        let [_, low, high, last] = &mut self.dots;
        if dot.1 > low.1.1 {
            *low = (index, dot);
        }
        if dot.1 < high.1.1 {
            *high = (index, dot);
        }
        *last = (index, dot);
    }

    /// Emits its points in order, each once.
    fn flush(mut self, out: &mut impl FnMut(Dot) -> io::Result<()>) -> io::Result<()> {
        self.dots.sort_by_key(|&(index, _)| index);
        let mut before = None;
        for (_, dot) in self.dots {
            if before.replace(dot) != Some(dot) {
                out(dot)?;
            }
        }
        Ok(())
    }
}

/// Passes the relevant points to `out` in order, converted by `place`, until it fails.
pub(super) fn decimate(
    points: &[ChartPoint],
    position: impl Fn(&ChartPoint) -> Dot,
    mut out: impl FnMut(Dot) -> io::Result<()>,
) -> io::Result<()> {
    let mut column: Option<PixelColumn> = None;
    for (index, point) in points.iter().enumerate() {
        let dot = position(point);
        let number = dot.0.0.div_euclid(100);
        match &mut column {
            Some(same) if same.number == number => same.add(index, dot),
            other => {
                if let Some(full) = other.replace(PixelColumn::new(number, index, dot)) {
                    full.flush(&mut out)?;
                }
            }
        }
    }
    column.map_or(Ok(()), |last| last.flush(&mut out))
}

/// Passes the visible markers to `out` in order, converted by `place`, until it fails: one per
/// pixel column and two rows.
pub(super) fn scatter(
    points: &[ChartPoint],
    position: impl Fn(&ChartPoint) -> Dot,
    mut out: impl FnMut(Dot) -> io::Result<()>,
) -> io::Result<()> {
    let (mut column, mut taken) = (None, Vec::new());
    for point in points {
        let dot = position(point);
        let (number, rows) = (dot.0.0.div_euclid(100), dot.1.0.div_euclid(200));
        if column.replace(number) != Some(number) {
            taken.clear();
        }
        if !taken.contains(&rows) {
            taken.push(rows);
            out(dot)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(points: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let points: Vec<ChartPoint> = points.iter().map(|&(x, y)| ChartPoint { x, y }).collect();
        let mut kept = Vec::new();
        let keep = |(x, y): Dot| {
            kept.push((x.0, y.0));
            Ok(())
        };
        decimate(&points, |p| (Px(p.x), Px(p.y)), keep).unwrap();
        kept
    }

    #[test]
    fn a_column_keeps_its_ends_and_its_extremes_in_order() {
        let column = [(0, 50), (10, 40), (20, 90), (30, 60), (40, 10), (50, 45)];
        assert_eq!(run(&column), [(0, 50), (20, 90), (40, 10), (50, 45)]);
    }

    #[test]
    fn markers_are_also_kept_between_the_extremes() {
        let column = [(0, 0), (0, 1_000), (0, 2_000), (0, 1_050), (0, 3_000), (0, 4_000)];
        let points = column.map(|(x, y)| ChartPoint { x, y });
        let mut kept = Vec::new();
        let keep = |(_, y): Dot| {
            kept.push(y.0);
            Ok(())
        };
        scatter(&points, |p| (Px(p.x), Px(p.y)), keep).unwrap();
        // The fourth coincides with the second.
        assert_eq!(kept, [0, 1_000, 2_000, 3_000, 4_000]);
    }

    #[test]
    fn few_points_are_all_kept() {
        let sparse = [(0, 1), (100, 2), (250, 3), (260, 9), (260, 1)];
        assert_eq!(run(&sparse), sparse);
        assert_eq!(run(&[]), []);
    }

    #[test]
    fn many_points_become_four_for_each_column() {
        let points: Vec<(i64, i64)> = (0..100_000).map(|n| (n / 10, n * 7_919 % 1_009)).collect();
        let kept = run(&points);
        assert!(kept.len() <= 4 * 100, "{}", kept.len());
        for column in 0..100 {
            let of = |all: &[(i64, i64)]| {
                let ys = all.iter().filter(|(x, _)| x / 100 == column).map(|&(_, y)| y);
                (ys.clone().min(), ys.max())
            };
            assert_eq!(of(&kept), of(&points));
        }
    }
}
