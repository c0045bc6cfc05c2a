//! Pages as text.

use crate::page::{Page, Part};
use crate::plots::{Axis, Mark, Panel, Plots, Role, Series};
use crate::table::{Cell, Column, Table, Tone};

fn html(page: &Page) -> String {
    let mut html = Vec::new();
    page.write(&mut html).unwrap();
    String::from_utf8(html).unwrap()
}

fn page() -> Page {
    let mut letters = Series::new("</script><b>", Role::Event, Mark::Letters);
    letters.push(5, 1, "SYN");
    letters.push(7, 2, "FIN");
    letters.push(9, 2, "SYN");
    assert_eq!(letters.word, [0, 1, 0]);
    Page {
        title: "a < b & 'c'".into(),
        parts: vec![
            Part::Heading("One".into()),
            Part::Heading("Two".into()),
            Part::Table(Table {
                columns: vec![Column::words("what"), Column::numbers("how much")],
                rows: vec![vec!["x".into(), Cell::from("3").tone(Tone::Bad).leads_to(1, 2)]],
                plots: "p".into(),
                ..Table::default()
            }),
            Part::Plots(Plots {
                id: "p".into(),
                x: Axis::new("time", "s", 9),
                panels: vec![Panel::new(Axis::default(), vec![letters])],
                ..Plots::default()
            }),
        ],
        ..Page::default()
    }
}

#[test]
fn nothing_of_a_name_is_markup() {
    let html = html(&page());
    assert!(html.contains("<title>a &lt; b &amp; &#39;c&#39;</title>"));
    assert!(html.contains("\\u003c/script>\\u003cb>"));
    // Those of the data and of the program.
    assert_eq!(html.matches("</script>").count(), 2);
}

#[test]
fn headings_have_links_and_cells_lead_to_plots() {
    let html = html(&page());
    assert!(
        html.contains("<a href=\"#part-2\">Two</a>") && html.contains("<h2 id=\"part-2\">Two<")
    );
    let cell = "<td class=\"number bad\"><button type=\"button\" class=\"jump\" data-plots=\"p\" \
                data-from=\"1\" data-to=\"2\">3</button></td>";
    assert!(html.contains(cell), "{html}");
}

#[test]
fn a_page_fetches_nothing() {
    let html = html(&page());
    let addresses = html.match_indices("://").filter(|(at, _)| !html[..*at].ends_with("http"));
    assert_eq!(addresses.count(), 0);
    // The one of the name space of SVG, in the icon and in the program.
    let others = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!others.contains("http://") && !others.contains("src=") && !others.contains("@import"));
}

#[test]
fn the_same_page_has_the_same_bytes() {
    assert_eq!(html(&page()), html(&page()));
}
