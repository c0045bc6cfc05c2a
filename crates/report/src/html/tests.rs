//! Tests of pages as text.

use super::escape;
use crate::page::{Page, PagePart};
use crate::plots::{PlotAxis, PlotPanel, PlotSeries, Plots, SeriesMark, SeriesRole};
use crate::table::{ReportTable, TableCell, TableColumn, Tone};
use crate::verdict::{PartColour, Verdict, VerdictChange, VerdictPart};

fn html(page: &Page) -> String {
    let mut html = Vec::new();
    page.write(&mut html).unwrap();
    String::from_utf8(html).unwrap()
}

fn page() -> Page {
    let mut letters = PlotSeries::new("</script><b>", SeriesRole::Event, SeriesMark::Letters);
    letters.push(5, 1, "SYN");
    letters.push(7, 2, "FIN");
    letters.push(9, 2, "SYN");
    assert_eq!(letters.word, [0, 1, 0]);
    Page {
        title: "a < b & 'c'".into(),
        parts: vec![
            PagePart::Heading("One".into()),
            PagePart::Heading("Two".into()),
            PagePart::Table(ReportTable {
                columns: vec![TableColumn::words("what"), TableColumn::numbers("how much")],
                rows: vec![vec!["x".into(), TableCell::from("3").tone(Tone::Bad).leads_to(1, 2)]],
                plots: "p".into(),
                ..ReportTable::default()
            }),
            PagePart::Plots(Plots {
                id: "p".into(),
                x: PlotAxis::new("time", "s", 9),
                panels: vec![PlotPanel::new(PlotAxis::default(), vec![letters])],
                ..Plots::default()
            }),
        ],
        ..Page::default()
    }
}

#[test]
fn names_are_escaped() {
    let html = html(&page());
    assert!(html.contains("<title>a &lt; b &amp; &#39;c&#39;</title>"));
    assert!(html.contains("\\u003c/script>\\u003cb>"));
    // The elements of the data and of the program.
    assert_eq!(html.matches("</script>").count(), 2);
}

#[test]
fn a_verdict_is_a_sentence_a_bar_and_a_gain() {
    let part = |name: &str, weight, colour| VerdictPart {
        name: name.into(),
        letter: 'w',
        weight,
        text: format!("{weight} s"),
        colour,
    };
    let change = VerdictChange {
        what: "receiver: <b>".into(),
        before: "3.27 s".into(),
        after: "740 ms".into(),
        permille: Some((226, 226)),
        note: String::new(),
    };
    let html = html(&Page {
        parts: vec![PagePart::Verdict(Verdict {
            sentence: "Limited by <this>.".into(),
            whole: "Where the time went".into(),
            parts: vec![
                part("window", 990, PartColour::Blue),
                part("of no size", 0, PartColour::Faint),
                part("rest", 10, PartColour::Hatched),
            ],
            changes: vec![change],
            ..Verdict::default()
        })],
        ..Page::default()
    });
    assert!(html.contains("<p class=\"says\">Limited by &lt;this&gt;.</p>"), "{html}");
    // A part too small for its letter has it in the key, and one of no size is absent.
    let bar = "width=\"99.0%\" height=\"100%\"><title>window 990 s</title></rect><text class=\"c0\" x=\"49.5%\" \
               y=\"67%\">w</text><rect class=\"ch\" x=\"99.0%\" width=\"1.0%\" height=\"100%\"><title>rest 10 \
               s</title></rect></svg>";
    assert!(html.contains(bar), "{html}");
    assert!(!html.contains("of no size"), "{html}");
    assert!(html.contains("<strong class=\"good\">740 ms</strong>"), "{html}");
    assert!(html.contains("<rect class=\"is good\" y=\"58%\" width=\"22.6%\""), "{html}");
    // The playground's policy refuses styles of elements.
    assert!(!html.contains(" style="), "{html}");
    assert!(html.contains("receiver: &lt;b&gt;"), "{html}");
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
fn long_integers_are_grouped_in_columns_of_numbers() {
    let grouped = |text: &str| escape::GroupedDigits(text).to_string();
    let k = |digits: &str| format!("<span class=\"k\">{digits}</span>");
    for plain in ["1234", "0.123456", "–", "99.5 %", ""] {
        assert_eq!(grouped(plain), plain);
    }
    assert_eq!(grouped("< 5"), "&lt; 5");
    assert_eq!(grouped("12345"), format!("12{}", k("345")));
    assert_eq!(grouped("1234567.123456"), format!("1{}{}.123456", k("234"), k("567")));
    assert_eq!(grouped("99999..100000"), format!("99{}..100{}", k("999"), k("000")));
    assert_eq!(grouped("0.000 to 12345.678"), format!("0.000 to 12{}.678", k("345")));
    let table = |column| ReportTable {
        columns: vec![column],
        rows: vec![vec!["123456".into()]],
        ..ReportTable::default()
    };
    let of =
        |column| html(&Page { parts: vec![PagePart::Table(table(column))], ..Page::default() });
    assert!(of(TableColumn::numbers("bytes")).contains("123<span class=\"k\">456</span></td>"));
    assert!(of(TableColumn::words("name")).contains("<td>123456</td>"));
}

#[test]
fn a_page_fetches_nothing() {
    let html = html(&page());
    let addresses = html.match_indices("://").filter(|(at, _)| !html[..*at].ends_with("http"));
    assert_eq!(addresses.count(), 0);
    // Except the SVG namespace, in the icon and in the program.
    let others = html.replace("http://www.w3.org/2000/svg", "");
    assert!(!others.contains("http://") && !others.contains("src=") && !others.contains("@import"));
}

#[test]
fn the_same_page_has_the_same_bytes() {
    assert_eq!(html(&page()), html(&page()));
}
